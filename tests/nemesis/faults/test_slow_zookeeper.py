"""ZooKeeper answers one broker late, and its session survives."""

from __future__ import annotations

import asyncio

from nemesis.faults.base import FaultContext
from nemesis.faults.slow_zookeeper import MAX_HOLD_MS, SlowZookeeper
from nemesis.interfaces.links import Link
from nemesis.support.node_names import id_of
from tests.nemesis.faults.simulated_cluster import create_topic, healed, in_cluster, struck


def test_answers_are_late_and_the_session_of_the_victim_survives() -> None:
    async def test(context: FaultContext) -> None:
        await create_topic(context)
        before = await context.view.snapshot()
        strike = await struck(
            SlowZookeeper(selector="controller", hold_ms=MAX_HOLD_MS, duration_s=6.0), context
        )
        [victim] = strike.victims
        await asyncio.sleep(6.0)
        detail = await healed(strike, context)
        after = await context.view.snapshot()
        assert after.brokers[id_of(victim)].session == before.brokers[id_of(victim)].session
        assert len(detail["sessions_ended"]) >= 3
        assert victim not in detail["sessions_ended"]

    in_cluster(test)


def test_nothing_is_held_after_the_end() -> None:
    async def test(context: FaultContext) -> None:
        strike = await struck(SlowZookeeper(hold_ms=500, duration_s=2.0), context)
        await asyncio.sleep(2.0)
        await healed(strike, context)
        [victim] = strike.victims
        links = frozenset(Link(server, victim) for server in context.cluster.zookeepers)
        held = await context.network.counters(links)
        await asyncio.sleep(3.0)
        now = await context.network.counters(links)
        assert all(now[link].held_bytes == held[link].held_bytes for link in held)
        assert any(now[link].forwarded_bytes > held[link].forwarded_bytes for link in held)

    in_cluster(test)
