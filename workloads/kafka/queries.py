"""Queries that a client puts to one broker, be it the leader or not: offsets, metadata, epoch ends.

One attempt each, as with ``KafkaClient``; no leader epoch is required of the broker, so what it answers follows from
its own state. Versions are those of Kafka 3.9: ListOffsets 7, Metadata 12, OffsetForLeaderEpoch 4.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby
from operator import itemgetter
from typing import Final, NamedTuple, cast

from kio.schema.errors import ErrorCode
from kio.schema.list_offsets.v7 import request as list_offsets
from kio.schema.metadata.v12 import request as metadata
from kio.schema.offset_for_leader_epoch.v4 import request as epoch_ends
from kio.schema.types import BrokerId, TopicName
from kio.static.primitive import i8, i32, i64

from nemesis.workloads.kafka.client import KafkaClient
from nemesis.workloads.kafka.cluster_metadata import PartitionMetadata
from nemesis.workloads.kafka.errors import BrokerError
from nemesis.workloads.kafka.offset_requests import NO_EPOCH, list_offsets_request, listed_offset

_CONSUMER: Final = BrokerId(-1)
_DEBUGGING_CLIENT: Final = BrokerId(-2)
_READ_UNCOMMITTED: Final = i8(0)
TopicPartition = tuple[str, int]


class EpochEnd(NamedTuple):
    """The largest leader epoch of a log that is at most the requested one, and the offset behind its last record."""

    leader_epoch: int
    offset: int


async def offset_at(
    client: KafkaClient, node: int, tp: TopicPartition, timestamp: int, *, timeout_s: float
) -> int:
    """Return the first offset of this time in ms, or of ``EARLIEST`` or ``LATEST``; −1: none. Raises ``KafkaError``."""
    request = list_offsets_request(tp, timestamp, leader_epoch=NO_EPOCH)
    return listed_offset(await client.request(node, request, timeout_s))


async def offsets_at(
    client: KafkaClient, node: int, times: Mapping[TopicPartition, int], *, timeout_s: float
) -> dict[TopicPartition, int | BrokerError]:
    """Return for each partition the first offset of its time in ms; −1: none; or the error of the broker's replica.

    It is asked as by a debugging client (replica id −2), so that followers answer, too. Raises ``KafkaError`` when
    the whole request failed.
    """
    request = list_offsets.ListOffsetsRequest(
        replica_id=_DEBUGGING_CLIENT,
        isolation_level=_READ_UNCOMMITTED,
        topics=tuple(
            list_offsets.ListOffsetsTopic(
                name=cast("TopicName", topic),
                partitions=tuple(
                    list_offsets.ListOffsetsPartition(
                        partition_index=i32(tp[1]),
                        current_leader_epoch=i32(NO_EPOCH),
                        timestamp=i64(times[tp]),
                    )
                    for tp in tps
                ),
            )
            for topic, tps in groupby(sorted(times), key=itemgetter(0))
        ),
    )
    response = await client.request(node, request, timeout_s)
    return {
        (str(topic.name), int(data.partition_index)): (
            int(data.offset) if data.error_code is ErrorCode.none else BrokerError(data.error_code)
        )
        for topic in response.topics
        for data in topic.partitions
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
        replica_id=_CONSUMER,
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
