"""Requests about committed offsets: one function for each, and what its answer says of each partition.

Versions are those of Kafka 3.9 for groups of the classic protocol: OffsetCommit 8, OffsetFetch 8. A request names any
number of partitions, and each has an outcome of its own.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple, cast

from kio.schema.errors import ErrorCode
from kio.schema.offset_commit.v8 import request as offset_commit
from kio.schema.offset_fetch.v8 import request as offset_fetch
from kio.schema.types import GroupId, TopicName
from kio.static.primitive import i32, i64

from nemesis.workloads.kafka.group_requests import Membership

NO_OFFSET: Final = -1
"""What OffsetFetch answers where nothing is committed."""

TopicPartition = tuple[str, int]


class Committed(NamedTuple):
    """A committed offset: ``NO_OFFSET`` and an empty text if nothing is committed."""

    offset: int
    leader_epoch: int
    text: str


def commit_request(
    member: Membership, commits: Mapping[TopicPartition, Committed]
) -> offset_commit.OffsetCommitRequest:
    """Commit the offsets of these partitions."""
    return offset_commit.OffsetCommitRequest(
        group_id=GroupId(member.group),
        generation_id_or_member_epoch=cast("i32", member.generation),
        member_id=member.member_id,
        group_instance_id=member.instance,
        topics=tuple(
            offset_commit.OffsetCommitRequestTopic(
                name=cast("TopicName", topic),
                partitions=tuple(
                    offset_commit.OffsetCommitRequestPartition(
                        partition_index=cast("i32", partition),
                        committed_offset=cast("i64", commits[topic, partition].offset),
                        committed_leader_epoch=cast("i32", commits[topic, partition].leader_epoch),
                        committed_metadata=commits[topic, partition].text,
                    )
                    for partition in partitions
                ),
            )
            for topic, partitions in _by_topic(commits).items()
        ),
    )


def fetch_request(
    group: str, tps: Iterable[TopicPartition], *, is_stable: bool = False
) -> offset_fetch.OffsetFetchRequest:
    """Ask for the committed offsets of these partitions.

    With ``is_stable`` the answer is UNSTABLE_OFFSET_COMMIT while a transaction has an offset pending.
    """
    topics = tuple(
        offset_fetch.OffsetFetchRequestTopics(
            name=cast("TopicName", topic),
            partition_indexes=tuple(cast("i32", partition) for partition in partitions),
        )
        for topic, partitions in _by_topic(tps).items()
    )
    asked = offset_fetch.OffsetFetchRequestGroup(group_id=GroupId(group), topics=topics)
    return offset_fetch.OffsetFetchRequest(groups=(asked,), require_stable=is_stable)


def commit_errors(response: Any) -> dict[TopicPartition, ErrorCode]:
    """Return the outcome of each partition that a response names."""
    return {
        (str(topic.name), int(partition.partition_index)): cast("ErrorCode", partition.error_code)
        for topic in response.topics
        for partition in topic.partitions
    }


def fetch_error(response: Any) -> ErrorCode:
    """Return the error of the group, which is that of all partitions."""
    return cast("ErrorCode", response.groups[0].error_code)


def fetched_offsets(response: Any) -> dict[TopicPartition, Committed | ErrorCode]:
    """Return what is committed for each partition that a response names, or the partition's error."""
    return {
        (str(topic.name), int(partition.partition_index)): _committed(partition)
        for topic in response.groups[0].topics
        for partition in topic.partitions
    }


def _committed(partition: Any) -> Committed | ErrorCode:
    if partition.error_code is not ErrorCode.none:
        return cast("ErrorCode", partition.error_code)
    return Committed(
        int(partition.committed_offset),
        int(partition.committed_leader_epoch),
        partition.metadata or "",
    )


def _by_topic(tps: Iterable[TopicPartition]) -> dict[str, list[int]]:
    partitions: dict[str, list[int]] = defaultdict(list)
    for topic, partition in tps:
        partitions[topic].append(partition)
    return partitions
