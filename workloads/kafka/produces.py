"""Produce requests of several partitions, and what a broker answers about each of them (Produce 9).

Numbers are ``cast``, as in ``client``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, cast

from kio.schema.errors import ErrorCode
from kio.schema.produce.v9 import request as produce
from kio.schema.types import TopicName, TransactionalId
from kio.static.primitive import Records, i16, i32

from nemesis.workloads.kafka.errors import BrokerError, ConnectionFailed, KafkaError
from nemesis.workloads.kafka.timeouts import milliseconds

TopicPartition = tuple[str, int]


class Sent(NamedTuple):
    offset: int
    node: int


def produce_request(
    batches: Mapping[TopicPartition, bytes],
    *,
    acks: int,
    timeout_s: float,
    transactional_id: str | None = None,
    kind: type[produce.ProduceRequest] = produce.ProduceRequest,
) -> produce.ProduceRequest:
    """Return the request that brings a batch to each of these partitions; its class may be one of a later version."""
    topics: dict[str, list[produce.PartitionProduceData]] = {}
    for (topic, partition), batch in batches.items():
        topics.setdefault(topic, []).append(
            produce.PartitionProduceData(
                index=cast("i32", partition), records=cast("Records", batch)
            )
        )
    return kind(
        transactional_id=None if transactional_id is None else TransactionalId(transactional_id),
        acks=cast("i16", acks),
        timeout=milliseconds(int(timeout_s * 1000)),
        topic_data=tuple(
            produce.TopicProduceData(
                name=cast("TopicName", topic), partition_data=tuple(partition_data)
            )
            for topic, partition_data in topics.items()
        ),
    )


def produced(
    response: Any, partitions: Iterable[TopicPartition], node: int
) -> dict[TopicPartition, Sent | KafkaError]:
    """Return what the broker ``node`` answered about each of the partitions."""
    results = {
        (topic.name, int(result.index)): result
        for topic in response.responses
        for result in topic.partition_responses
    }
    return {tp: _outcome(results.get(tp), node) for tp in partitions}


def _outcome(result: Any, node: int) -> Sent | KafkaError:
    """What a broker answered about one partition; ``result`` is None if it did not speak of the partition."""
    if result is None:
        return ConnectionFailed("PARTITION_NOT_ANSWERED", definite=False)
    if result.error_code is not ErrorCode.none:
        return BrokerError(result.error_code)
    return Sent(offset=int(result.base_offset), node=node)
