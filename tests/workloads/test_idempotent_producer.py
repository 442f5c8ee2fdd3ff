"""What an idempotent producer sends again, under which numbers, and when it gives up."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from kio.schema.errors import ErrorCode

from nemesis.workloads.kafka.errors import (
    BrokerError,
    ConnectionFailed,
    KafkaError,
    RequestTimedOut,
)
from nemesis.workloads.kafka.idempotent_producer import IdempotentProducer
from nemesis.workloads.kafka.produces import Sent
from tests.reference.virtual_time import run

LOST = RequestTimedOut()
NEVER_SENT = ConnectionFailed("CONNECTION_REFUSED", definite=True)
OUT_OF_ORDER = BrokerError(ErrorCode.out_of_order_sequence_number)
TOO_LARGE = BrokerError(ErrorCode.message_too_large)
DELIVERY_S = 6.0


class Cluster:
    """Answers each attempt with the next of ``fates``: an error, or an offset; then with offsets."""

    def __init__(self, *fates: KafkaError | int) -> None:
        self.fates = list(fates)
        self.sent: list[bytes] = []
        self.ids = iter((4000, 4001))
        self.metadata = SimpleNamespace(topics={"t": SimpleNamespace(topic_id=1)})

    def timestamp_ms(self) -> int:
        return int(asyncio.get_running_loop().time() * 1000)

    async def ask_any(self, _request: object, _timeout_s: float) -> Any:
        return SimpleNamespace(
            error_code=ErrorCode.none, producer_id=next(self.ids), producer_epoch=0
        )

    async def send_batch(
        self, _topic: str, _partition: int, batch: bytes, *, acks: int, timeout_s: float
    ) -> Sent:
        assert acks == -1
        assert timeout_s > 0
        self.sent.append(batch)
        await asyncio.sleep(0.5)
        fate = self.fates.pop(0) if self.fates else len(self.sent)
        if isinstance(fate, KafkaError):
            raise fate
        return Sent(fate, 1)

    async def refresh_metadata(self) -> bool:
        return True

    @property
    def numbers(self) -> list[tuple[int, int, int]]:
        """Producer id, epoch and sequence number of each attempt."""
        return [
            (
                int.from_bytes(batch[43:51], signed=True),
                int.from_bytes(batch[51:53], signed=True),
                int.from_bytes(batch[53:57], signed=True),
            )
            for batch in self.sent
        ]


async def producer(cluster: Cluster, *, max_epoch: int = 100) -> IdempotentProducer:
    made = IdempotentProducer(
        cluster,  # type: ignore[arg-type]
        request_timeout_s=1.0,
        delivery_timeout_s=DELIVERY_S,
        max_epoch=max_epoch,
    )
    assert not made.is_ready
    await made.init_producer_id()
    return made


async def send(made: IdempotentProducer, partition: int = 0) -> Sent:
    return await made.send("t", partition, [(None, b"v")])


def test_what_is_not_answered_is_sent_again_byte_by_byte() -> None:
    async def test() -> None:
        cluster = Cluster(LOST, LOST, 7)
        made = await producer(cluster)
        assert await send(made) == Sent(7, 1)
        assert len(cluster.sent) == 3
        assert len(set(cluster.sent)) == 1

    run(test())


def test_each_partition_has_its_sequence_numbers() -> None:
    async def test() -> None:
        cluster = Cluster()
        made = await producer(cluster)
        for partition in (0, 0, 1, 0):
            await send(made, partition)
        assert cluster.numbers == [(4000, 0, 0), (4000, 0, 1), (4000, 0, 0), (4000, 0, 2)]

    run(test())


def test_what_is_given_up_in_doubt_ends_the_epoch() -> None:
    async def test() -> None:
        cluster = Cluster(5, *[LOST] * 20)
        made = await producer(cluster)
        await send(made)
        with pytest.raises(RequestTimedOut) as given_up:
            await send(made)
        assert not given_up.value.definite
        assert asyncio.get_running_loop().time() < DELIVERY_S + 2
        cluster.fates.clear()
        await send(made)
        assert cluster.numbers[-2:] == [(4000, 0, 1), (4000, 1, 0)]

    run(test())


def test_what_was_certainly_never_appended_leaves_its_sequence_number_to_the_next() -> None:
    async def test() -> None:
        cluster = Cluster(TOO_LARGE)
        made = await producer(cluster)
        with pytest.raises(BrokerError) as refused:
            await send(made)
        assert refused.value.definite
        await send(made)
        assert cluster.numbers == [(4000, 0, 0), (4000, 0, 0)]

    run(test())


def test_a_refusal_after_an_attempt_in_doubt_is_in_doubt() -> None:
    async def test() -> None:
        cluster = Cluster(LOST, TOO_LARGE)
        made = await producer(cluster)
        with pytest.raises(BrokerError) as refused:
            await send(made)
        assert not refused.value.definite

    run(test())


def test_a_producer_that_is_not_followed_any_more_raises_its_epoch_at_once() -> None:
    async def test() -> None:
        cluster = Cluster(NEVER_SENT, OUT_OF_ORDER)
        made = await producer(cluster)
        with pytest.raises(BrokerError):
            await send(made)
        await send(made)
        assert cluster.numbers == [(4000, 0, 0), (4000, 0, 0), (4000, 1, 0)]

    run(test())


def test_after_the_last_epoch_comes_a_new_producer_id() -> None:
    async def test() -> None:
        cluster = Cluster(OUT_OF_ORDER)
        made = await producer(cluster, max_epoch=0)
        with pytest.raises(BrokerError):
            await send(made)
        assert not made.is_ready
        await made.init_producer_id()
        await send(made)
        assert cluster.numbers[-1] == (4001, 0, 0)

    run(test())


def test_a_topic_that_was_created_anew_gets_nothing_of_what_was_meant_for_the_former() -> None:
    async def test() -> None:
        cluster = Cluster(LOST)
        made = await producer(cluster)

        async def created_anew() -> bool:
            cluster.metadata.topics["t"].topic_id = 2
            return True

        cluster.refresh_metadata = created_anew  # type: ignore[method-assign]
        with pytest.raises(RequestTimedOut):
            await send(made)
        assert len(cluster.sent) == 1

    run(test())
