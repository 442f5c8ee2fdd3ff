"""Power cuts, full and failing disks of real brokers in containers, each with an ext4 of its own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random

import pytest

from nemesis.faults.base import Fault, FaultContext, Strike
from nemesis.faults.disk import DiskFailure, DiskFull
from nemesis.faults.power_cut import PowerCut
from nemesis.faults.zookeeper_view import ZooKeeperView
from nemesis.interfaces.cluster import bootstrap
from nemesis.interfaces.unsupported import supported
from nemesis.runtimes.config import ClusterConfig
from nemesis.runtimes.docker.disks import loop
from nemesis.runtimes.docker.machine import disk_obstacle, packet_features
from nemesis.runtimes.docker.runtime import DockerRuntime
from nemesis.support.journal import read_journals
from tests.e2e.command import SCENARIO, events, latest
from tests.e2e.docker_machine import build_image, needs_docker, things
from tests.e2e.onlooker import Watcher, create_topic, produce
from tests.e2e.verdicts import valid_run

reason = "there is no engine" if needs_docker.args[0] else disk_obstacle()
pytestmark = [
    pytest.mark.e2e,
    pytest.mark.timeout(300, func_only=True),
    needs_docker,
    pytest.mark.skipif(bool(reason), reason=reason or "there are disks"),
]

PROPERTIES = {
    "zookeeper.session.timeout.ms": 2_000,
    "replica.lag.time.max.ms": 1_500,
    "replica.fetch.wait.max.ms": 200,
    "replica.fetch.backoff.ms": 200,
    "replica.high.watermark.checkpoint.interval.ms": 1_000,
}
TOPIC = "t"
MORE_THAN_A_BLOCK = bytes(65_536)
ALL = {1, 2, 3}
PLAN = """\
- {at_s: 4, fault: power-cut, target: leader, duration_s: 5}
- {at_s: 14, fault: disk-full, target: leader, duration_s: 5}
- {at_s: 24, fault: disk-failure, target: controller, duration_s: 5}
"""


@pytest.fixture(scope="module", autouse=True)
def _machine() -> None:
    build_image()
    packet_features()


@pytest.fixture(autouse=True)
def _surroundings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEMESIS_RUNTIME_DIR", str(tmp_path))


@asynccontextmanager
async def running(
    run_directory: Path,
) -> AsyncIterator[tuple[DockerRuntime, Watcher, FaultContext]]:
    """A cluster of three with a topic that all three have; nothing of it is left afterwards."""
    runtime = DockerRuntime(
        ClusterConfig(
            broker_count=3,
            client_count=1,
            run_directory=run_directory,
            broker_properties=PROPERTIES,
        ),
        packet_features(),
    )
    await runtime.lifecycle.start()
    [(_, journal)] = read_journals()
    assert journal is not None
    [run_id] = journal.engine_runs
    try:
        assert len(loop.devices_of(run_id)) == len(ALL)
        watcher = await asyncio.to_thread(Watcher, runtime.cluster.zookeeper_connect())
        try:
            await watcher.until(lambda: watcher.registered() == ALL)
            await asyncio.to_thread(create_topic, servers_of(runtime), TOPIC)
            await watcher.until(lambda: watcher.isr(TOPIC) == ALL)
            async with supported(runtime.ensemble).admin() as zookeeper:
                yield runtime, watcher, FaultContext.of(runtime, ZooKeeperView(zookeeper))
        finally:
            await asyncio.to_thread(watcher.close)
    finally:
        await runtime.lifecycle.stop()
        await runtime.lifecycle.collect()
    assert things(run_id) == []
    assert read_journals() == []


def servers_of(runtime: DockerRuntime) -> str:
    return ",".join(map(str, bootstrap(runtime.cluster)))


async def struck(fault: Fault, context: FaultContext) -> Strike:
    strike = await fault.aim(context, Random(1))
    assert (await strike.apply()).is_effective
    return strike


async def healed(strike: Strike, watcher: Watcher) -> None:
    await strike.undo()
    verified = await strike.verify()
    assert verified.is_effective, verified
    await watcher.until(lambda: watcher.registered() == ALL)
    await watcher.until(lambda: watcher.isr(TOPIC) == ALL)


async def power_cut(runtime: DockerRuntime, watcher: Watcher, context: FaultContext) -> None:
    """What its leader took a moment ago was not synced: the disk has it no more, and the broker catches up again."""
    leader = await asyncio.to_thread(watcher.leader, TOPIC)
    node = f"broker-{leader}"
    await asyncio.to_thread(produce, servers_of(runtime), TOPIC)
    strike = await PowerCut(selector=node).aim(context, Random(1))
    applied = await strike.apply()
    assert applied.is_effective
    assert not runtime.processes.is_alive(node)
    assert applied.detail[node]["device"].startswith("/dev/loop")
    assert applied.detail[node]["lost_bytes"] > 0
    await watcher.until(lambda: watcher.isr(TOPIC) == ALL - {leader})
    await healed(strike, watcher)


async def disk_fault(
    runtime: DockerRuntime, watcher: Watcher, context: FaultContext, fault: DiskFull
) -> None:
    """Kafka's broker halts when its last log directory has failed, which it learns when it needs more space."""
    node = fault.selector
    strike = await struck(fault, context)
    await asyncio.to_thread(produce, servers_of(runtime), TOPIC, MORE_THAN_A_BLOCK)
    await watcher.until(lambda: int(node[-1]) not in watcher.registered())
    assert not runtime.processes.is_alive(node)
    assert not (await strike.verify()).is_effective
    await asyncio.to_thread(produce, servers_of(runtime), TOPIC)
    await healed(strike, watcher)


def test_every_fault_has_its_effect_and_heals(tmp_path: Path) -> None:
    async def scene() -> None:
        async with running(tmp_path) as (runtime, watcher, context):
            await power_cut(runtime, watcher, context)
            await disk_fault(runtime, watcher, context, DiskFull(selector="broker-2"))
            await disk_fault(runtime, watcher, context, DiskFailure(selector="broker-3"))

    asyncio.run(scene())


def test_a_cluster_that_ends_in_the_middle_of_them_leaves_nothing(tmp_path: Path) -> None:
    async def scene() -> None:
        async with running(tmp_path) as (runtime, _, _):
            disks = supported(runtime.disks)
            await supported(disks.power).cut("broker-1")
            await disks.fill("broker-2")
            await disks.fail("broker-3")
        assert await runtime.lifecycle.stored_logs("broker-2")
        with pytest.raises(OSError, match=r"the data of .*broker-3 was not copied"):
            await runtime.lifecycle.stored_logs("broker-3")

    asyncio.run(scene())
    traces = [tmp_path / "raw" / f"broker-{number}.jsonl" for number in ALL]
    assert all(trace.stat().st_size for trace in traces)


@pytest.mark.nightly
def test_a_run_with_them_is_valid(tmp_path: Path) -> None:
    plan = tmp_path / "plan.yaml"
    plan.write_text(PLAN)
    options = ("--runtime", "docker", "--seed", "3", "--engine", "inline", "--time-limit", "40")
    valid_run(tmp_path, SCENARIO, *options, "--plan", str(plan))
    kinds = {"fault-applied": "measured", "fault-healed": "verified"}
    fault_events = [e for e in events(latest(tmp_path).resolve(), "nemesis") if e["kind"] in kinds]
    assert len(fault_events) == 2 * PLAN.count("fault:")
    assert all(event["effect"] == kinds[event["kind"]] for event in fault_events)
