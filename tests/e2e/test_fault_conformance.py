"""One conformance suite for faults, run against every runtime (see ``conformance``)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from nemesis.faults import FAULTS
from nemesis.faults.partition import Partition
from nemesis.interfaces.runtime import Link, Runtime
from nemesis.runtimes.config import ClusterConfig
from nemesis.runtimes.docker.machine import packet_features
from nemesis.runtimes.docker.runtime import DockerRuntime
from nemesis.runtimes.local import LocalRuntime
from nemesis.runtimes.simulation import SimulationRuntime, SimulationRuntimeConfig
from nemesis.simulation.loop import Schedule, SimulationLoop
from nemesis.simulation.memory_record import MemoryRecord
from tests.e2e import conformance_table
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


class LeavesOneDirectionCut(SimulationRuntime):
    """Forgets a link when it heals."""

    async def restore(self, links: frozenset[Link]) -> None:
        await super().restore(links - {min(links, key=str)})


class CutsBothDirections(SimulationRuntime):
    """Holds more than it is told, and lets go of it again."""

    async def cut(self, links: frozenset[Link]) -> None:
        await super().cut(_both_directions(links))

    async def restore(self, links: frozenset[Link]) -> None:
        await super().restore(_both_directions(links))


class CutsNothing(SimulationRuntime):
    """Says yes and does nothing."""

    async def cut(self, links: frozenset[Link]) -> None:
        del links


class SlowsEverybody(SimulationRuntime):
    """Delays all links when it is to delay some."""

    async def delay(self, links: frozenset[Link], *, delay_ms: int) -> None:
        nodes = [*self.brokers, *self.zookeepers, *self.clients]
        everything = frozenset(Link(a, b) for a in nodes for b in nodes if a != b)
        await super().delay(everything | links, delay_ms=delay_ms)


def _both_directions(links: frozenset[Link]) -> frozenset[Link]:
    return links | {Link(link.target, link.source) for link in links}


def test_simulation() -> None:
    assert _simulated(SimulationRuntime) == conformance_table.kinds("simulation")


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
    broken: type[SimulationRuntime], complaint: str
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
@EXTENTS
def test_docker(tmp_path: Path, partitions: Partitions) -> None:
    build_image()
    _conforms(DockerRuntime(_config(tmp_path), packet_features()), partitions)


def _simulated(kind: type[SimulationRuntime]) -> list[str]:
    loop = SimulationLoop(Schedule(SEED, 0.0))
    config = SimulationRuntimeConfig(
        broker_count=BROKERS,
        client_count=CLIENTS,
        broker_properties=BROKER_PROPERTIES,
        seed=SEED,
        log_dirs=LOG_DIRS,
    )
    runtime = kind(config, loop, MemoryRecord(loop.clock_ns))

    async def scene() -> list[str]:
        await runtime.start()
        try:
            return await conform(runtime, loop.clock_ns, partitions=all_partitions())
        finally:
            await runtime.stop()

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
        await runtime.start()
        try:
            return await conform(runtime, time.monotonic_ns, partitions=partitions())
        finally:
            await runtime.stop()

    conformed = asyncio.run(scene())
    wanted = conformance_table.kinds(runtime.name)
    why_not = {
        name: runtime.lacks[FAULTS[name].capability]
        for name in wanted
        if FAULTS[name].capability in runtime.lacks
    }
    assert conformed == [name for name in wanted if name not in why_not]
    if why_not:
        pytest.skip(f"all conform but those that this machine cannot do: {why_not}")
