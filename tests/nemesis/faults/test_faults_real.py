"""Every fault but the stall on real processes, the real proxy and a real ZooKeeper: measured, undone, verified.

The brokers are small processes without Kafka; the test itself owns the ephemerals that brokers would.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from random import Random

import pytest
from kazoo.client import KazooClient, KazooState

from nemesis.faults.base import Fault, FaultContext, Measured, SelectorUnresolved, Strike
from nemesis.faults.clock import ClockSkew
from nemesis.faults.kill import Kill
from nemesis.faults.partition import Partition
from nemesis.faults.pause import Pause
from nemesis.faults.restart import Restart
from nemesis.faults.session import ExpireSession
from nemesis.faults.zookeeper_view import ZooKeeperView
from nemesis.interfaces.unsupported import Unsupported, supported
from nemesis.runtimes.config import ClusterConfig
from nemesis.runtimes.local import LocalRuntime
from nemesis.targets import TARGETS
from tests.nemesis.runtimes.small_target import SmallTarget

pytestmark = pytest.mark.e2e

VERIFY_TIMEOUT_S = 10.0


@pytest.fixture(autouse=True)
def _surroundings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEMESIS_RUNTIME_DIR", str(tmp_path))
    monkeypatch.setitem(TARGETS._entries, "small", SmallTarget())


async def strike(fault: Fault, context: FaultContext) -> tuple[Strike, Measured, Measured]:
    """Aim, apply, undo, verify; return the strike and what was measured."""
    result = await fault.aim(context, Random(1))
    applied = await result.apply()
    await result.undo()
    loop = asyncio.get_running_loop()
    deadline = loop.time() + VERIFY_TIMEOUT_S
    healed = await result.verify()
    while not healed.is_effective and loop.time() < deadline:
        await asyncio.sleep(0.05)
        healed = await result.verify()
    return result, applied, healed


class Owner:
    """Stands for a broker's own ZooKeeper client."""

    def __init__(self, hosts: str) -> None:
        self.client = KazooClient(hosts=hosts, timeout=10)
        self.is_lost = False
        self.client.add_listener(self._listen)
        self.client.start()

    def _listen(self, state: str) -> None:
        self.is_lost |= state == KazooState.LOST

    def own(self, path: str, data: bytes) -> int:
        self.client.create(path, data, ephemeral=True, makepath=True)
        return int(self.client.client_id[0])


def test_faults_are_measured_and_undone(tmp_path: Path) -> None:
    async def scene() -> None:
        runtime = LocalRuntime(
            ClusterConfig(
                broker_count=3, client_count=1, run_directory=tmp_path / "run", target="small"
            )
        )
        await runtime.lifecycle.start()
        try:
            async with supported(runtime.ensemble).admin() as zookeeper:
                context = FaultContext.of(runtime, ZooKeeperView(zookeeper))
                await partitions(context)
                await incarnations(context)
                await clocks(context)
                await sessions(context, runtime.cluster.zookeeper_connect())
        finally:
            await runtime.lifecycle.stop()

    asyncio.run(scene())


async def partitions(context: FaultContext) -> None:
    for fault in (
        Partition(shape="one-node", selector="broker-1", zookeeper="majority"),
        Partition(shape="from-zookeeper", selector="broker-2", direction="mute"),
        Partition(shape="from-clients", selector="broker-3", direction="deaf"),
        Partition(shape="majority-ring", selector="one"),
        Partition(shape="bridge", selector="broker-2"),
    ):
        result, applied, healed = await strike(fault, context)
        assert applied.is_effective, (fault, applied)
        assert healed.is_effective, (fault, healed)
        assert "grudge" in result.intent


async def incarnations(context: FaultContext) -> None:
    for fault in (
        Kill(selector="broker-1"),
        Restart(selector="broker-2"),
        Pause(selector="broker-3"),
    ):
        result, applied, healed = await strike(fault, context)
        assert applied.is_effective, (fault, applied)
        assert healed.is_effective, (fault, healed)
        assert not context.stopped
        assert all(context.is_alive(node) for node in result.victims)


async def clocks(context: FaultContext) -> None:
    if isinstance(context.runtime.clocks, Unsupported):
        return
    for fault in (
        ClockSkew(selector="broker-1", offset_ms=3_600_000),
        ClockSkew(selector="all", offset_ms=-250, drift=-0.5),
        ClockSkew(selector="broker-2", drift=9.0),
    ):
        result, applied, healed = await strike(fault, context)
        assert applied.is_effective, (fault, applied)
        assert healed.is_effective, (fault, healed)
        assert applied.detail.keys() == set(result.victims)


async def sessions(context: FaultContext, hosts: str) -> None:
    owner = await asyncio.to_thread(Owner, hosts)
    try:
        with pytest.raises(SelectorUnresolved, match="there is no controller"):
            await ExpireSession().aim(context, Random(1))
        session = await asyncio.to_thread(owner.own, "/brokers/ids/2", b"{}")
        await asyncio.to_thread(owner.own, "/controller", b'{"brokerid": 2}')
        with pytest.raises(SelectorUnresolved, match="broker-1 has no session"):
            await ExpireSession(selector="broker-1").aim(context, Random(1))
        result, applied, healed = await strike(ExpireSession(), context)
        assert result.victims == ["broker-2"]
        assert result.intent == {"sessions": {"broker-2": session}}
        assert applied.is_effective, applied
        assert healed.is_effective
        snapshot = await context.view.snapshot()
        assert snapshot.controller is None
        assert snapshot.brokers == {}
        loop = asyncio.get_running_loop()
        deadline = loop.time() + VERIFY_TIMEOUT_S
        while not owner.is_lost:
            assert loop.time() < deadline, "the owner never learnt of its session's end"
            await asyncio.sleep(0.02)
    finally:
        await asyncio.to_thread(owner.client.stop)
        await asyncio.to_thread(owner.client.close)
