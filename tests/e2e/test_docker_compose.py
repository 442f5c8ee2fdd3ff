"""The compose file that a run writes is one that compose takes: a person can bring the same cluster up by hand."""

from __future__ import annotations

import subprocess
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import closing
from ipaddress import IPv4Network
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from nemesis.clean import clean
from nemesis.runtimes.docker import compose_file, engine
from nemesis.runtimes.docker.image import ensure_image
from tests.e2e.docker_machine import needs_docker, things

SUBNET = IPv4Network("198.19.255.0/24")
HOSTS = {f"broker-{number}": str(SUBNET[20 + number]) for number in (1, 2)}
START_TIMEOUT_S = 60.0


def answers(program: Sequence[str]) -> bool:
    """Whether this compose is here."""
    try:
        return (
            subprocess.run([*program, "version"], capture_output=True, check=False).returncode == 0
        )
    except FileNotFoundError:
        return False


pytestmark = [pytest.mark.e2e, pytest.mark.timeout(1_200), needs_docker]


@pytest.fixture(params=["docker compose", "docker-compose"])
def compose(request: pytest.FixtureRequest) -> list[str]:
    """How the newer and the older compose are called."""
    program: list[str] = request.param.split()
    if not answers(program):
        pytest.skip(f"`{request.param}` is not here")
    return program


@pytest.fixture
def cluster(tmp_path: Path, compose: list[str]) -> Iterator[Path]:
    """The compose file of a cluster of two brokers, which is taken down at the end."""
    with closing(engine.connect()) as client:
        image = ensure_image(client, progress=print)
    ensemble = ",".join(f"{SUBNET[host]}:2181" for host in (11, 12, 13))
    brokers: dict[str, dict[str, object]] = {
        node: {
            "broker.id": int(node.removeprefix("broker-")),
            "host": host,
            "port": 9092,
            "advertised.host": host,
            "advertised.port": 9092,
            "zookeeper.connect": ensemble,
            "log.dirs": [str(compose_file.DATA_DIRECTORY)],
            "trace.file": str(compose_file.TRACE_FILE),
        }
        for node, host in HOSTS.items()
    }
    described = compose_file.effective(
        compose_file.read_template(),
        run_id=f"test-{uuid.uuid4().hex[:8]}",
        subnet=SUBNET,
        image=image,
        hosts=HOSTS,
        brokers=brokers,
    )
    file = tmp_path / compose_file.FILE_NAME
    compose_file.write(described, file)
    yield file
    call(compose, file, "down", "--volumes", "--timeout", "2")


def call(compose: Sequence[str], file: Path, *arguments: str) -> str:
    done = subprocess.run(
        [*compose, "--file", str(file), *arguments],
        cwd=file.parent,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def health(run_id: str) -> dict[str, str]:
    """Return what the health checks say, by node."""
    with closing(engine.connect()) as client:
        nodes = client.containers.list(all=True, filters={"label": f"nemesis.run={run_id}"})
        return {node.labels["nemesis.node"]: node.health for node in nodes}


def known_brokers() -> dict[int, str]:
    """Return what a foreign client is told of the cluster."""
    admin = AdminClient({"bootstrap.servers": f"{HOSTS['broker-1']}:9092"})
    deadline = time.monotonic() + START_TIMEOUT_S
    while True:
        found = admin.list_topics(timeout=START_TIMEOUT_S).brokers
        if len(found) == len(HOSTS) or time.monotonic() > deadline:
            return {number: broker.host for number, broker in found.items()}
        time.sleep(0.05)


def test_a_person_brings_the_cluster_up_and_away_again(compose: list[str], cluster: Path) -> None:
    services = compose_file.read(cluster)["services"]
    run_id = services["broker-1"]["labels"]["nemesis.run"]
    call(compose, cluster, "up", "--detach")
    deadline = time.monotonic() + START_TIMEOUT_S
    while set(health(run_id).values()) != {"healthy"} and time.monotonic() < deadline:
        time.sleep(0.5)
    assert health(run_id) == dict.fromkeys(services, "healthy")
    before = things(run_id)
    clean()
    assert things(run_id) == before, "a cluster that a person brought up is theirs to end"
    assert known_brokers() == {1: HOSTS["broker-1"], 2: HOSTS["broker-2"]}
    call(compose, cluster, "down", "--volumes", "--timeout", "2")
    assert things(run_id) == []
