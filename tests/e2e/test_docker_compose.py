"""The compose file that a run writes is one that compose takes: a person can bring the same cluster up by hand."""

from __future__ import annotations

import asyncio
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

import pytest

from nemesis.running.clean import clean
from nemesis.runtimes.config import ClusterConfig
from nemesis.runtimes.docker import compose_file, engine
from nemesis.runtimes.docker.machine import packet_features
from nemesis.runtimes.docker.runtime import DockerRuntime
from tests.e2e.command import wait_until
from tests.e2e.docker_machine import build_image, needs_docker, run_id_of, things
from tests.e2e.onlooker import brokers_known

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


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of a run that is over."""
    build_image()
    directory = tmp_path_factory.mktemp("run")
    config = ClusterConfig(broker_count=2, client_count=1, run_directory=directory)
    runtime = DockerRuntime(config, packet_features())

    async def go() -> None:
        await runtime.lifecycle.start()
        await runtime.lifecycle.stop()

    asyncio.run(go())
    return directory


@pytest.fixture
def cluster(run: Path, compose: list[str]) -> Iterator[Path]:
    """Its compose file; what is brought up of it is taken down at the end."""
    file = run / compose_file.FILE_NAME
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
        nodes = client.containers.list(
            all=True, ignore_removed=True, filters={"label": f"nemesis.running.run={run_id}"}
        )
        return {node.labels["nemesis.node"]: node.health for node in nodes}


def test_a_person_brings_the_cluster_up_and_away_again(compose: list[str], cluster: Path) -> None:
    services = compose_file.read(cluster)["services"]
    run_id = run_id_of(cluster.parent)
    assert things(run_id) == []
    call(compose, cluster, "up", "--detach")
    deadline = time.monotonic() + START_TIMEOUT_S
    while set(health(run_id).values()) != {"healthy"} and time.monotonic() < deadline:
        time.sleep(0.5)
    assert health(run_id) == dict.fromkeys(services, "healthy")
    before = things(run_id)
    clean()
    assert things(run_id) == before, "a cluster that a person brought up is theirs to end"
    addresses = {
        number: services[f"broker-{number}"]["networks"]["cluster"]["ipv4_address"]
        for number in (1, 2)
    }
    wait_until(lambda: brokers_known(f"{addresses[1]}:9092") == addresses, "knowing both brokers")
    call(compose, cluster, "down", "--volumes", "--timeout", "2")
    assert things(run_id) == []
