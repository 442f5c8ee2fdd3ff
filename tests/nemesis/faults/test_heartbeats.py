"""How a session at a KRaft controller ends: heartbeats are held until the broker is fenced, then they pass again."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any, cast

from nemesis.faults.base import FaultContext, Measured
from nemesis.faults.cluster_view import ClusterSnapshot, Ephemeral
from nemesis.faults.heartbeats import HeartbeatStrike
from nemesis.interfaces.links import Link, LinkCounters
from nemesis.interfaces.unsupported import Unsupported
from tests.nemesis.faults.partial_runtime import runtime_of

BROKERS = ["broker-1", "broker-2", "broker-3"]
HEARTBEAT_BYTES = 50


class Network:
    """Links on which broker 2 sends a heartbeat whenever they are looked at."""

    strays = delays = connections = bandwidth = Unsupported("this test has no such part")

    def __init__(self, *, sends: bool) -> None:
        self.requests = self
        self.held: frozenset[Link] = frozenset()
        self.ever_held: set[Link] = set()
        self.held_bytes = self.forwarded_bytes = 0
        self._sends = sends

    async def hold(self, links: frozenset[Link]) -> None:
        self.held = links
        self.ever_held |= links

    async def release(self, links: frozenset[Link]) -> None:
        self.held -= links

    async def counters(self, links: Iterable[Link]) -> dict[Link, LinkCounters]:
        if self._sends and self.held:
            self.held_bytes += HEARTBEAT_BYTES
        elif self._sends:
            self.forwarded_bytes += HEARTBEAT_BYTES
        first, *others = sorted(links, key=str)
        counted = LinkCounters(self.forwarded_bytes, self.held_bytes)
        return {first: counted, **dict.fromkeys(others, LinkCounters(0, 0))}


class View:
    """The controller fences broker 2 at the third look after its heartbeats were held."""

    def __init__(self, network: Network) -> None:
        self._network = network
        self._looks = 0

    async def snapshot(self) -> ClusterSnapshot:
        self._looks += bool(self._network.held)
        fenced = {2} if self._looks >= 3 else set()
        return ClusterSnapshot(brokers={n: Ephemeral(n, 0, 0) for n in {1, 2, 3} - fenced})


def carry_out(network: Network) -> tuple[HeartbeatStrike, Measured, Measured]:
    async def scene() -> tuple[HeartbeatStrike, Measured, Measured]:
        cluster = SimpleNamespace(brokers=BROKERS, zookeepers=[])
        runtime = runtime_of(cluster, network=network)
        strike = HeartbeatStrike(FaultContext.of(runtime, cast("Any", View(network))), ["broker-2"])
        applied = await strike.apply()
        assert network.held
        await strike.undo()
        return strike, applied, await strike.verify()

    return asyncio.run(scene())


def test_heartbeats_to_every_controller_are_held_until_the_broker_is_fenced() -> None:
    network = Network(sends=True)
    strike, applied, healed = carry_out(network)
    assert strike.victims == ["broker-2"]
    assert network.ever_held == {Link("broker-2", node, api_key=63) for node in BROKERS}
    assert applied.is_effective
    assert applied.detail["still_registered"] == []
    assert applied.detail["held_heartbeat_bytes"] >= HEARTBEAT_BYTES
    assert not network.held
    assert healed.is_effective


def test_a_broker_that_sends_no_heartbeats_was_not_struck() -> None:
    _, applied, healed = carry_out(Network(sends=False))
    assert not applied.is_effective
    assert not healed.is_effective
