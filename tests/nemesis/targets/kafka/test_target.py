"""Kafka as a target: its options, a broker's configuration and command, and what cannot be done to its brokers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from nemesis.history.sources import OF_QUORUM, EventSource
from nemesis.interfaces.brokers import BrokerEpochs, Containers, DiskCommands, PlantedBugs
from nemesis.interfaces.links import Address
from nemesis.interfaces.processes import BrokerMembership
from nemesis.interfaces.traces import Traces
from nemesis.support.errors import UsageError
from nemesis.targets import TARGETS
from nemesis.targets.base import BrokerEndpoint, controllers_of, uses_zookeeper, voters
from nemesis.targets.kafka.stored_classes import class_archive

KAFKA = TARGETS["kafka"]
KRAFT = KAFKA.with_options({"kafka-version": "4.1.1"})
ENDPOINT = BrokerEndpoint(
    broker_id=2,
    bind=Address("127.4.9.2", 19092),
    advertised=Address("127.4.9.2", 9092),
    zookeeper_connect="127.4.9.51:2181",
    log_dirs=(Path("/run/data/a"), Path("/run/data/b")),
    trace_file=None,
    seed=7002,
)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A Kafka home directory, as far as its version can be seen."""
    (tmp_path / "libs").mkdir()
    (tmp_path / "libs" / "kafka_2.13-3.6.2.jar").touch()
    return tmp_path


def test_a_broker_gets_its_place() -> None:
    properties = KAFKA.broker_properties(ENDPOINT, {"min.insync.replicas": 2})
    assert properties["listeners"] == "PLAINTEXT://127.4.9.2:19092"
    assert properties["advertised.listeners"] == "PLAINTEXT://127.4.9.2:9092"
    assert properties["zookeeper.connect"] == "127.4.9.51:2181"
    assert properties["log.dirs"] == "/run/data/a,/run/data/b"
    assert properties["broker.id"] == "2"
    assert properties["min.insync.replicas"] == "2"
    assert all(isinstance(value, str) for value in properties.values())


def test_a_listener_for_the_controller_alone_has_a_protocol() -> None:
    properties = KAFKA.broker_properties(ENDPOINT, {"control.plane.listener.name": "CONTROL"})
    listeners = "PLAINTEXT://127.4.9.2:19092,CONTROL://127.4.9.2:19093"
    assert properties["listeners"] == listeners
    assert properties["listener.security.protocol.map"] == "PLAINTEXT:PLAINTEXT,CONTROL:PLAINTEXT"


def test_a_kraft_node_is_controller_and_broker_and_knows_the_voters() -> None:
    voters = tuple((node, Address(f"127.4.9.{node}", 9093)) for node in (1, 2, 3))
    properties = KRAFT.broker_properties(replace(ENDPOINT, voters=voters), {})
    assert properties["process.roles"] == "broker,controller"
    assert properties["node.id"] == "2"
    listeners = "PLAINTEXT://127.4.9.2:19092,CONTROLLER://127.4.9.2:19093"
    assert properties["listeners"] == listeners
    advertised = "PLAINTEXT://127.4.9.2:9092,CONTROLLER://127.4.9.2:9093"
    assert properties["advertised.listeners"] == advertised
    quorum = "1@127.4.9.1:9093,2@127.4.9.2:9093,3@127.4.9.3:9093"
    assert properties["controller.quorum.voters"] == quorum
    assert not [name for name in properties if "zookeeper" in name]


def test_controllers_apart_from_brokers_are_the_voters() -> None:
    apart = KAFKA.with_options({"kafka-version": "4.1.1", "controllers": "3"})
    assert apart.options == {"kafka-version": "4.1.1", "controllers": "3"}
    assert (controllers_of(apart), controllers_of(KRAFT)) == (3, 0)
    addresses = {
        f"controller-{number}": Address(f"127.4.9.{50 + number}", 9093) for number in (1, 2, 3)
    }
    quorum = voters(addresses, addresses.__getitem__)
    broker = apart.broker_properties(replace(ENDPOINT, voters=quorum), {})
    assert broker["process.roles"] == "broker"
    assert broker["listeners"] == "PLAINTEXT://127.4.9.2:19092"
    endpoint = replace(
        ENDPOINT,
        broker_id=1002,
        bind=Address("127.4.9.52", 19093),
        advertised=addresses["controller-2"],
        voters=quorum,
    )
    controller = apart.broker_properties(endpoint, {})
    assert controller["process.roles"] == "controller"
    assert controller["node.id"] == "1002"
    assert controller["listeners"] == "CONTROLLER://127.4.9.52:19093"
    assert controller["advertised.listeners"] == "CONTROLLER://127.4.9.52:9093"
    expected = "1001@127.4.9.51:9093,1002@127.4.9.52:9093,1003@127.4.9.53:9093"
    assert broker["controller.quorum.voters"] == controller["controller.quorum.voters"] == expected


def test_controllers_are_refused_with_zookeeper_and_in_numbers_that_cannot_be() -> None:
    with pytest.raises(UsageError, match=r"Kafka 3\.9\.1 runs with ZooKeeper"):
        KAFKA.with_options({"kafka-version": "3.9.1", "controllers": "3"})
    for wrong in ("-1", "8", "x"):
        with pytest.raises(UsageError, match=f"--controllers is {wrong}: expected 0"):
            KAFKA.with_options({"kafka-version": "4.1.1", "controllers": wrong})


