"""A partition strikes only while it can be measured that it does."""

from __future__ import annotations

import asyncio
from random import Random
from typing import Any, cast

import pytest

from nemesis.faults import partition as partition_module
from nemesis.faults.base import Fault, FaultContext, SelectorUnresolved
from nemesis.faults.cluster_view import ClusterSnapshot
from nemesis.faults.delay_control import DelayControl
from nemesis.faults.partition import Partition, ShapeName, surroundings
from nemesis.faults.stall import StallFollower
from nemesis.interfaces.errors import FaultLost
from nemesis.interfaces.links import Link, LinkCounters
from tests.nemesis.faults.partial_runtime import runtime_of


class QuietView:
    async def snapshot(self) -> ClusterSnapshot:
        return ClusterSnapshot()


class ProbedRuntime:
    """Links that hold, and probes of which the first ``missed`` are not answered."""

    brokers = ("broker-1", "broker-2", "broker-3")
    zookeepers = ("zookeeper-1",)
    clients = ("client-1",)

    def __init__(self, *, dead: str = "", missed: int = 0, fails: bool = False) -> None:
        self.dead = dead
        self.missed = missed
        self.fails = fails
        self.held: frozenset[Link] = frozenset()

    def is_alive(self, node: str) -> bool:
        return node != self.dead

    async def cut(self, links: frozenset[Link]) -> None:
        self.held |= links
        if self.fails:
            raise FaultLost("the helper died")

    @property
    def requests(self) -> ProbedRuntime:
        return self

    async def hold(self, links: frozenset[Link]) -> None:
        await self.cut(links)

    async def release(self, links: frozenset[Link]) -> None:
        await self.restore(links)

    async def restore(self, links: frozenset[Link]) -> None:
        self.held -= links

    async def counters(self, links: frozenset[Link]) -> dict[Link, LinkCounters]:
        return {link: LinkCounters(0, 1) for link in links}

    async def probe(self, source: str, target: str, *, timeout_s: float) -> bool:
        del timeout_s
        self.missed -= 1
        return self.missed < 0 and Link(source, target) not in self.held


@pytest.fixture(autouse=True)
def _no_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partition_module, "PROBE_INTERVAL_S", 0.0)


BRIDGE = Partition(shape="bridge", selector="broker-1")


def context(runtime: ProbedRuntime) -> FaultContext:
    parts = runtime_of(runtime, network=runtime, processes=runtime)
    return FaultContext.of(parts, cast("Any", QuietView()))


def test_a_bridge_with_one_side_dead_is_unresolved_because_nothing_could_be_measured() -> None:
    with pytest.raises(SelectorUnresolved, match="no probe can cross what bridge around broker-1"):
        asyncio.run(BRIDGE.aim(context(ProbedRuntime(dead="broker-3")), Random(1)))


@pytest.mark.parametrize(("missed", "is_effective"), [(0, True), (2, True), (3, False)])
def test_the_probes_before_the_hold_are_repeated_twice(missed: int, is_effective: bool) -> None:
    async def scene() -> bool:
        strike = await BRIDGE.aim(context(ProbedRuntime(missed=missed)), Random(1))
        return (await strike.apply()).is_effective

    assert asyncio.run(scene()) is is_effective


@pytest.mark.parametrize(
    "fault", [BRIDGE, StallFollower(selector="broker-1"), DelayControl(selector="broker-1")]
)
def test_links_that_were_held_when_a_helper_failed_are_let_go(fault: Fault) -> None:
    """A cluster that stays cut would not converge, and the harness's failure would convict it."""
    runtime = ProbedRuntime(fails=True)

    async def scene() -> None:
        strike = await fault.aim(context(runtime), Random(1))
        with pytest.raises(FaultLost):
            await strike.apply()
        assert runtime.held
        await strike.undo()

    asyncio.run(scene())
    assert not runtime.held


CONTROLLERS = ["controller-1", "controller-2", "controller-3"]
AROUND = {
    "brokers": ["broker-1", "broker-2"],
    "controllers": CONTROLLERS,
    "zookeepers": [],
    "clients": ["client-1"],
}


def cut_from(victim: str, shape: ShapeName) -> dict[str, list[str]]:
    """Whom the victim no longer hears, and who no longer hears it."""
    around = surroundings(victim, **AROUND)
    chosen = Partition(shape=shape, duration_s=5.0).grudge(
        victim,
        brokers=around.peers,
        zookeepers=around.apart,
        clients=around.clients,
        rng=Random(3),
    )
    return {node: sorted(deaf) for node, deaf in chosen.items()}


def test_a_broker_is_cut_from_controllers_that_are_no_brokers_as_from_zookeeper() -> None:
    assert cut_from("broker-1", "from-zookeeper")["broker-1"] == CONTROLLERS
    assert cut_from("broker-1", "one-node")["broker-1"] == ["broker-2"]


def test_a_partition_around_a_controller_is_one_among_the_controllers() -> None:
    others = ["controller-1", "controller-3"]
    for shape in ("one-node", "from-zookeeper", "halves"):
        assert cut_from("controller-2", shape)["controller-2"] == others, shape
    assert cut_from("controller-2", "from-clients")["controller-2"] == AROUND["brokers"]
    bridged = cut_from("controller-2", "bridge")
    assert sorted(bridged) == others
    apart = cut_from("controller-2", "with-clients")
    assert apart["controller-2"] == apart["broker-1"] == others
