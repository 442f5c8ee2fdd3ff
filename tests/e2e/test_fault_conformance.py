"""One conformance suite for faults, run against every runtime (see ``conformance``)."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest

from nemesis.runtimes.base import Runtime
from nemesis.runtimes.clock_control.library import found_library
from nemesis.runtimes.config import ClusterConfig
from nemesis.runtimes.docker.machine import packet_features
from nemesis.runtimes.docker.runtime import DockerRuntime
from nemesis.runtimes.local import LocalRuntime
from nemesis.runtimes.simulation import SimulationRuntime, SimulationRuntimeConfig
from nemesis.simulation.loop import Schedule, SimulationLoop
from nemesis.simulation.memory_record import MemoryRecord
from tests.e2e import conformance_table
from tests.e2e.conformance import BROKER_PROPERTIES, SEED, conform
from tests.e2e.docker_machine import build_image, needs_docker

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

needs_clocks = pytest.mark.skipif(
    found_library() is None, reason="this machine has no C compiler, so not every fault"
)


@pytest.fixture(autouse=True)
def _surroundings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEMESIS_RUNTIME_DIR", str(tmp_path))


def test_simulation() -> None:
    loop = SimulationLoop(Schedule(SEED, 0.0))
    config = SimulationRuntimeConfig(
        broker_count=3, client_count=2, broker_properties=BROKER_PROPERTIES, seed=SEED
    )
    runtime = SimulationRuntime(config, loop, MemoryRecord(loop.clock_ns))

    async def scene() -> list[str]:
        await runtime.start()
        try:
            return await conform(runtime, loop.clock_ns)
        finally:
            await runtime.stop()

    try:
        assert loop.run_until_complete(scene()) == conformance_table.kinds("simulation")
    finally:
        loop.close()


@needs_clocks
def test_local(tmp_path: Path) -> None:
    runtime = LocalRuntime(_config(tmp_path))
    assert _conformed(runtime) == conformance_table.kinds("local")


@needs_docker
@needs_clocks
def test_docker(tmp_path: Path) -> None:
    build_image()
    runtime = DockerRuntime(_config(tmp_path), packet_features())
    assert _conformed(runtime) == conformance_table.kinds("docker")


def _config(tmp_path: Path) -> ClusterConfig:
    run = tmp_path / "run"
    run.mkdir()
    return ClusterConfig(
        broker_count=3,
        client_count=2,
        broker_properties=BROKER_PROPERTIES,
        run_directory=run,
        seed=SEED,
    )


def _conformed(runtime: Runtime) -> list[str]:
    async def scene() -> list[str]:
        await runtime.start()
        try:
            return await conform(runtime, time.monotonic_ns)
        finally:
            await runtime.stop()

    return asyncio.run(scene())
