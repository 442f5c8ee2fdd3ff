"""The compose file of a run: nothing left open, every node with a place of its own, the same when read again."""

from __future__ import annotations

import json
from collections.abc import Mapping
from ipaddress import IPv4Network
from pathlib import Path

import pytest
import yaml

from nemesis.runtimes.docker import compose_file
from nemesis.runtimes.docker.compose_file import Compose
from nemesis.support.errors import UsageError
from nemesis.targets.base import BrokerProgram

SUBNET = IPv4Network("198.18.7.0/24")
HOSTS = {"broker-1": "198.18.7.21", "broker-2": "198.18.7.22", "controller-1": "198.18.7.11"}
BROKERS = {
    node: {"broker.id": int(node[-1]), "host": HOSTS[node]} for node in ("broker-1", "broker-2")
}
NODES = [*compose_file.ZOOKEEPERS, *BROKERS]


def cluster(
    program: BrokerProgram | None = None,
    brokers: Mapping[str, Mapping[str, object]] = BROKERS,
    *,
    has_zookeeper: bool = True,
) -> Compose:
    return compose_file.effective(
        compose_file.read_template(),
        run_id="0a1b",
        subnet=SUBNET,
        image="nemesis:tag",
        hosts=HOSTS,
        brokers=brokers,
        programs=None if program is None else dict.fromkeys(brokers, program),
        tick_time_ms=250,
        has_zookeeper=has_zookeeper,
    )


def test_every_node_has_a_name_an_address_a_volume_and_labels_of_its_own() -> None:
    compose = cluster()
    services = compose["services"]
    assert list(services) == NODES
    assert {s["image"] for s in services.values()} == {"nemesis:tag"}
    assert [s["container_name"] for s in services.values()] == [f"nemesis-0a1b-{n}" for n in NODES]
    assert [s["networks"]["cluster"]["ipv4_address"] for s in services.values()] == [
        f"198.18.7.{host}" for host in (11, 12, 13, 21, 22)
    ]
    assert {n: s["labels"] for n, s in services.items()} == {
        n: {"nemesis.running.run": "0a1b", "nemesis.node": n} for n in NODES
    }
    expected = {n: [f"{n}:{compose_file.NODE_DIRECTORY}"] for n in NODES}
    for broker in BROKERS:
        disk = compose_file.disk_volume(broker)
        expected[broker].append(f"{disk}:{compose_file.DATA_DIRECTORY}")
    for node, mounts in expected.items():
        mounts.append(f"./clocks/{node}:{compose_file.WALL_CLOCK}:ro")
    assert {n: s["volumes"] for n, s in services.items()} == expected
    volumes = [*NODES, *map(compose_file.disk_volume, BROKERS)]
    assert {n: v["name"] for n, v in compose["volumes"].items()} == {
        n: f"nemesis-0a1b-{n}" for n in volumes
    }
    network = compose["networks"]["cluster"]
    assert network["ipam"]["config"] == [{"subnet": str(SUBNET), "gateway": "198.18.7.1"}]
    assert network["labels"] == {"nemesis.running.run": "0a1b"}


def test_a_cluster_with_kraft_has_no_zookeeper_and_waits_for_none() -> None:
    compose = cluster(has_zookeeper=False)
    assert list(compose["services"]) == list(BROKERS)
    assert sorted(compose["volumes"]) == sorted([*BROKERS, *map(compose_file.disk_volume, BROKERS)])
    assert not [node for node, service in compose["services"].items() if "depends_on" in service]
    assert "zookeeper" not in str(compose)


def test_a_controller_of_its_own_is_made_like_a_broker() -> None:
    compose = cluster(brokers={**BROKERS, "controller-1": {"node.id": 1001}}, has_zookeeper=False)
    assert list(compose["services"]) == [*BROKERS, "controller-1"]
    service = compose["services"]["controller-1"]
    assert service["container_name"] == "nemesis-0a1b-controller-1"
    assert service["labels"]["nemesis.node"] == service["hostname"] == "controller-1"
    assert service["networks"]["cluster"]["ipv4_address"] == HOSTS["controller-1"]
    assert json.loads(service["environment"]["NODE_CONFIGURATION"]) == {"node.id": 1001}
    disk = compose_file.disk_volume("controller-1")
    assert service["volumes"][:2] == [
        f"controller-1:{compose_file.NODE_DIRECTORY}",
        f"{disk}:{compose_file.DATA_DIRECTORY}",
    ]
    assert compose["volumes"][disk]["name"] == "nemesis-0a1b-controller-1-disk"
    assert compose["volumes"][disk]["labels"]["nemesis.node"] == "controller-1"
    assert "broker-" not in str(service)
    assert "/9093" in str(service["healthcheck"])


