"""Members of consumer groups: what they ask of the group's coordinator, and which partitions they own.

Writer: the harness, for the members of the workload ``groups`` (processes ``member-3``, ``final-group-0``). Operations
have the columns that ``clients`` describes. ``node`` is the broker that the member holds for the coordinator: it is the
broker that answers.

A request about committed offsets may name several partitions. Each is an operation of its own, with its own outcome.
Their process has all of them under way at once: they begin before the request is sent and end when it is answered.
"""

from __future__ import annotations

from nemesis.history.events import Kind, Records, Word
from nemesis.history.vocabulary.clients import OperationView
from nemesis.history.vocabulary.declaring import PartitionView, answers, declares, invokes


class GroupOperationView(OperationView, frozen=True, kw_only=True):
    """An operation of a member of a group."""

    group: Word
    member: Word | None = None
    """The member id; unset while the member has none."""
    generation: int | None = None
    """The generation in which the member is; unset while it is in none."""
    instance: Word | None = None
    """The instance id of a static member; unset for a dynamic one."""


@invokes("join-group")
class JoinGroup(GroupOperationView, frozen=True, kw_only=True):
    """A member joins its group; the answer comes when the next generation begins.

    A static member that comes back may be answered at once, with the generation that goes on (KIP-345).
    """

    subscribed: list[str] | None = None
    """The topics to which the member subscribes; unset in histories of format 8."""


@answers("join-group")
class JoinGroupOk(JoinGroup, frozen=True, kw_only=True):
    """The member is in a generation."""

    member: Word
    generation: int
    """The generation that has begun."""
    count: int
    """The number of members, if this member leads the group; else 0."""
    assignor: Word | None = None
    """The assignor that the members have agreed on; unset in histories of format 8."""


@invokes("sync-group", "heartbeat")
@answers("sync-group", "heartbeat")
class MemberRequest(GroupOperationView, frozen=True, kw_only=True):
    """A member asks for its assignment, or keeps its session alive; ``ok``: the coordinator has accepted it."""

    member: Word
    generation: int


@invokes("leave-group")
@answers("leave-group")
class LeaveGroup(GroupOperationView, frozen=True, kw_only=True):
    """A member leaves its group. One with an instance id and without a member id is taken out by an administrator."""


class GroupPartitionView(GroupOperationView, frozen=True, kw_only=True):
    """An operation of a member on the committed offset of one partition."""

    topic: Word
    partition: int
    topic_id: Word | None = None


@invokes("commit-offset")
@answers("commit-offset")
class CommitOffset(GroupPartitionView, frozen=True, kw_only=True):
    """A member commits an offset; ``ok``: the coordinator has acknowledged it."""

    member: Word
    generation: int
    offset: Records
    """The position of the member: the record behind the last one that it has processed."""
    leader_epoch: int
    """The leader epoch that is committed with the offset; −1: none."""
    value: int
    """The number of the commit, which no other commit of the run has. It is the text that is committed."""


@invokes("fetch-offset")
class FetchOffset(GroupPartitionView, frozen=True, kw_only=True):
    """A client reads the committed offset of a partition."""


@answers("fetch-offset")
class FetchOffsetOk(FetchOffset, frozen=True, kw_only=True):
    """The coordinator has answered."""

    offset: Records
    """The committed offset; −1: none is committed."""
    leader_epoch: int
    value: int
    """The number of the commit; −1: none is committed, or its text is not a number."""


@declares(Kind.ASSIGNED)
class Assigned(PartitionView, frozen=True, kw_only=True):
    """A member owns a partition from now on: it was assigned to it in this generation.

    With `cooperative-sticky` a member that keeps a partition through a rebalance is assigned it again, in the new
    generation. With `range` it gives up all partitions before it joins.
    """

    group: Word
    member: Word
    generation: int
    instance: Word | None = None
    """The instance id of a static member; unset for a dynamic one."""


@declares(Kind.REVOKED)
class Revoked(PartitionView, frozen=True, kw_only=True):
    """A member does not own a partition any longer. A member that crashes has no such event."""

    group: Word
    member: Word
    generation: int
    """The generation in which it was assigned last."""
    instance: Word | None = None
    """The instance id of a static member; unset for a dynamic one."""
    reason: Word
    """`rebalance`: the member joins again, or the next generation assigns the partition to another member; `lost`: the
    coordinator has refused the member or its generation; `left`: the member leaves."""
