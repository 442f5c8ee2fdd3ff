"""Queries that a client puts to one broker, be it the leader or not: offsets, metadata, epoch ends.

One attempt each, as with ``KafkaClient``; no leader epoch is required of the broker, so what it answers follows from
its own state. Versions are those of Kafka 3.9: ListOffsets 7, Metadata 12, OffsetForLeaderEpoch 4.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, cast

from kio.schema.errors import ErrorCode
from kio.schema.metadata.v12 import request as metadata
from kio.schema.offset_for_leader_epoch.v4 import request as epoch_ends
from kio.schema.types import TopicName
from kio.static.primitive import i32

from nemesis.workloads.kafka.client import KafkaClient
from nemesis.workloads.kafka.cluster_metadata import PartitionMetadata
from nemesis.workloads.kafka.errors import BrokerError
from nemesis.workloads.kafka.offset_requests import (
    CONSUMER,
    DEBUGGING_CLIENT,
    NO_EPOCH,
    Question,
    answers,
    list_offsets_request,
    listed_offset,
    offsets_request,
)

TopicPartition = tuple[str, int]


class EpochEnd(NamedTuple):
    """The largest leader epoch of a log that is at most the requested one, and the offset behind its last record."""

    leader_epoch: int
    offset: int


async def offset_at(
    client: KafkaClient,
    node: int,
    tp: TopicPartition,
    timestamp: int,
    *,
    leader_epoch: int = NO_EPOCH,
    timeout_s: float,
) -> int:
    """Return the first offset of this time in ms, or of ``EARLIEST`` or ``LATEST``; −1: none. Raises ``KafkaError``.

    A broker that has the partition in another leader epoch than the stated one refuses (KIP-320).
    """
    request = list_offsets_request(tp, timestamp, leader_epoch=leader_epoch)
    return listed_offset(await client.request(node, request, timeout_s))


async def offsets_at(
    client: KafkaClient, node: int, times: Mapping[TopicPartition, int], *, timeout_s: float
) -> dict[TopicPartition, int | BrokerError]:
    """Return for each partition the first offset of its time in ms; −1: none; or the error of the broker's replica.

    It is asked as by a debugging client (replica id −2), so that followers answer, too. Raises ``KafkaError`` when
    the whole request failed.
    """
    questions = {tp: Question(time) for tp, time in times.items()}
    request = offsets_request(questions, asker=DEBUGGING_CLIENT)
    return {
        tp: int(data.offset) if data.error_code is ErrorCode.none else BrokerError(data.error_code)
        for tp, data in answers(await client.request(node, request, timeout_s))
    }


async def partition_metadata(
    client: KafkaClient, node: int, tp: TopicPartition, *, timeout_s: float
) -> PartitionMetadata:
    """Return what this broker knows of the partition. Raises ``KafkaError``."""
    request = metadata.MetadataRequest(
        topics=(metadata.MetadataRequestTopic(topic_id=None, name=cast("TopicName", tp[0])),),
        allow_auto_topic_creation=False,
        include_topic_authorized_operations=False,
    )
    response = await client.request(node, request, timeout_s)
    topic = response.topics[0]
    known = {int(partition.partition_index): partition for partition in topic.partitions}
    if topic.error_code is not ErrorCode.none:
        raise BrokerError(topic.error_code)
    if (partition := known.get(tp[1])) is None:
        raise BrokerError(ErrorCode.unknown_topic_or_partition)
    return PartitionMetadata(
        leader=int(partition.leader_id),
        leader_epoch=int(partition.leader_epoch),
        replicas=tuple(map(int, partition.replica_nodes)),
        isr=tuple(map(int, partition.isr_nodes)),
    )


async def epoch_end(
    client: KafkaClient, node: int, tp: TopicPartition, leader_epoch: int, *, timeout_s: float
) -> EpochEnd:
    """Return where this leader epoch ends in the broker's log; −1, −1: it does not know. Raises ``KafkaError``."""
    request = epoch_ends.OffsetForLeaderEpochRequest(
        replica_id=CONSUMER,
        topics=(
            epoch_ends.OffsetForLeaderTopic(
                topic=cast("TopicName", tp[0]),
                partitions=(
                    epoch_ends.OffsetForLeaderPartition(
                        partition=i32(tp[1]),
                        current_leader_epoch=i32(NO_EPOCH),
                        leader_epoch=i32(leader_epoch),
                    ),
                ),
            ),
        ),
    )
    response = await client.request(node, request, timeout_s)
    data = response.topics[0].partitions[0]
    if data.error_code is not ErrorCode.none:
        raise BrokerError(data.error_code)
    return EpochEnd(int(data.leader_epoch), int(data.end_offset))