def test_the_nodes_are_configured_by_the_file_alone() -> None:
    services = cluster()["services"]
    for node, properties in BROKERS.items():
        assert json.loads(services[node]["environment"]["NODE_CONFIGURATION"]) == properties
    for node in compose_file.ZOOKEEPERS:
        environment = services[node]["environment"]
        assert environment["ZOOKEEPER_ID"] == node[-1]
        settings = dict(line.split("=") for line in environment["NODE_CONFIGURATION"].splitlines())
        assert settings["tickTime"] == "250"
        assert settings["dataDir"] == str(compose_file.DATA_DIRECTORY)
        assert [settings[f"server.{n}"] for n in "123"] == [
            f"198.18.7.{host}:2888:3888" for host in (11, 12, 13)
        ]


def test_another_command_is_the_brokers_only() -> None:
    command = ["python3", "-m", "elsewhere"]
    services = cluster(BrokerProgram(command))["services"]
    assert [services[node]["command"] for node in BROKERS] == [command, command]
    assert services["zookeeper-1"]["command"] == cluster()["services"]["zookeeper-1"]["command"]


def test_what_is_written_is_read_again_and_compose_would_find_no_variable(tmp_path: Path) -> None:
    compose = cluster(BrokerProgram(["echo", "costs $5, ${NOTHING}"]))
    path = tmp_path / compose_file.FILE_NAME
    compose_file.write(compose, path)
    assert compose_file.read(path) == compose
    text = path.read_text()
    assert "$" not in text.replace("$$", "")
    assert "NODE_CONFIGURATION: |\n" in text


def test_a_broker_has_the_memory_and_the_files_that_its_target_needs() -> None:
    program = BrokerProgram(["echo"], memory="768m", paths=(Path("/jars"),))
    services = cluster(program)["services"]
    assert services["broker-2"]["mem_limit"] == "768m"
    assert services["broker-2"]["volumes"][-2] == "/jars:/jars:ro"
    assert cluster()["services"]["broker-2"]["mem_limit"] == "512m"
    assert "/jars:/jars:ro" not in services["zookeeper-1"]["volumes"]


def test_a_label_says_where_a_broker_writes_its_trace() -> None:
    traced = {"trace.file": "/var/lib/nemesis/trace.jsonl"}
    services = cluster(brokers={"broker-1": traced, "broker-2": {}})["services"]
    assert services["broker-1"]["labels"]["nemesis.trace"] == traced["trace.file"]
    assert "nemesis.trace" not in services["broker-2"]["labels"]


def test_the_template_is_left_as_it_was() -> None:
    template = compose_file.read_template()
    cluster()
    assert template == compose_file.read_template()


def test_the_template_alone_is_a_cluster_on_the_default_network() -> None:
    template = compose_file.fill_in(compose_file.read_template(), {})
    broker = template["services"]["broker"]
    properties = json.loads(broker["environment"]["NODE_CONFIGURATION"])
    host = broker["networks"]["cluster"]["ipv4_address"]
    assert properties["listeners"] == f"PLAINTEXT://{host}:9092" == "PLAINTEXT://198.18.0.21:9092"
    assert properties["log.dirs"] == [str(compose_file.DATA_DIRECTORY)]
    assert properties["trace.file"] == str(compose_file.TRACE_FILE)
    assert broker["command"][-1] == str(compose_file.CONFIGURATION_FILE)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("${RUN:-by-hand}", "r1"),
        ("${OTHER:-by-hand}", "by-hand"),
        ("a ${RUN} b", "a r1 b"),
        ("$$RUN", "$RUN"),
        ("${EMPTY:-}", ""),
    ],
)
def test_variables_mean_what_they_mean_to_compose(text: str, value: str) -> None:
    assert compose_file.fill_in([{"key": text}], {"RUN": "r1"}) == [{"key": value}]


def test_a_variable_without_value_and_default_is_named() -> None:
    with pytest.raises(UsageError, match="variable OTHER has no value and no default"):
        compose_file.fill_in("${OTHER}", {})


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (None, "cannot be read: No such file"),
        ("services: [", "is not YAML"),
        (yaml.dump({"services": {}}), "lacks services, volumes or networks"),
    ],
)
def test_a_file_that_is_no_compose_file_is_named(
    content: str | None, sentence: str, tmp_path: Path
) -> None:
    path = tmp_path / "compose.yaml"
    if content is not None:
        path.write_text(content)
    with pytest.raises(UsageError, match=sentence):
        compose_file.read(path)
