"""Wall clocks of containers that are off: a run with them is valid, and the brokers themselves tell the wrong time."""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path
from typing import Any

import pytest

from nemesis.history.zookeeper_log import read_log
from nemesis.interfaces.unsupported import supported
from nemesis.runtimes.clock_control.library import found_library
from nemesis.runtimes.config import ClusterConfig
from nemesis.runtimes.docker.machine import packet_features
from nemesis.runtimes.docker.runtime import DockerRuntime
from tests.e2e.command import SCENARIO, events, latest
from tests.e2e.docker_machine import build_image, needs_docker
from tests.e2e.onlooker import Watcher
from tests.e2e.verdicts import valid_run

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.timeout(200, func_only=True),
    needs_docker,
    pytest.mark.skipif(found_library() is None, reason="this machine has no C compiler"),
]

HOUR_MS = 3_600_000
NEAR_MS = 60_000
PLAN = f"""\
- {{at_s: 2, fault: clock-skew, target: all, offset_ms: {HOUR_MS}, drift: 0.5, duration_s: 6}}
- {{at_s: 3.5, fault: expire-session, target: controller}}
"""


@pytest.fixture(scope="module", autouse=True)
def _machine() -> None:
    build_image()
    packet_features()


@pytest.mark.nightly
def test_a_run_is_valid_though_all_brokers_are_an_hour_ahead(tmp_path: Path) -> None:
    plan = tmp_path / "plan.yaml"
    plan.write_text(PLAN)
    begin_ns = time.monotonic_ns()
    options = ("--plan", str(plan), "--time-limit", "15", "--engine", "inline")
    valid_run(tmp_path, SCENARIO, "--runtime", "docker", *options)
    end_ns = time.monotonic_ns()
    run = latest(tmp_path).resolve()
    applied, healed = (_of_clocks(run, kind) for kind in ("fault-applied", "fault-healed"))
    assert applied["effect"] == "measured"
    assert healed["effect"] == "verified"
    assert [clock["drift"] for clock in _clocks(applied)] == pytest.approx([0.5] * 3, abs=1e-3)
    assert [clock["drift"] for clock in _clocks(healed)] == pytest.approx([0.0] * 3, abs=1e-3)

    assert _ahead_of_zookeeper_ms(run) == pytest.approx([0, HOUR_MS], abs=NEAR_MS)

    times = [event["time"] for n in (1, 2, 3) for event in events(run, f"broker-{n}")]
    assert len(times) > 1_000
    assert begin_ns < min(times) < max(times) < end_ns


def _of_clocks(run: Path, kind: str) -> dict[str, Any]:
    (event,) = (
        event
        for event in events(run, "nemesis")
        if event["kind"] == kind and event["fault"] == "clock-skew"
    )
    return event


def _clocks(event: dict[str, Any]) -> list[dict[str, Any]]:
    detail: dict[str, dict[str, Any]] = json.loads(event["detail"])
    assert set(detail) == {"broker-1", "broker-2", "broker-3"}
    return list(detail.values())


def _ahead_of_zookeeper_ms(run: Path) -> list[int]:
    """How far each new controller was ahead, by the time in its znode, of ZooKeeper, whose clock is right."""
    log = read_log(run / "raw" / "zookeeper" / "zookeeper-1" / "version-2")
    return [
        int(json.loads(operation.data)["timestamp"]) - transaction.wall_ms
        for transaction in log.transactions
        for operation in transaction.operations
        if operation.path == "/controller" and operation.data
    ]


def test_a_clock_is_its_nodes_own_and_outlives_its_processes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seen in ZooKeeper: a broker registers with its time, and a znode has the time of the ensemble's leader."""
    monkeypatch.setenv("NEMESIS_RUNTIME_DIR", str(tmp_path))
    config = ClusterConfig(
        broker_count=1,
        client_count=1,
        run_directory=tmp_path / "run",
        broker_properties={"zookeeper.session.timeout.ms": 2_000},
    )

    async def scene() -> None:
        runtime = DockerRuntime(config, packet_features())
        await runtime.lifecycle.start()
        try:
            watcher = await asyncio.to_thread(Watcher, runtime.cluster.zookeeper_connect())
            try:
                await a_broker_alone(runtime, watcher)
                await the_ensemble(runtime, watcher)
            finally:
                await asyncio.to_thread(watcher.close)
        finally:
            await runtime.lifecycle.stop()

    asyncio.run(scene())


async def a_broker_alone(runtime: DockerRuntime, watcher: Watcher) -> None:
    for offset_ms in (-HOUR_MS, 0):
        skewed = await supported(runtime.clocks).skew("broker-1", offset_ms=offset_ms, drift=0.0)
        assert skewed["offset_ms"] == pytest.approx(offset_ms, abs=50)
        await runtime.processes.kill("broker-1")
        await watcher.until(lambda: watcher.registered() == set())
        await runtime.processes.restart("broker-1")
        await watcher.until(lambda: watcher.registered() == {1})
        registered_ms, true_ms = await asyncio.to_thread(watcher.registration_times_ms, 1)
        assert registered_ms - true_ms == pytest.approx(offset_ms, abs=NEAR_MS)


async def the_ensemble(runtime: DockerRuntime, watcher: Watcher) -> None:
    for offset_ms in (HOUR_MS, 0):
        for member in runtime.cluster.zookeepers:
            skewed = await supported(runtime.clocks).skew(member, offset_ms=offset_ms, drift=0.0)
            assert skewed["offset_ms"] == pytest.approx(offset_ms, abs=50)
        created_ms = await asyncio.to_thread(watcher.creation_time_ms, f"/at-{offset_ms}")
        assert created_ms - time.time() * 1000 == pytest.approx(offset_ms, abs=NEAR_MS)
