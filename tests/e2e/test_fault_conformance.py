"""One conformance suite for faults, run against every runtime (see ``conformance``)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from nemesis.faults import FAULTS
from nemesis.faults.availability import kinds_of
from nemesis.faults.partition import Partition
from nemesis.interfaces.links import Link
from nemesis.interfaces.runtime import Runtime, first_missing, missing_of
from nemesis.runtimes.config import ClusterConfig
from nemesis.runtimes.docker.machine import packet_features
from nemesis.runtimes.docker.runtime import DockerRuntime
from nemesis.runtimes.local import LocalRuntime
from nemesis.runtimes.simulation import SimulationRuntime, SimulationRuntimeConfig
from nemesis.runtimes.simulation.network import SimulationNetwork
from nemesis.simulation.loop import Schedule, SimulationLoop
from nemesis.simulation.memory_record import MemoryRecord
from tests.e2e.conformance import (
    BROKER_PROPERTIES,
    BROKERS,
    CLIENTS,
    LOG_DIRS,
    SEED,
    Deviation,
    all_partitions,
    conform,
    some_partitions,
)
from tests.e2e.docker_machine import build_image, needs_docker

Partitions = Callable[[], Iterator[Partition]]

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]


@pytest.fixture(autouse=True)
def _surroundings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEMESIS_RUNTIME_DIR", str(tmp_path))


class LeavesOneDirectionCut(SimulationNetwork):
    """Forgets a link when it heals."""

    async def restore(self, links: frozenset[Link]) -> None:
        await super().restore(links - {min(links, key=str)})


class CutsBothDirections(SimulationNetwork):
    """Holds more than it is told, and lets go of it again."""

    async def cut(self, links: frozenset[Link]) -> None:
        await super().cut(_both_directions(links))

    async def restore(self, links: frozenset[Link]) -> None:
        await super().restore(_both_directions(links))


class CutsNothing(SimulationNetwork):
    """Says yes and does nothing."""

    async def cut(self, links: frozenset[Link]) -> None:
        del links


class SlowsEverybody(SimulationNetwork):
    """Delays all links when it is to delay some."""

    @property
    def delays(self) -> SlowsEverybody:
        return self

    async def delay(self, links: frozenset[Link], *, delay_ms: int) -> None:
        cluster = self.machines
        nodes = [*cluster.brokers, *cluster.zookeepers, *cluster.clients]
        everything = frozenset(Link(a, b) for a in nodes for b in nodes if a != b)
        await super().delay(everything | links, delay_ms=delay_ms)


def _both_directions(links: frozenset[Link]) -> frozenset[Link]:
    return links | {Link(link.target, link.source) for link in links}


def test_simulation() -> None:
    assert _simulated(SimulationNetwork) == kinds_of("simulation")


@pytest.mark.parametrize(
    ("broken", "complaint"),
    [
        (LeavesOneDirectionCut, "is not seen to be healed|after .* holds something"),
        (CutsBothDirections, "during .* holds something"),
        (CutsNothing, "had no effect"),
        (SlowsEverybody, "during SlowLink.* takes "),
    ],
)
def test_a_runtime_that_does_too_little_or_too_much_does_not_pass(
    broken: type[SimulationNetwork], complaint: str
) -> None:
    with pytest.raises(Deviation, match=complaint):
        _simulated(broken)


EXTENTS = pytest.mark.parametrize(
    "partitions",
    [
        pytest.param(some_partitions, id="some-partitions"),
        pytest.param(all_partitions, id="all-partitions", marks=pytest.mark.nightly),
    ],
)


@EXTENTS
def test_local(tmp_path: Path, partitions: Partitions) -> None:
    _conforms(LocalRuntime(_config(tmp_path)), partitions)


@needs_docker
@pytest.mark.nightly  # test_docker_runtime.py strikes each kind of fault once
@EXTENTS
def test_docker(tmp_path: Path, partitions: Partitions) -> None:
    build_image()
    _conforms(DockerRuntime(_config(tmp_path), packet_features()), partitions)


def _simulated(kind: type[SimulationNetwork]) -> list[str]:
    loop = SimulationLoop(Schedule(SEED, 0.0))
    config = SimulationRuntimeConfig(
        broker_count=BROKERS,
        client_count=CLIENTS,
        broker_properties=BROKER_PROPERTIES,
        seed=SEED,
        log_dirs=LOG_DIRS,
    )
    runtime = SimulationRuntime(config, loop, MemoryRecord(loop.clock_ns))
    runtime.network = kind(runtime.machines)

    async def scene() -> list[str]:
        await runtime.lifecycle.start()
        try:
            return await conform(runtime, loop.clock_ns, partitions=all_partitions())
        finally:
            await runtime.lifecycle.stop()

    try:
        return loop.run_until_complete(scene())
    finally:
        loop.close()


def _config(tmp_path: Path) -> ClusterConfig:
    run = tmp_path / "run"
    run.mkdir()
    return ClusterConfig(
        broker_count=BROKERS,
        client_count=CLIENTS,
        broker_properties=BROKER_PROPERTIES,
        log_dirs=LOG_DIRS,
        run_directory=run,
        seed=SEED,
    )


def _conforms(runtime: Runtime, partitions: Partitions) -> None:
    """Try all that this machine can do; skip in the end, with the reasons, when that is not all."""

    async def scene() -> list[str]:
        await runtime.lifecycle.start()
        try:
            return await conform(runtime, time.monotonic_ns, partitions=partitions())
        finally:
            await runtime.lifecycle.stop()

    conformed = asyncio.run(scene())
    wanted, missing = kinds_of(runtime.name), missing_of(runtime)
    why_not = {
        name: lacking.reason
        for name in wanted
        if (lacking := first_missing(FAULTS[name].needs, missing)) is not None
    }
    assert conformed == [name for name in wanted if name not in why_not]
    if why_not:
        pytest.skip(f"all conform but those that this machine cannot do: {why_not}")