def test_a_kraft_cluster_has_no_zookeeper_and_its_voters_stay() -> None:
    assert not uses_zookeeper(KRAFT)
    hidden = {EventSource.METADATA_LOG, EventSource.REPLICA_SAMPLES}
    assert KAFKA.observes - KRAFT.observes == hidden
    assert KRAFT.observes - KAFKA.observes == OF_QUORUM
    assert {BrokerMembership, BrokerEpochs} <= KRAFT.missing({}).keys() - KAFKA.missing({}).keys()


def test_a_comma_in_the_path_of_the_logs_is_refused() -> None:
    split = replace(ENDPOINT, log_dirs=(Path("/runs/a,b/data"),))
    with pytest.raises(UsageError, match=r"/runs/a,b/data has a comma, .* choose another --store"):
        KAFKA.broker_properties(split, {})


def test_what_the_runtime_decides_is_refused() -> None:
    with pytest.raises(UsageError, match=r"log.dirs is set by the runtime, leave it out"):
        KAFKA.broker_properties(ENDPOINT, {"log.dirs": "/data"})


def test_the_version_is_chosen() -> None:
    assert KAFKA.options == {"kafka-version": "3.9.1"}
    assert KAFKA.with_options({"kafka-version": "3.8.0"}).options == {"kafka-version": "3.8.0"}


def test_a_home_directory_decides_the_version(home: Path) -> None:
    chosen = KAFKA.with_options({"kafka-home": str(home)})
    assert chosen.options == {"kafka-version": "3.6.2", "kafka-home": str(home)}
    assert chosen.with_options(chosen.options).options == chosen.options
    command = chosen.broker_program(1, Path("/run/config/broker-1.json"), None).command
    assert command[-2:] == ["--jars", str(home / "libs")]


def test_stored_classes_go_with_the_jars(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(home / "cache"))
    chosen = KAFKA.with_options({"kafka-home": str(home)})
    before = chosen.broker_program(1, Path("broker.json"), None)
    assert before.paths == (home / "libs",)
    archive = class_archive(home / "libs")
    archive.touch()
    afterwards = chosen.broker_program(1, Path("broker.json"), None)
    assert afterwards.paths == (home / "libs", archive)
    assert afterwards.command == [*before.command, f"--classes={archive}"]


def test_a_home_directory_of_another_version_is_refused(home: Path) -> None:
    with pytest.raises(UsageError, match=r"expected Kafka 3.9.1, got 3.6.2: leave --kafka-version"):
        KAFKA.with_options({"kafka-home": str(home), "kafka-version": "3.9.1"})


def test_an_option_of_another_target_is_refused() -> None:
    with pytest.raises(UsageError, match="the target reference has no such option"):
        TARGETS["reference"].with_options({"kafka-version": "3.9.1"})
    with pytest.raises(UsageError, match="--flavour: the target kafka has no such option"):
        KAFKA.with_options({"flavour": "vanilla"})


def test_jvms_have_no_disk_of_ours_no_traces_and_no_planted_bugs() -> None:
    missing = KAFKA.missing({})
    assert {DiskCommands, Traces, PlantedBugs} <= missing.keys()
    assert Containers not in missing


def test_a_protocol_without_topic_ids_is_refused() -> None:
    with pytest.raises(UsageError, match=r"inter.broker.protocol.version is '2.6'"):
        KAFKA.missing({"inter.broker.protocol.version": "2.6"})


@pytest.mark.parametrize("version", ["1.0.2", "2.8.0", "3.2.3"])
def test_a_release_that_clients_cannot_drive_is_refused(version: str) -> None:
    with pytest.raises(UsageError, match="which the clients of the harness send"):
        KAFKA.with_options({"kafka-version": version})


def test_what_brokers_log_of_replicas_is_judged_when_it_is_asked_for() -> None:
    for version in ("3.9.1", "4.1.1"):
        silent = KAFKA.with_options({"kafka-version": version})
        options = {"kafka-version": version, "broker-logs": "judged"}
        judged = silent.with_options(options)
        assert judged.options == options
        assert judged.observes - silent.observes == {EventSource.BROKER_LOGS}
        endpoint = replace(ENDPOINT, trace_file=Path("/run/raw/broker-2.jsonl"))
        file = {"trace.file": "/run/raw/broker-2.jsonl"}
        assert (
            dict(
                judged.broker_properties(endpoint, {}).items()
                - silent.broker_properties(endpoint, {}).items()
            )
            == file
        )
        assert "trace.file" not in judged.broker_properties(ENDPOINT, {})


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"broker-logs": "yes"}, "broker-logs is 'yes': expected judged, or leave it out"),
        (
            {"broker-logs": "judged", "kafka-version": "3.6.2"},
            r"not known what brokers of Kafka 3.6.2 log .*: choose a release out of 3.9, 4.0, 4.1",
        ),
    ],
)
def test_logs_that_cannot_be_read_are_refused(options: dict[str, str], sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        KAFKA.with_options(options)


def test_a_home_directory_without_log4j_2_has_no_logs_of_replicas(tmp_path: Path) -> None:
    (tmp_path / "libs").mkdir()
    (tmp_path / "libs" / "kafka_2.13-3.9.1.jar").touch()
    options = {"broker-logs": "judged", "kafka-home": str(tmp_path)}
    with pytest.raises(UsageError, match=r"needs log4j 2, which .*libs does not have: leave"):
        KAFKA.with_options(options)
    (tmp_path / "libs" / "log4j-core-2.24.3.jar").touch()
    assert EventSource.BROKER_LOGS in KAFKA.with_options(options).observes
