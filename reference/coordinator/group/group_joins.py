"""JoinGroup: who may join a group, under which member id, and what follows for the others.

A new dynamic member is given an id and has to join with it (MEMBER_ID_REQUIRED, KIP-394), unless its client is older.
A static member that comes back takes over the membership of its instance id: its former member id is fenced, and a
stable group goes on in the same generation if its protocol stays the one that is selected (KIP-345).

Source: kafka.coordinator.group.GroupCoordinator of Kafka 3.9 (handleJoinGroup and below).
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from random import Random  # noqa: TID251  # the type; the instance is an argument

from kio.schema.errors import ErrorCode

from nemesis.reference.coordinator.group.group_metadata import GroupMetadata, generate_member_id
from nemesis.reference.coordinator.group.group_metadata_manager import GroupMetadataManager
from nemesis.reference.coordinator.group.group_results import (
    NO_LEADER,
    UNKNOWN_MEMBER_ID,
    JoinCallback,
    JoinGroupResult,
)
from nemesis.reference.coordinator.group.group_states import GroupState
from nemesis.reference.coordinator.group.heartbeats import NEW_MEMBER_JOIN_TIMEOUT_MS
from nemesis.reference.coordinator.group.member_metadata import (
    MemberMetadata,
    Protocols,
    protocol_names,
)
from nemesis.reference.coordinator.group.rebalances import Rebalances
from nemesis.reference.kafka_config import KafkaConfig

_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class JoinGroup:
    """A JoinGroup request of any version. Durations in ms."""

    group_id: str
    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    protocol_type: str
    protocols: Protocols
    requires_known_member_id: bool
    """Whether the client knows MEMBER_ID_REQUIRED (version 4)."""
    supports_skipping_assignment: bool
    """Whether the client knows that a leader may not have to assign (version 9)."""

    def new_member(self, member_id: str) -> MemberMetadata:
        return MemberMetadata(
            member_id,
            self.group_instance_id,
            self.client_id,
            self.client_host,
            self.rebalance_timeout_ms,
            self.session_timeout_ms,
            self.protocol_type,
            self.protocols,
            is_new=True,
        )


def member_error(
    group: GroupMetadata, member_id: str, group_instance_id: str | None
) -> ErrorCode | None:
    """Why a request of this member is refused: FENCED_INSTANCE_ID or UNKNOWN_MEMBER_ID; None if it is a member."""
    if group_instance_id is not None:
        current = group.static_members.get(group_instance_id)
        if current is not None and current != member_id:
            return ErrorCode.fenced_instance_id
        if current is None:
            return ErrorCode.unknown_member_id
    return None if member_id in group.members else ErrorCode.unknown_member_id


class GroupJoins:
    """Answers go to the callback of the request, in this step or when the rebalance is complete."""

    def __init__(
        self,
        config: KafkaConfig,
        groups: GroupMetadataManager,
        rebalances: Rebalances,
        rng: Random,
    ) -> None:
        self._max_size = config.group_max_size
        self._groups = groups
        self._rebalances = rebalances
        self._rng = rng

    def join(self, group: GroupMetadata, request: JoinGroup, callback: JoinCallback) -> None:
        """Let a client join a group that is coordinated here."""
        is_unknown = request.member_id == UNKNOWN_MEMBER_ID
        if not self._has_room(group, request.member_id):
            group.remove(request.member_id)
            error = ErrorCode.group_max_size_reached
            callback(JoinGroupResult(UNKNOWN_MEMBER_ID, error))
        elif (refusal := _refusal(group, request)) is not None:
            callback(JoinGroupResult(request.member_id, refusal))
        elif is_unknown:
            self._join_new(group, request, callback)
        elif request.member_id in group.pending_members and request.group_instance_id is None:
            self._add_member(group, request, request.member_id, callback)
        else:
            self._join_again(group, request, callback)
        if group.state is GroupState.PREPARING_REBALANCE:
            self._rebalances.check_join(group)

    def _has_room(self, group: GroupMetadata, member_id: str) -> bool:
        """Whether the group takes the member: during a rebalance, the first that come are taken."""
        member = group.members.get(member_id)
        if group.state in (GroupState.EMPTY, GroupState.DEAD):
            return True
        if group.state is GroupState.PREPARING_REBALANCE:
            has_joined = member is not None and member.is_awaiting_join
            return has_joined or group.awaiting_join_count < self._max_size
        return member is not None or len(group.members) < self._max_size

    # Clients without a member id

    def _join_new(self, group: GroupMetadata, request: JoinGroup, callback: JoinCallback) -> None:
        instance_id = request.group_instance_id
        prefix = request.client_id if instance_id is None else instance_id
        member_id = generate_member_id(prefix, self._rng)
        if instance_id is not None:
            old_member_id = group.static_members.get(instance_id)
            if old_member_id is None:
                self._add_member(group, request, member_id, callback)
            else:
                self._replace_static_member(group, request, old_member_id, member_id, callback)
        elif request.requires_known_member_id:
            group.pending_members[member_id] = None
            self._rebalances.heartbeats.add_pending(group, member_id, request.session_timeout_ms)
            callback(JoinGroupResult(member_id, ErrorCode.member_id_required))
        else:
            self._add_member(group, request, member_id, callback)

    def _add_member(
        self, group: GroupMetadata, request: JoinGroup, member_id: str, callback: JoinCallback
    ) -> None:
        member = request.new_member(member_id)
        member.awaiting_join = callback
        if group.state is GroupState.PREPARING_REBALANCE and group.generation_id == 0:
            group.new_member_added = True
        group.add(member)
        # The session of a new member begins when its JoinGroup is answered: a rebalance may take longer than a session.
        self._rebalances.heartbeats.schedule_next(group, member, NEW_MEMBER_JOIN_TIMEOUT_MS)
        self._rebalances.maybe_prepare(group)

    # Static members that come back

    def _replace_static_member(
        self,
        group: GroupMetadata,
        request: JoinGroup,
        old_member_id: str,
        member_id: str,
        callback: JoinCallback,
    ) -> None:
        _logger.info("%s: member %s replaces %s", group.group_id, member_id, old_member_id)
        former_leader_id = group.leader_id
        instance_id = request.group_instance_id or ""
        member = group.replace_static_member(instance_id, old_member_id, member_id)
        self._rebalances.heartbeats.check(group, old_member_id)
        self._rebalances.heartbeats.schedule_next(group, member)
        former = _Settings.of(member)
        _take_over(group, member, request, callback)
        if group.state is GroupState.COMPLETING_REBALANCE:
            self._rebalances.prepare(group)
        elif group.state is GroupState.STABLE and group.select_protocol() != group.protocol_name:
            self._rebalances.maybe_prepare(group)
        elif group.state is GroupState.STABLE:
            self._store_replacement(
                group, request, member, former, old_member_id, former_leader_id or NO_LEADER
            )

    def _store_replacement(
        self,
        group: GroupMetadata,
        request: JoinGroup,
        member: MemberMetadata,
        former: _Settings,
        old_member_id: str,
        former_leader_id: str,
    ) -> None:
        """Write the group with the new member id, so that it outlives this coordinator (KAFKA-7862), and answer."""
        member_id = member.member_id

        def on_stored(error: ErrorCode) -> None:
            if group.members.get(member_id) is not member:
                return
            if error is ErrorCode.none:
                group.answer_join(member, self._replaced(group, request, member, former_leader_id))
                return
            callback, member.awaiting_join = member.awaiting_join, None
            former.restore(group, member)
            instance_id = request.group_instance_id or ""
            group.replace_static_member(instance_id, member_id, old_member_id)
            self._rebalances.heartbeats.schedule_next(group, member)
            if callback is not None:
                callback(JoinGroupResult(UNKNOWN_MEMBER_ID, error))

        assignment = {m.member_id: m.assignment for m in group.members.values()}
        self._groups.store_group(group, assignment, on_stored)

    def _replaced(
        self,
        group: GroupMetadata,
        request: JoinGroup,
        member: MemberMetadata,
        former_leader_id: str,
    ) -> JoinGroupResult:
        """The answer without a rebalance. A leader must not assign, because its assignment would have no effect.

        A client that cannot be asked to skip it is answered as if the former member id led.
        """
        if request.supports_skipping_assignment:
            is_leader = group.is_leader(member.member_id)
            return group.joined(member, skip_assignment=is_leader)
        return JoinGroupResult(
            member.member_id,
            generation_id=group.generation_id,
            protocol_type=group.protocol_type,
            protocol_name=group.protocol_name,
            leader_id=former_leader_id,
        )

    # Members that join again

    def _join_again(self, group: GroupMetadata, request: JoinGroup, callback: JoinCallback) -> None:
        error = member_error(group, request.member_id, request.group_instance_id)
        if error is None and group.state in (GroupState.EMPTY, GroupState.DEAD):
            error = ErrorCode.unknown_member_id
        if error is not None:
            callback(JoinGroupResult(request.member_id, error))
            return
        member = group.members[request.member_id]
        if self._is_up_to_date(group, member, request):
            callback(group.joined(member))
            return
        _take_over(group, member, request, callback)
        self._rebalances.maybe_prepare(group)

    def _is_up_to_date(
        self, group: GroupMetadata, member: MemberMetadata, request: JoinGroup
    ) -> bool:
        """Whether the member may have missed an answer and nothing else. A leader that joins a stable group wants a
        rebalance, for instance because a topic has more partitions."""
        if member.protocols != request.protocols:
            return False
        if group.state is GroupState.COMPLETING_REBALANCE:
            return True
        return group.state is GroupState.STABLE and not group.is_leader(member.member_id)


@dataclass(frozen=True, slots=True)
class _Settings:
    """What a member says of itself with each JoinGroup."""

    protocols: Protocols
    rebalance_timeout_ms: int
    session_timeout_ms: int

    @classmethod
    def of(cls, member: MemberMetadata) -> _Settings:
        return cls(member.protocols, member.rebalance_timeout_ms, member.session_timeout_ms)

    def restore(self, group: GroupMetadata, member: MemberMetadata) -> None:
        group.update_member(
            member, self.protocols, self.rebalance_timeout_ms, self.session_timeout_ms, None
        )


def _take_over(
    group: GroupMetadata, member: MemberMetadata, request: JoinGroup, callback: JoinCallback
) -> None:
    group.update_member(
        member,
        request.protocols,
        request.rebalance_timeout_ms,
        request.session_timeout_ms,
        callback,
    )


def _refusal(group: GroupMetadata, request: JoinGroup) -> ErrorCode | None:
    if group.is_dead:
        return ErrorCode.coordinator_not_available
    names = protocol_names(request.protocols)
    if not group.supports_protocols(request.protocol_type, names):
        return ErrorCode.inconsistent_group_protocol
    return None
