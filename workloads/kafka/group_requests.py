"""Requests of consumer groups: one function for each, and what its answer says.

Versions are those of Kafka 3.9 for groups of the classic protocol: FindCoordinator 4, JoinGroup 9, SyncGroup 5,
Heartbeat 4, LeaveGroup 5, OffsetCommit 8, OffsetFetch 8.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple, cast

from kio.schema.errors import ErrorCode
from kio.schema.find_coordinator.v4 import request as find_coordinator
from kio.schema.heartbeat.v4 import request as heartbeat
from kio.schema.join_group.v9 import request as join_group
from kio.schema.leave_group.v5 import request as leave_group
from kio.schema.offset_commit.v8 import request as offset_commit
from kio.schema.offset_fetch.v8 import request as offset_fetch
from kio.schema.sync_group.v5 import request as sync_group
from kio.schema.types import GroupId, TopicName
from kio.static.primitive import i8, i32, i64

from nemesis.workloads.kafka.consumer_protocol import PROTOCOL_TYPE
from nemesis.workloads.kafka.timeouts import milliseconds

NO_OFFSET: Final = -1
"""What OffsetFetch answers where nothing is committed."""
_GROUP: Final = i8(0)
"""The key type of FindCoordinator."""

TopicPartition = tuple[str, int]


class Membership(NamedTuple):
    """In which group a client is, and as what."""

    group: str
    member_id: str
    generation: int
    instance: str | None = None
    """The instance id of a static member."""


class Committed(NamedTuple):
    """A committed offset: ``NO_OFFSET`` and an empty text if nothing is committed."""

    offset: int
    leader_epoch: int
    text: str


def find_request(group: str) -> find_coordinator.FindCoordinatorRequest:
    return find_coordinator.FindCoordinatorRequest(key_type=_GROUP, coordinator_keys=(group,))


def join_request(
    member: Membership,
    protocol: str,
    subscription: bytes,
    *,
    session_timeout_ms: int,
    rebalance_timeout_ms: int,
) -> join_group.JoinGroupRequest:
    return join_group.JoinGroupRequest(
        group_id=GroupId(member.group),
        session_timeout=milliseconds(session_timeout_ms),
        rebalance_timeout=milliseconds(rebalance_timeout_ms),
        member_id=member.member_id,
        group_instance_id=member.instance,
        protocol_type=PROTOCOL_TYPE,
        protocols=(join_group.JoinGroupRequestProtocol(name=protocol, metadata=subscription),),
    )


def sync_request(
    member: Membership, protocol: str, assignments: dict[str, bytes]
) -> sync_group.SyncGroupRequest:
    """``assignments``: by member id, of all members; empty if the member does not lead the group."""
    return sync_group.SyncGroupRequest(
        group_id=GroupId(member.group),
        generation_id=cast("i32", member.generation),
        member_id=member.member_id,
        group_instance_id=member.instance,
        protocol_type=PROTOCOL_TYPE,
        protocol_name=protocol,
        assignments=tuple(
            sync_group.SyncGroupRequestAssignment(member_id=member_id, assignment=data)
            for member_id, data in assignments.items()
        ),
    )


def heartbeat_request(member: Membership) -> heartbeat.HeartbeatRequest:
    return heartbeat.HeartbeatRequest(
        group_id=GroupId(member.group),
        generation_id=cast("i32", member.generation),
        member_id=member.member_id,
        group_instance_id=member.instance,
    )


def leave_request(member: Membership) -> leave_group.LeaveGroupRequest:
    """Without a member id: an administrator takes the static member out."""
    leaving = leave_group.MemberIdentity(
        member_id=member.member_id, group_instance_id=member.instance
    )
    return leave_group.LeaveGroupRequest(group_id=GroupId(member.group), members=(leaving,))


def commit_request(
    member: Membership, tp: TopicPartition, committed: Committed
) -> offset_commit.OffsetCommitRequest:
    """Commit the offset of one partition."""
    return offset_commit.OffsetCommitRequest(
        group_id=GroupId(member.group),
        generation_id_or_member_epoch=cast("i32", member.generation),
        member_id=member.member_id,
        group_instance_id=member.instance,
        topics=(
            offset_commit.OffsetCommitRequestTopic(
                name=cast("TopicName", tp[0]),
                partitions=(
                    offset_commit.OffsetCommitRequestPartition(
                        partition_index=cast("i32", tp[1]),
                        committed_offset=cast("i64", committed.offset),
                        committed_leader_epoch=cast("i32", committed.leader_epoch),
                        committed_metadata=committed.text,
                    ),
                ),
            ),
        ),
    )


def fetch_request(group: str, tp: TopicPartition) -> offset_fetch.OffsetFetchRequest:
    """Ask for the committed offset of one partition."""
    topics = offset_fetch.OffsetFetchRequestTopics(
        name=cast("TopicName", tp[0]), partition_indexes=(cast("i32", tp[1]),)
    )
    asked = offset_fetch.OffsetFetchRequestGroup(group_id=GroupId(group), topics=(topics,))
    return offset_fetch.OffsetFetchRequest(groups=(asked,), require_stable=False)


def leave_error(response: Any) -> ErrorCode:
    """Return the error of the request, or of the only member that it names."""
    if response.error_code is not ErrorCode.none or not response.members:
        return cast("ErrorCode", response.error_code)
    return cast("ErrorCode", response.members[0].error_code)


def commit_error(response: Any) -> ErrorCode:
    return cast("ErrorCode", response.topics[0].partitions[0].error_code)


def fetch_error(response: Any) -> ErrorCode:
    """Return the error of the group, or of the only partition that was asked for."""
    group = response.groups[0]
    if group.error_code is not ErrorCode.none:
        return cast("ErrorCode", group.error_code)
    return cast("ErrorCode", group.topics[0].partitions[0].error_code)


def committed_offset(response: Any) -> Committed:
    partition = response.groups[0].topics[0].partitions[0]
    return Committed(
        int(partition.committed_offset),
        int(partition.committed_leader_epoch),
        partition.metadata or "",
    )
