"""Which transaction of a partition has been open for longest: it holds the last stable offset (DescribeProducers 0)."""

from __future__ import annotations

from typing import NamedTuple, cast

from kio.schema.describe_producers.v0 import request as describe_producers
from kio.schema.errors import ErrorCode
from kio.schema.types import TopicName
from kio.static.primitive import i32

from nemesis.workloads.kafka.client import KafkaClient
from nemesis.workloads.kafka.errors import BrokerError, ConnectionFailed

TopicPartition = tuple[str, int]


class OpenTransaction(NamedTuple):
    """A transaction that is open in a partition, as its leader knows."""

    producer_id: int
    epoch: int
    first_offset: int
    last_write_ms: int
    """When its producer wrote last, in milliseconds since 1970."""


async def oldest_open(
    client: KafkaClient, tp: TopicPartition, *, node: int, timeout_s: float
) -> OpenTransaction | None:
    """Return the open transaction with the lowest first offset; None if none is open. Raises ``KafkaError``."""
    request = describe_producers.DescribeProducersRequest(
        topics=(
            describe_producers.TopicRequest(
                name=cast("TopicName", tp[0]), partition_indexes=(cast("i32", tp[1]),)
            ),
        )
    )
    response = await client.request(node, request, timeout_s)
    answers = [partition for topic in response.topics for partition in topic.partitions]
    if not answers:
        raise ConnectionFailed("PARTITION_NOT_ANSWERED", definite=False)
    if answers[0].error_code is not ErrorCode.none:
        raise BrokerError(answers[0].error_code)
    transactions = [
        OpenTransaction(
            int(producer.producer_id),
            int(producer.producer_epoch),
            int(producer.current_txn_start_offset),
            int(producer.last_timestamp),
        )
        for producer in answers[0].active_producers
        if producer.current_txn_start_offset >= 0
    ]
    return min(transactions, key=lambda item: item.first_offset, default=None)
