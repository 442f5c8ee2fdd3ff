"""Requests of a cluster that are copied, overtaken and lost."""

from __future__ import annotations

import asyncio
from random import Random

import pytest

from nemesis.faults.base import DrawRange, FaultContext, SelectorUnresolved
from nemesis.faults.cluster_view import ClusterSnapshot, PartitionState
from nemesis.faults.pause import Pause
from nemesis.faults.stray_requests import (
    ELECTIONS,
    PATIENCE_S,
    Fate,
    RequestKind,
    StrayRequests,
    is_marking,
    is_proposing,
)
from nemesis.reference.coordinator.key_partitions import partition_for
from nemesis.support.errors import UsageError
from nemesis.workloads.kafka.transactional_producer import TransactionalProducer
from tests.nemesis.faults.simulated_cluster import create_topic, healed, in_cluster, struck
from tests.workloads.transaction_bench import ID, REQUEST_S, Bench, on_bench, write

NODES = frozenset({"broker-1", "broker-2", "broker-3"})


@pytest.mark.parametrize("fate", ["copied", "overtaken", "lost"])
@pytest.mark.parametrize("requests", ["control", "alter-partition", "fetch"])
def test_every_kind_goes_astray_in_every_way(requests: RequestKind, fate: Fate) -> None:
    async def test(context: FaultContext) -> None:
        await create_topic(context)
        fault = StrayRequests(requests=requests, fate=fate, selector="bystander", late_ms=1_500)
        strike = await struck(fault, context)
        await asyncio.sleep(4.0)
        assert await healed(strike, context) == {"astray": 0}

    in_cluster(test)


def test_a_broker_that_sends_to_itself_goes_on_until_another_one_is_the_controller() -> None:
    async def test(context: FaultContext) -> None:
        await create_topic(context)
        pause = await struck(Pause(selector="broker-3"), context)
        asyncio.get_running_loop().call_later(4.0, asyncio.ensure_future, healed(pause, context))
        fault = StrayRequests(
            requests="alter-partition", fate="copied", selector="broker-1", late_ms=1_500
        )
        strike = await fault.aim(context, Random(3))
        applied = await strike.apply()
        assert applied.is_effective
        assert len(applied.detail["sessions_ended"]) > ELECTIONS
        await healed(strike, context)

    in_cluster(test)


def test_it_is_not_healed_while_a_connection_is_stopped() -> None:
    async def test(context: FaultContext) -> None:
        await create_topic(context)
        strike = await struck(
            StrayRequests(requests="fetch", fate="overtaken", selector="bystander"), context
        )
        assert not (await strike.verify()).is_effective
        await healed(strike, context)

    in_cluster(test)


@pytest.mark.parametrize(
    ("replicas", "removing", "expected"),
    [((1, 2), (), True), ((1, 3), (), False), ((2,), (), False), ((1, 2, 3), (2,), False)],
)
def test_a_broker_proposes_an_isr_only_where_it_can_lead_others(
    replicas: tuple[int, ...], removing: tuple[int, ...], expected: bool
) -> None:
    state = PartitionState(1, leader_epoch=0, isr=(1,), replicas=replicas, removing=removing)

    assert is_proposing("broker-2", ClusterSnapshot(partitions={("t", 0): state})) is expected


@pytest.mark.parametrize(
    ("topic", "leader", "living", "expected"),
    [
        ("t", 2, "broker-2", True),
        ("__consumer_offsets", 2, "broker-2", True),
        ("t", 1, "broker-1", False),
        ("t", -1, "broker-1", False),
        ("t", 2, "broker-3", False),
        ("__transaction_state", 2, "broker-2", False),
    ],
)
def test_markers_are_sent_to_living_leaders_of_what_transactions_write_to(
    topic: str, leader: int, living: str, expected: bool
) -> None:
    state = PartitionState(leader, leader_epoch=0, isr=(1,), replicas=(1, 2, 3))
    snapshot = ClusterSnapshot(partitions={(topic, 0): state})

    assert is_marking("broker-1", snapshot, lambda node: node == living) is expected


def test_no_alter_partition_is_awaited_of_a_broker_without_replicas() -> None:
    async def test(context: FaultContext) -> None:
        assert not (await context.view.snapshot()).partitions
        fault = StrayRequests(requests="alter-partition", selector="broker-2")
        with pytest.raises(SelectorUnresolved, match="broker-2 has no partition"):
            await fault.aim(context, Random(1))

    in_cluster(test)


@pytest.mark.parametrize(
    "requests", ["produce", "add-partitions-to-txn", "end-txn", "write-txn-markers"]
)
def test_copies_of_what_is_repeated_only_without_an_answer_are_refused(
    requests: RequestKind,
) -> None:
    with pytest.raises(UsageError, match=f"got {requests}; use fate overtaken"):
        StrayRequests(requests=requests, fate="copied").check(NODES)


@pytest.mark.parametrize("requests", ["add-partitions-to-txn", "end-txn", "write-txn-markers"])
def test_requests_of_transactions_go_astray(requests: RequestKind) -> None:
    """The coordinator of the transactional id is struck: it receives two kinds, and sends the third."""

    async def test(bench: Bench) -> None:
        producer = await bench.producer()
        fault = StrayRequests(
            requests=requests, fate="overtaken", selector=f"broker-{producer.node}"
        )
        writing = asyncio.ensure_future(transactions(producer))
        strike = await struck(fault, bench.context)
        await asyncio.sleep(2 * REQUEST_S)
        assert await healed(strike, bench.context) == {"astray": 0}
        assert await writing

    async def transactions(producer: TransactionalProducer) -> bool:
        for number in range(3):
            await write(producer, str(number))
            await producer.end(is_commit=True)
        return producer.is_in_doubt or requests == "write-txn-markers"

    on_bench(test)


def test_requests_go_astray_at_the_broker_that_coordinates_now() -> None:
    """The one that was struck loses its partition before it sends anything."""

    async def test(bench: Bench) -> None:
        producer = await bench.producer()
        snapshot = await bench.context.view.snapshot()
        count = sum(topic == "__transaction_state" for topic, _ in snapshot.partitions)
        fault = StrayRequests(
            requests="end-txn",
            fate="overtaken",
            selector=f'leader("__transaction_state",{partition_for(ID, count)})',
        )
        strike = await fault.aim(bench.context, Random(1))
        assert producer.node is not None
        assert strike.victims == [f"broker-{producer.node}"]
        await bench.context.zookeeper.end_session(snapshot.brokers[producer.node].session)
        applying = asyncio.ensure_future(strike.apply())
        await asyncio.sleep(1.5 * PATIENCE_S)
        await write(producer, "late")
        await producer.end(is_commit=True)
        applied = await applying
        assert applied.is_effective
        [follower] = applied.detail["followed_to"]
        assert follower not in strike.victims
        assert await healed(strike, bench.context) == {"astray": 0}

    on_bench(test)


def test_every_kind_and_every_fate_is_drawn_and_can_be_carried_out() -> None:
    drawn = [StrayRequests.draw(Random(seed), DrawRange(5, 7)) for seed in range(200)]
    for fault in drawn:
        fault.check(NODES)
    assert len({(fault.requests, fault.fate) for fault in drawn}) == 4 * 3 - 1
