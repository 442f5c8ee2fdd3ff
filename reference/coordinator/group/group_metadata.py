"""One group: its state, its generation, its members and its leader.

The members vote for one of the protocols that all of them support. A generation begins with the members that have
joined and lasts until the next rebalance is complete. A member is static if it names an instance id (KIP-345): its
membership outlives its process, under another member id. A pending member has been given an id and has not joined with
it yet (KIP-394).

Everything is synchronous and of one event loop, which is what Kafka's group lock is for. Members are kept in the
sequence in which they joined, so that equal runs elect equal leaders.

Source: kafka.coordinator.group.GroupMetadata of Kafka 3.9.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from random import Random  # noqa: TID251  # the type; the instance is an argument
from typing import Final
from uuid import UUID

from kio.schema.consumer_protocol_subscription.v0.data import ConsumerProtocolSubscription
from kio.schema.errors import ErrorCode

from nemesis.reference.coordinator.group.group_offsets import GroupOffsets
from nemesis.reference.coordinator.group.group_results import (
    NO_LEADER,
    UNKNOWN_MEMBER_ID,
    GroupOverview,
    GroupSummary,
    JoinCallback,
    JoinGroupMember,
    JoinGroupResult,
    SyncGroupResult,
)
from nemesis.reference.coordinator.group.group_states import VALID_PREVIOUS_STATES, GroupState
from nemesis.reference.coordinator.group.member_metadata import (
    MemberMetadata,
    Protocols,
    protocol_names,
)
from nemesis.reference.model import TopicPartition
from nemesis.reference.ports import WallClock
from nemesis.reference.protocol.decoding import read_entity
from nemesis.reference.protocol.errors import ProtocolError

CONSUMER: Final = "consumer"
"""The protocol type of consumers, whose subscriptions the coordinator can read."""
_SUBSCRIPTION_START: Final = 2
"""Behind the version (int16), of which version 0 is a part of every later one."""


class IllegalTransitionError(Exception):
    """The group cannot go from its state to that one: a fault of the coordinator."""


class GroupMetadata:
    """See the module. Callers check what a request may do; the methods keep the parts consistent."""

    def __init__(
        self, group_id: str, state: GroupState = GroupState.EMPTY, *, wall_clock: WallClock
    ) -> None:
        self.group_id = group_id
        self.state = state
        self.current_state_timestamp: int | None = wall_clock()
        self.generation_id = 0
        self.protocol_type: str | None = None
        self.protocol_name: str | None = None
        self.leader_id: str | None = None
        self.members: dict[str, MemberMetadata] = {}
        self.static_members: dict[str, str] = {}
        """Instance id → member id."""
        self.pending_members: dict[str, None] = {}
        self.pending_sync_members: dict[str, None] = {}
        """Those that have joined the generation and have not asked for their assignment."""
        self.new_member_added = False
        """Whether the delay of the first generation starts again."""
        self.subscribed_topics: frozenset[str] | None = None
        """What the members consume; None where that is not known."""
        self.offsets = GroupOffsets()
        self._wall_clock = wall_clock

    # State

    @property
    def is_dead(self) -> bool:
        return self.state is GroupState.DEAD

    @property
    def can_rebalance(self) -> bool:
        return self.state in VALID_PREVIOUS_STATES[GroupState.PREPARING_REBALANCE]

    def transition_to(self, state: GroupState) -> None:
        """Raises IllegalTransitionError."""
        if self.state not in VALID_PREVIOUS_STATES[state]:
            raise IllegalTransitionError(f"{self.group_id}: {self.state.value} → {state.value}")
        self.state = state
        self.current_state_timestamp = self._wall_clock()

    def init_next_generation(self) -> None:
        """Begin the generation of the members that there are."""
        self.generation_id += 1
        self.protocol_name = self.select_protocol() if self.members else None
        self.subscribed_topics = self._subscribed_topics()
        self.pending_sync_members.clear()
        self.transition_to(GroupState.COMPLETING_REBALANCE if self.members else GroupState.EMPTY)

    # Members

    @property
    def rebalance_timeout_ms(self) -> int:
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    @property
    def awaiting_join_count(self) -> int:
        return sum(member.is_awaiting_join for member in self.members.values())

    @property
    def has_all_members_joined(self) -> bool:
        return not self.pending_members and all(
            member.is_awaiting_join for member in self.members.values()
        )

    def is_leader(self, member_id: str) -> bool:
        return self.leader_id == member_id

    def add(self, member: MemberMetadata) -> None:
        """Take in a member, who leads if it is the first."""
        instance_id = member.group_instance_id
        if instance_id is not None:
            self.static_members[instance_id] = member.member_id
        if not self.members:
            self.protocol_type = member.protocol_type
        if self.leader_id is None:
            self.leader_id = member.member_id
        self.members[member.member_id] = member
        self.pending_members.pop(member.member_id, None)

    def remove(self, member_id: str) -> None:
        """Remove a member, pending or not; the next in sequence leads if it did. Its requests are answered."""
        member = self.members.pop(member_id, None)
        if member is not None:
            unknown = ErrorCode.unknown_member_id
            self.answer_join(member, JoinGroupResult(UNKNOWN_MEMBER_ID, unknown))
            self.answer_sync(member, SyncGroupResult(unknown))
            if member.group_instance_id is not None:
                self.static_members.pop(member.group_instance_id, None)
        if self.is_leader(member_id):
            self.leader_id = next(iter(self.members), None)
        self.pending_members.pop(member_id, None)
        self.pending_sync_members.pop(member_id, None)

    def replace_static_member(
        self, group_instance_id: str, old_member_id: str, new_member_id: str
    ) -> MemberMetadata:
        """Give a static member another member id; requests under the former id are answered FENCED_INSTANCE_ID."""
        member = self.members.pop(old_member_id)
        fenced = ErrorCode.fenced_instance_id
        self.answer_join(member, JoinGroupResult(old_member_id, fenced))
        self.answer_sync(member, SyncGroupResult(fenced))
        member.member_id = new_member_id
        self.members[new_member_id] = member
        if self.is_leader(old_member_id):
            self.leader_id = new_member_id
        self.static_members[group_instance_id] = new_member_id
        if old_member_id in self.pending_sync_members:
            del self.pending_sync_members[old_member_id]
            self.pending_sync_members[new_member_id] = None
        return member

    def maybe_elect_new_joined_leader(self) -> bool:
        """Make sure that the leader has joined; return False if no member has."""
        leader = None if self.leader_id is None else self.members[self.leader_id]
        if leader is not None and not leader.is_awaiting_join:
            leader = next((m for m in self.members.values() if m.is_awaiting_join), None)
            if leader is not None:
                self.leader_id = leader.member_id
        return leader is not None

    def update_member(
        self,
        member: MemberMetadata,
        protocols: Protocols,
        rebalance_timeout_ms: int,
        session_timeout_ms: int,
        callback: JoinCallback | None,
    ) -> None:
        """Take over what a member says of itself when it joins again; only its latest JoinGroup waits."""
        if callback is not None:
            repeated = JoinGroupResult(member.member_id, ErrorCode.rebalance_in_progress)
            self.answer_join(member, repeated)
        member.protocols = protocols
        member.rebalance_timeout_ms = rebalance_timeout_ms
        member.session_timeout_ms = session_timeout_ms
        member.awaiting_join = callback

    def answer_join(self, member: MemberMetadata, result: JoinGroupResult) -> None:
        """Answer the member's JoinGroup if it waits."""
        callback, member.awaiting_join = member.awaiting_join, None
        if callback is not None:
            callback(result)

    def answer_sync(self, member: MemberMetadata, result: SyncGroupResult) -> bool:
        """Answer the member's SyncGroup if it waits; return whether it did."""
        callback, member.awaiting_sync = member.awaiting_sync, None
        if callback is not None:
            callback(result)
        return callback is not None

    # Protocols

    def supports_protocols(self, protocol_type: str, names: Collection[str]) -> bool:
        """Whether a member with these protocols could join: all members have one of them in common.

        A rebalance that all members have left still has its type, and takes any protocol.
        """
        if self.state is GroupState.EMPTY:
            return bool(protocol_type and names)
        if not self.members:
            return self.protocol_type == protocol_type and bool(names)
        return self.protocol_type == protocol_type and not self._candidates().isdisjoint(names)

    def select_protocol(self) -> str:
        """Return the protocol with the most votes; among equals the one that was voted for first."""
        candidates = self._candidates()
        votes = Counter(member.vote(candidates) for member in self.members.values())
        return votes.most_common(1)[0][0]

    def _candidates(self) -> frozenset[str]:
        """The protocols that all members support."""
        supported = [protocol_names(member.protocols) for member in self.members.values()]
        return frozenset.intersection(*supported) if supported else frozenset()

    # What the group reports

    def joined(self, member: MemberMetadata, *, skip_assignment: bool = False) -> JoinGroupResult:
        """Return the answer to a member of the current generation; the leader learns of all members."""
        is_leader = self.is_leader(member.member_id)
        return JoinGroupResult(
            member.member_id,
            generation_id=self.generation_id,
            protocol_type=self.protocol_type,
            protocol_name=self.protocol_name,
            leader_id=self.leader_id or NO_LEADER,
            skip_assignment=skip_assignment,
            members=self._join_group_members() if is_leader else (),
        )

    def _join_group_members(self) -> tuple[JoinGroupMember, ...]:
        protocol = self.protocol_name or ""
        return tuple(
            JoinGroupMember(member.member_id, member.group_instance_id, member.metadata(protocol))
            for member in self.members.values()
        )

    def summary(self) -> GroupSummary:
        protocol = self.protocol_name if self.state is GroupState.STABLE else None
        return GroupSummary(
            state=self.state.value,
            protocol_type=self.protocol_type or "",
            protocol=protocol or "",
            members=tuple(member.summary(protocol) for member in self.members.values()),
        )

    def overview(self) -> GroupOverview:
        return GroupOverview(self.group_id, self.protocol_type or "", self.state.value)

    # Subscriptions and the expiry of offsets

    def is_subscribed_to(self, topic: str) -> bool:
        """Whether a member consumes the topic, as far as that is known."""
        return self.subscribed_topics is None or topic in self.subscribed_topics

    def remove_expired_offsets(self, now_ms: int, retention_ms: int) -> tuple[TopicPartition, ...]:
        """Forget offsets that nothing has needed for the retention time (KIP-211); return their partitions.

        An empty group's count from the time when it became empty; those of a live group of consumers from their commit,
        where the topic is not consumed; those of a client without membership from their commit.
        """
        if self.protocol_type is not None and self.state is GroupState.EMPTY:
            emptied = self.current_state_timestamp
            return self.offsets.remove_expired(
                now_ms,
                retention_ms=retention_ms,
                base_timestamp=lambda o: o.commit_timestamp if emptied is None else emptied,
            )
        topics = self.subscribed_topics
        is_live = self.protocol_type == CONSUMER and self.state is GroupState.STABLE
        if self.protocol_type is None or (is_live and topics is not None):
            return self.offsets.remove_expired(
                now_ms,
                retention_ms=retention_ms,
                base_timestamp=lambda offset: offset.commit_timestamp,
                subscribed_topics=topics or (),
            )
        return ()

    def restore_subscribed_topics(self) -> None:
        """Learn the topics of members that were loaded."""
        self.subscribed_topics = self._subscribed_topics()

    def _subscribed_topics(self) -> frozenset[str] | None:
        if self.protocol_type != CONSUMER:
            return None
        if not self.members:
            return frozenset()
        if self.protocol_name is None:
            return None
        topics: set[str] = set()
        for member in self.members.values():
            subscribed = subscribed_topics(member.metadata(self.protocol_name))
            if subscribed is None:
                return None
            topics |= subscribed
        return frozenset(topics)


def subscribed_topics(subscription: bytes) -> frozenset[str] | None:
    """Return the topics of a consumer's subscription, of any version; None when it is not one."""
    try:
        version = int.from_bytes(subscription[:_SUBSCRIPTION_START], signed=True)
        if len(subscription) < _SUBSCRIPTION_START or version < 0:
            return None
        read, _ = read_entity(ConsumerProtocolSubscription, subscription, _SUBSCRIPTION_START)
    except (ProtocolError, UnicodeDecodeError):
        return None
    return frozenset(read.topics)


def generate_member_id(prefix: str, rng: Random) -> str:
    """Return a new member id: the client's id or the instance's, and a UUID of version 4."""
    return f"{prefix}-{UUID(int=rng.getrandbits(128), version=4)}"
