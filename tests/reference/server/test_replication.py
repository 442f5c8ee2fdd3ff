"""Three brokers replicate one partition while links are held, brokers die and leaders change."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from kio.schema.errors import ErrorCode

from nemesis.reference.trace import Kind
from tests.reference.cluster.hosting import TP
from tests.reference.log.batches import batch
from tests.reference.server.small_cluster import BROKERS, CONTROLLER, Cluster
from tests.reference.virtual_time import run


def test_records_reach_all_and_are_acknowledged(tmp_path: Path) -> None:
    async def scenario() -> None:
        cluster = Cluster(tmp_path, 0)
        await cluster.start()
        await asyncio.sleep(0.1)
        for _ in range(5):
            assert await cluster.produce(1, batch(2)) is ErrorCode.none
        assert await cluster.produce(2, batch(1)) is ErrorCode.not_leader_or_follower
        await cluster.until(cluster.is_converged)
        await asyncio.sleep(0.5)
        logs = [b.replicas.hosted.partition(TP).log for b in cluster.brokers.values()]
        highs = [log.high_watermark for log in logs if log is not None]
        assert highs == [10, 10, 10]
        acknowledged = [c for _, kind, c in cluster.events if kind is Kind.PRODUCE_ACKNOWLEDGED]
        assert [c["offset"] for c in acknowledged] == [0, 2, 4, 6, 8]
        assert all(c["high_watermark"] > c["last_offset"] for c in acknowledged)
        await cluster.stop()

    run(scenario())


def test_a_stalled_follower_leaves_the_isr_and_comes_back(tmp_path: Path) -> None:
    async def scenario() -> None:
        cluster = Cluster(tmp_path, 0, min_insync_replicas=2)
        await cluster.start()
        await asyncio.sleep(0.1)
        cluster.wire.held.add((3, 1))
        assert await cluster.produce(1, batch(1)) is ErrorCode.request_timed_out
        await cluster.until(lambda: set(cluster.state.isr) == {1, 2})
        assert await cluster.produce(1, batch(1)) is ErrorCode.none
        cluster.wire.held.clear()
        await cluster.until(cluster.is_converged)
        await cluster.stop()

    run(scenario())


def test_under_min_insync_replicas_nothing_is_accepted(tmp_path: Path) -> None:
    async def scenario() -> None:
        cluster = Cluster(tmp_path, 0, min_insync_replicas=2)
        await cluster.start()
        await asyncio.sleep(0.1)
        assert await cluster.produce(1, batch(1)) is ErrorCode.none
        cluster.wire.held |= {(2, 1), (3, 1)}
        await asyncio.gather(*(cluster.produce(1, batch(1)) for _ in range(2)))
        await cluster.until(lambda: cluster.state.isr == (1,))
        await asyncio.sleep(0.1)
        assert await cluster.produce(1, batch(1)) is ErrorCode.not_enough_replicas
        await cluster.stop()

    run(scenario())


def test_a_deposed_leader_answers_nobody_and_is_cut_back(tmp_path: Path) -> None:
    async def scenario() -> None:
        cluster = Cluster(tmp_path, 0)
        await cluster.start()
        await asyncio.sleep(0.1)
        assert await cluster.produce(1, batch(3)) is ErrorCode.none
        others = {(1, n) for n in (0, 2, 3)} | {(n, 1) for n in (0, 2, 3)}
        cluster.wire.held |= others
        pending = asyncio.create_task(cluster.produce(1, batch(4)))
        await asyncio.sleep(0.1)
        cluster.unregister(1)
        await asyncio.sleep(0.1)
        assert cluster.state.leader == 2
        assert await cluster.produce(2, batch(2)) is ErrorCode.none
        assert await pending is ErrorCode.request_timed_out
        cluster.wire.held.clear()
        cluster.register(1)
        await cluster.until(cluster.is_converged)
        assert cluster.brokers[1].log_end_offset == 5
        assert cluster.brokers[1].content() == cluster.brokers[2].content()
        assert [
            c["offset"] for b, kind, c in cluster.events if b == 1 and kind is Kind.TRUNCATE
        ] == [3]
        await cluster.stop()

    run(scenario())


async def chaos(cluster: Cluster, steps: int) -> None:
    """Break things at random, heal everything, and let the cluster settle."""
    rng = cluster.rng
    produced: set[asyncio.Task[ErrorCode]] = set()
    dead: list[int] = []
    away: list[int] = []
    for _ in range(steps):
        await asyncio.sleep(rng.uniform(0.01, 0.5))
        for _ in range(rng.randint(0, 3)):
            payload = rng.randbytes(8)
            target = rng.choice([cluster.state.leader, *BROKERS])
            if target in BROKERS:
                records = batch(rng.randint(1, 3), payload=payload)
                acks = rng.choice([-1, -1, 1])
                produced.add(asyncio.create_task(cluster.produce(target, records, acks=acks)))
        step = rng.random()
        broker = rng.choice(BROKERS)
        if step < 0.25:
            cluster.wire.held.add((rng.choice([CONTROLLER, *BROKERS]), broker))
        elif step < 0.45:
            cluster.wire.held.clear()
        elif step < 0.55:
            cluster.elect(broker)
        elif step < 0.65 and broker in cluster.registered:
            cluster.unregister(broker)
            away.append(broker)
        elif step < 0.75 and broker in cluster.registered:
            cluster.unregister(broker)
            await cluster.brokers[broker].kill()
            dead.append(broker)
        elif step < 0.9 and dead:
            back = dead.pop(0)
            await cluster.brokers[back].start()
            cluster.register(back)
        elif away:
            cluster.register(away.pop(0))
    cluster.wire.held.clear()
    for back in dead:
        await cluster.brokers[back].start()
        cluster.register(back)
    for back in away:
        cluster.register(back)
    await asyncio.gather(*produced)
    await cluster.until(cluster.is_converged)


@pytest.mark.parametrize("seed", range(12))
def test_nothing_acknowledged_is_lost_whatever_breaks(tmp_path: Path, seed: int) -> None:
    async def scenario() -> None:
        cluster = Cluster(tmp_path, seed, min_insync_replicas=1 + seed % 2)
        await cluster.start()
        await asyncio.sleep(0.1)
        await chaos(cluster, steps=60)
        assert cluster.violations == []
        assert len({broker.content() for broker in cluster.brokers.values()}) == 1
        kept = cluster.brokers[1].payloads()
        assert cluster.acknowledged
        lost = [
            offset
            for offset, produced in cluster.acknowledged.items()
            if kept.get(offset) != produced.payload
        ]
        assert lost == []
        await cluster.stop()

    run(scenario())
