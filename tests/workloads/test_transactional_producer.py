"""A transactional producer and a reader of committed records, against a simulated cluster of three brokers."""

from __future__ import annotations

import asyncio

import pytest

from nemesis.faults.held_requests import HeldRequests
from nemesis.faults.kill import Kill
from nemesis.interfaces.links import END_TXN_API_KEY, Link
from nemesis.workloads.kafka.errors import BrokerError, RequestTimedOut
from tests.nemesis.faults.simulated_cluster import healed, struck
from tests.workloads.transaction_bench import (
    PARTITIONS,
    REQUEST_S,
    TOPIC,
    Bench,
    on_bench,
    write,
)


def everywhere(*values: str) -> dict[int, list[str]]:
    """The same values in each partition."""
    return {number: [*values] for number in range(PARTITIONS)}


def test_what_is_committed_is_read_and_what_is_aborted_or_open_is_not() -> None:
    async def test(bench: Bench) -> None:
        producer = await bench.producer()
        assert await write(producer, "a") == [0, 0, 0]
        await producer.end(is_commit=True)
        assert await write(producer, "b") == [2, 2, 2]
        await producer.end(is_commit=False)
        await write(producer, "c")
        await producer.end(is_commit=True)
        await write(producer, "d")
        committed = await bench.read(is_committed=True)
        everything = await bench.read(is_committed=False)
        assert committed == everywhere("a", "c")
        assert everything == everywhere("a", "b", "c", "d")

    on_bench(test)


def test_an_answer_states_what_was_aborted_and_where_the_open_transaction_begins() -> None:
    async def test(bench: Bench) -> None:
        producer = await bench.producer()
        await write(producer, "a")
        await producer.end(is_commit=False)
        (open_offset, *_) = await write(producer, "b")
        polled = await bench.poll(0, is_committed=True)
        assert polled.aborted == ((producer.identity.producer_id, 0),)
        assert polled.last_stable_offset == open_offset < polled.high_watermark
        client = bench.client()
        await client.refresh_metadata()
        stable_end = await client.end_offset(TOPIC, 0, timeout_s=REQUEST_S, is_committed=True)
        assert stable_end == open_offset
        assert await client.end_offset(TOPIC, 0, timeout_s=REQUEST_S) == polled.high_watermark

    on_bench(test)


def test_the_next_producer_of_an_id_aborts_what_is_open_and_fences_the_former() -> None:
    async def test(bench: Bench) -> None:
        former = await bench.producer()
        await write(former, "a")
        latter = await bench.producer()
        assert latter.identity.producer_id == former.identity.producer_id
        assert latter.identity.epoch > former.identity.epoch
        with pytest.raises(BrokerError) as refused:
            await former.send(TOPIC, 0, [(None, b"late")])
        assert refused.value.definite
        assert former.is_fenced
        with pytest.raises(BrokerError, match=r"PRODUCER_FENCED|INVALID_PRODUCER_EPOCH") as refused:
            await former.end(is_commit=True)
        assert refused.value.definite
        await write(latter, "b")
        await latter.end(is_commit=True)
        assert await bench.read(is_committed=True) == everywhere("b")

    on_bench(test)


def test_a_producer_goes_on_in_its_next_epoch_with_new_sequence_numbers() -> None:
    async def test(bench: Bench) -> None:
        producer = await bench.producer()
        await write(producer, "a")
        await producer.end(is_commit=True)
        before = producer.identity
        assert producer.next_batch(TOPIC, 0).base_sequence == 1
        await producer.raise_epoch()
        assert producer.identity == before._replace(epoch=before.epoch + 1)
        assert producer.next_batch(TOPIC, 0).base_sequence == 0
        await write(producer, "b")
        await producer.end(is_commit=True)
        assert await bench.read(is_committed=True) == everywhere("a", "b")

    on_bench(test)


def test_a_transaction_is_committed_though_its_coordinator_dies() -> None:
    async def test(bench: Bench) -> None:
        producer = await bench.producer()
        await write(producer, "a")
        dead = f"broker-{producer.node}"
        kill = await struck(Kill(selector=dead), bench.context)
        await producer.end(is_commit=True)
        assert f"broker-{producer.node}" != dead
        assert producer.is_in_doubt, "an attempt was not answered"
        await healed(kill, bench.context, within_s=30.0)
        await write(producer, "b")
        await producer.end(is_commit=True)
        assert await bench.read(is_committed=True) == everywhere("a", "b")

    on_bench(test)


def test_an_end_that_is_held_leaves_its_producer_in_doubt_until_its_next_epoch() -> None:
    async def test(bench: Bench) -> None:
        producer = await bench.producer(delivery_s=3.0)
        await write(producer, "a")
        assert producer.is_in_doubt is False
        client, coordinator = bench.context.cluster.clients[0], f"broker-{producer.node}"
        held = HeldRequests(bench.context, frozenset({Link(client, coordinator, END_TXN_API_KEY)}))
        await held.hold()
        with pytest.raises(RequestTimedOut) as given_up:
            await producer.end(is_commit=True)
        assert not given_up.value.definite
        assert (producer.is_in_doubt, producer.is_fenced) == (True, False)
        await held.release()
        await asyncio.sleep(1.0)
        await producer.initialize()
        assert not producer.is_in_doubt
        assert await bench.read(is_committed=True) == everywhere("a")

    on_bench(test)
