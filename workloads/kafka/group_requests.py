"""Requests about the membership of consumer groups: one function for each, and what its answer says.

Versions are those of Kafka 3.9 for groups of the classic protocol: FindCoordinator 4, JoinGroup 9, SyncGroup 5,
Heartbeat 4, LeaveGroup 5. Those about committed offsets are in ``group_offset_requests``.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple, cast

from kio.schema.errors import ErrorCode
from kio.schema.find_coordinator.v4 import request as find_coordinator
from kio.schema.heartbeat.v4 import request as heartbeat
from kio.schema.join_group.v9 import request as join_group
from kio.schema.leave_group.v5 import request as leave_group
from kio.schema.sync_group.v5 import request as sync_group
from kio.schema.types import GroupId
from kio.static.primitive import i8, i32

from nemesis.workloads.kafka.consumer_protocol import PROTOCOL_TYPE
from nemesis.workloads.kafka.timeouts import milliseconds

_GROUP: Final = i8(0)
"""The key type of FindCoordinator."""


class Membership(NamedTuple):
    """In which group a client is, and as what."""

    group: str
    member_id: str
    generation: int
    instance: str | None = None
    """The instance id of a static member."""


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


def leave_error(response: Any) -> ErrorCode:
    """Return the error of the request, or of the only member that it names."""
    if response.error_code is not ErrorCode.none or not response.members:
        return cast("ErrorCode", response.error_code)
    return cast("ErrorCode", response.members[0].error_code)
