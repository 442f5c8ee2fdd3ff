"""Faults of packets, on a network that counts what it would do to each; the real one is in the conformance suite."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Coroutine
from random import Random
from typing import Any, cast

import pytest

from nemesis.faults import bandwidth, packets
from nemesis.faults.bandwidth import Bandwidth
from nemesis.faults.base import DrawRange, Fault, FaultContext
from nemesis.faults.link_rules import Impair
from nemesis.faults.packets import (
    PacketDelay,
    PacketDuplication,
    PacketFault,
    PacketLoss,
    PacketReordering,
)
from nemesis.interfaces.errors import FaultUnsupported
from nemesis.interfaces.impairment import Impairment, PacketCounters
from nemesis.interfaces.links import Link
from nemesis.interfaces.network import BandwidthLimits
from nemesis.interfaces.packets import Packets
from nemesis.interfaces.runtime import EVERYWHERE, Missing, first_missing
from nemesis.interfaces.unsupported import supported
from nemesis.runtimes.local.runtime import UNSUPPORTED as LOCAL_UNSUPPORTED
from nemesis.runtimes.simulation.runtime import UNSUPPORTED as SIMULATION_UNSUPPORTED
from nemesis.support.errors import UsageError

NODES = frozenset({"broker-1", "broker-2", "broker-3"})
KINDS: list[type[PacketFault]] = [PacketLoss, PacketDelay, PacketDuplication, PacketReordering]
PACKETS_PER_PROBE = 10


class Network:
    """A runtime and its parts; a probe is ten packets each way. ``is_numb`` ignores what it is asked to do."""

    brokers = sorted(NODES)
    zookeepers = ["zookeeper-1"]  # noqa: RUF012
    clients = ["client-1"]  # noqa: RUF012

    def __init__(self, *, is_numb: bool = False) -> None:
        self.is_numb = is_numb
        self.impairments: dict[Link, Impairment] = {}
        self.rate = 1_000_000
        self._counted: defaultdict[Link, PacketCounters] = defaultdict(PacketCounters)

    def part(self) -> Network:
        return self

    cluster = network = processes = packets = bandwidth = property(part)

    def is_alive(self, node: str) -> bool:
        return True

    async def impair(self, links: frozenset[Link], impairment: Impairment) -> None:
        if not self.is_numb:
            self.impairments.update(dict.fromkeys(links, impairment))

    async def counters(self, links: frozenset[Link]) -> dict[Link, PacketCounters]:
        return {link: self._counted[link] for link in links}

    async def probe(self, source: str, target: str, *, timeout_s: float) -> bool:
        for link in (Link(source, target), Link(target, source)):
            bad = self.impairments.get(link, Impairment())
            packet_counters = PacketCounters(
                forwarded=PACKETS_PER_PROBE,
                lost=round(bad.loss * PACKETS_PER_PROBE),
                delayed=PACKETS_PER_PROBE if bad.delay_ms else 0,
                duplicated=round(bad.duplication * PACKETS_PER_PROBE),
                reordered=round(bad.reordering * PACKETS_PER_PROBE),
            )
            self._counted[link] = PacketCounters.of([self._counted[link], packet_counters])
        return True

    async def limit(self, node: str, *, rate_kbit_s: int) -> None:
        if not self.is_numb:
            self.rate = rate_kbit_s or 1_000_000

    async def measure(self, node: str, *, expected_kbit_s: int) -> int:
        return self.rate


class View:
    """ZooKeeper, of which nobody wants to know anything but that it is there."""

    async def snapshot(self) -> None:
        return None


def on(network: Network, test: Callable[[FaultContext], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(test(FaultContext.of(cast("Any", network), cast("Any", View()))))


@pytest.fixture(autouse=True)
def _short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packets, "EFFECT_TIMEOUT_S", 0.05)
    monkeypatch.setattr(packets, "MIN_INTERVAL_S", 0.001)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("peers", ["brokers", "clients", "zookeeper", "all"])
def test_a_packet_fault_is_measured_and_ends(kind: type[PacketFault], peers: Any) -> None:
    async def test(context: FaultContext) -> None:
        strike = await kind(selector="broker-1", peers=peers).aim(context, Random(1))
        applied = await strike.apply()
        assert applied.is_effective
        assert applied.detail[f"{kind.counted}_packets"] > 0
        assert not (await strike.verify()).is_effective
        await strike.undo()
        await strike.undo()
        assert set(network.impairments.values()) == {Impairment()}
        assert (await strike.verify()).is_effective

    network = Network()
    on(network, test)


@pytest.mark.parametrize("kind", KINDS)
def test_a_fault_that_does_nothing_has_no_effect(kind: type[PacketFault]) -> None:
    async def test(context: FaultContext) -> None:
        strike = await kind(selector="broker-1").aim(context, Random(1))
        assert not (await strike.apply()).is_effective

    on(Network(is_numb=True), test)


def test_a_narrow_pipe_is_measured_and_is_wide_again() -> None:
    async def test(context: FaultContext) -> None:
        strike = await Bandwidth(selector="broker-1", rate_kbit_s=1_000).aim(context, Random(1))
        assert (await strike.apply()).is_effective
        assert not (await strike.verify()).is_effective
        await strike.undo()
        assert (await strike.verify()).is_effective

    on(Network(), test)


@pytest.mark.parametrize("rate", [0, round(1_000 * bandwidth.MEASURED_EXCESS) + 1])
def test_a_pipe_that_carries_more_than_told_or_nothing_has_no_effect(rate: int) -> None:
    async def test(context: FaultContext) -> None:
        network.rate = rate
        strike = await Bandwidth(selector="broker-1", rate_kbit_s=1_000).aim(context, Random(1))
        assert not (await strike.apply()).is_effective

    network = Network(is_numb=True)
    on(network, test)


def test_several_faults_of_a_link_are_told_as_one_and_end_one_by_one() -> None:
    async def test(context: FaultContext) -> None:
        a, b = Link("a", "b"), Link("b", "a")
        loss, late = Impairment(loss=0.5), Impairment(delay_ms=30)
        lossy = context.links.guard(Impair(frozenset({a, b}), loss))
        await lossy.put()
        async with context.links.guard(Impair(frozenset({a}), late)):
            assert network.impairments == {a: Impairment(loss=0.5, delay_ms=30), b: loss}
            await lossy.remove()
            assert network.impairments == {a: late, b: Impairment()}
        assert network.impairments == {a: Impairment(), b: Impairment()}

    network = Network()
    on(network, test)


@pytest.mark.parametrize("kind", [*KINDS, Bandwidth])
def test_what_is_drawn_makes_sense_in_a_cluster(kind: type[Fault]) -> None:
    for seed in range(200):
        kind.draw(Random(seed), DrawRange(5.0, 7.0)).check(NODES)
    assert not kind.needs <= EVERYWHERE
    assert first_missing(kind.needs, SIMULATION_UNSUPPORTED) is not None
    assert first_missing(kind.needs, LOCAL_UNSUPPORTED) is not None


def test_jitter_beyond_the_delay_is_refused() -> None:
    with pytest.raises(UsageError, match="jitter_ms 200: allowed is at most its delay_ms, 100"):
        PacketDelay(delay_ms=100, jitter_ms=200).check(NODES)


@pytest.mark.parametrize("runtime", [SIMULATION_UNSUPPORTED, LOCAL_UNSUPPORTED])
def test_runtimes_whose_links_are_streams_refuse_them(runtime: Missing) -> None:
    with pytest.raises(FaultUnsupported, match="its links carry streams of bytes, not packets"):
        supported(runtime[Packets])
    with pytest.raises(FaultUnsupported, match="its links carry bytes at any speed"):
        supported(runtime[BandwidthLimits])
