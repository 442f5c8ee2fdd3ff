"""What requests about groups are answered, in any version."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from kio.schema.errors import ErrorCode

NO_GENERATION: Final = -1
UNKNOWN_MEMBER_ID: Final = ""
"""The member id of a client that has not been given one."""
NO_LEADER: Final = ""
NO_OFFSET: Final = -1


@dataclass(frozen=True, slots=True)
class JoinGroupMember:
    """A member as the group's leader learns of it."""

    member_id: str
    group_instance_id: str | None
    metadata: bytes


@dataclass(frozen=True, slots=True)
class JoinGroupResult:
    """The answer to a JoinGroup. ``members`` is empty for all but the leader."""

    member_id: str
    error: ErrorCode = ErrorCode.none
    generation_id: int = NO_GENERATION
    protocol_type: str | None = None
    protocol_name: str | None = None
    leader_id: str = NO_LEADER
    skip_assignment: bool = False
    members: tuple[JoinGroupMember, ...] = ()


@dataclass(frozen=True, slots=True)
class SyncGroupResult:
    """The answer to a SyncGroup: the member's assignment."""

    error: ErrorCode = ErrorCode.none
    protocol_type: str | None = None
    protocol_name: str | None = None
    assignment: bytes = b""


JoinCallback = Callable[[JoinGroupResult], None]
SyncCallback = Callable[[SyncGroupResult], None]


@dataclass(frozen=True, slots=True)
class MemberIdentity:
    """A member that a LeaveGroup names."""

    member_id: str
    group_instance_id: str | None


@dataclass(frozen=True, slots=True)
class LeaveGroupResult:
    """The answer to a LeaveGroup: the error of all of it, or that of each member."""

    error: ErrorCode = ErrorCode.none
    members: tuple[tuple[MemberIdentity, ErrorCode], ...] = ()


@dataclass(frozen=True, slots=True)
class OffsetFetchResult:
    """A committed offset; −1 where the group has not committed one."""

    offset: int = NO_OFFSET
    leader_epoch: int = -1
    metadata: str = ""
    error: ErrorCode = ErrorCode.none


@dataclass(frozen=True, slots=True)
class MemberSummary:
    """A member as DescribeGroups reports it."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    metadata: bytes
    assignment: bytes


@dataclass(frozen=True, slots=True)
class GroupSummary:
    """A group as DescribeGroups reports it; members have metadata and assignments in the state Stable only."""

    error: ErrorCode = ErrorCode.none
    state: str = ""
    protocol_type: str = ""
    protocol: str = ""
    members: tuple[MemberSummary, ...] = ()


@dataclass(frozen=True, slots=True)
class GroupOverview:
    """A group as ListGroups reports it."""

    group_id: str
    protocol_type: str
    state: str
