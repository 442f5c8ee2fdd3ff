"""Links that are slow, and connections that are reset."""

from __future__ import annotations

import asyncio
from random import Random
from types import SimpleNamespace
from typing import Any, cast

import pytest

from nemesis.faults.base import DrawRange, Fault, FaultContext, SelectorUnresolved
from nemesis.faults.connections import ResetConnections, SlowLink
from nemesis.faults.link_rules import Delay, LinkRules
from nemesis.faults.partition import Partition
from nemesis.interfaces.links import Link
from nemesis.interfaces.runtime import EVERYWHERE, Runtime
from tests.nemesis.faults.simulated_cluster import healed, in_cluster, struck

NODES = frozenset({"broker-1", "broker-2", "broker-3"})


@pytest.mark.parametrize("peers", ["brokers", "clients", "zookeeper", "all"])
def test_a_slow_link_is_measured_and_is_fast_again(peers: Any) -> None:
    async def test(context: FaultContext) -> None:
        fault = SlowLink(selector="broker-1", peers=peers, delay_ms=100)
        strike = await struck(fault, context)
        assert not (await strike.verify()).is_effective
        detail = await healed(strike, context)
        assert all(0 < took_ms < 100 for took_ms in detail["round_trips_ms"].values())

    in_cluster(test)


def test_delays_add_up_and_each_fault_takes_back_its_own() -> None:
    async def test(context: FaultContext) -> None:
        item = await struck(SlowLink(selector="broker-1", delay_ms=60), context)
        other = await struck(SlowLink(selector="broker-2", delay_ms=200), context)
        loop = asyncio.get_running_loop()

        async def took_s() -> float:
            begin = loop.time()
            assert await context.network.probe("broker-1", "broker-2", timeout_s=3.0)
            return loop.time() - begin

        assert await took_s() > 2 * 0.26
        await other.undo()
        assert 2 * 0.06 < await took_s() < 2 * 0.2
        await healed(item, context)
        assert await took_s() < 0.06

    in_cluster(test)


def test_delays_of_several_faults_add_up_on_each_link() -> None:
    delays_ms: dict[Link, int] = {}

    class Delays:
        async def delay(self, links: frozenset[Link], *, delay_ms: int) -> None:
            delays_ms.update(dict.fromkeys(links, delay_ms))

    runtime = SimpleNamespace(network=SimpleNamespace(delays=Delays()))

    async def test() -> None:
        rules = LinkRules(cast("Runtime", runtime))
        a, b, c = Link("a", "b"), Link("b", "c"), Link("c", "a")
        async with rules.guard(Delay(frozenset({a, b}), 100)):
            async with rules.guard(Delay(frozenset({b, c}), 30)):
                assert delays_ms == {a: 100, b: 130, c: 30}
            assert delays_ms == {a: 100, b: 100, c: 0}
        assert delays_ms == {a: 0, b: 0, c: 0}

    asyncio.run(test())


def test_connections_that_are_reset_are_made_again_and_no_session_ends() -> None:
    async def test(context: FaultContext) -> None:
        sessions = await context.zookeeper_view.sessions()
        strike = await struck(ResetConnections(selector="broker-1", peers="zookeeper"), context)
        await healed(strike, context)
        await asyncio.sleep(3.0)
        assert await context.zookeeper_view.sessions() == sessions

    in_cluster(test)


def test_where_no_connection_is_there_is_no_target() -> None:
    async def test(context: FaultContext) -> None:
        fault = ResetConnections(selector="broker-1", peers="clients")
        with pytest.raises(SelectorUnresolved, match="connected with broker-1"):
            await fault.aim(context, Random(1))

    in_cluster(test)


def test_connections_that_end_before_they_are_reset_are_no_effect() -> None:
    async def test(context: FaultContext) -> None:
        host = context.cluster.client_host("client-1")
        address = context.cluster.address("broker-1")
        fault = ResetConnections(selector="broker-1", peers="clients")
        _, writer = await asyncio.open_connection(address.host, address.port, local_addr=(host, 0))
        strike = await fault.aim(context, Random(1))
        writer.transport.abort()
        await asyncio.sleep(0.1)
        applied = await strike.apply()
        assert not applied.is_effective
        assert applied.detail == {"connection_ends": 0}

    in_cluster(test)


def test_a_reset_may_strike_a_broker_that_is_cut_off_and_is_verified_when_it_is_not() -> None:
    async def test(context: FaultContext) -> None:
        cut = await struck(Partition(shape="one-node", selector="broker-1"), context)
        reset = await struck(ResetConnections(selector="broker-1", peers="all"), context)
        await healed(cut, context)
        await healed(reset, context)

    in_cluster(test)


@pytest.mark.parametrize("kind", [SlowLink, ResetConnections])
def test_what_is_drawn_makes_sense_in_a_cluster(kind: type[Fault]) -> None:
    for seed in range(200):
        kind.draw(Random(seed), DrawRange(5.0, 7.0)).check(NODES)
    assert not kind.needs <= EVERYWHERE
