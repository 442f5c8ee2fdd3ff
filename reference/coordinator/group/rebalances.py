"""The rebalance of a group: its members join, a generation begins, its leader assigns.

A rebalance begins when a member comes, goes, fails or changes its protocols, and ends when all members have joined or
the longest of their rebalance time-outs has passed. A dynamic member that has not joined by then is no longer in the
group; a static one stays, until its session ends. The first rebalance of an empty group waits for
``group.initial.rebalance.delay.ms`` after each new member, up to the rebalance time-out (KIP-134).

Source: kafka.coordinator.group.GroupCoordinator (prepareRebalance, onCompleteJoin, onExpirePendingSync) of Kafka 3.9.
"""

from __future__ import annotations

import logging
from functools import partial

from kio.schema.errors import ErrorCode

from nemesis.reference.coordinator.group.delayed_rebalances import (
    DelayedJoin,
    DelayedSync,
    GroupJoinKey,
    GroupSyncKey,
    InitialDelayedJoin,
)
from nemesis.reference.coordinator.group.group_metadata import GroupMetadata
from nemesis.reference.coordinator.group.group_metadata_manager import GroupMetadataManager
from nemesis.reference.coordinator.group.group_results import JoinGroupResult, SyncGroupResult
from nemesis.reference.coordinator.group.group_states import GroupState
from nemesis.reference.coordinator.group.heartbeats import Heartbeats
from nemesis.reference.coordinator.group.member_metadata import MemberMetadata
from nemesis.reference.coordinator.group.watching import watch
from nemesis.reference.delayed_operations import DelayedOperationPurgatory
from nemesis.reference.kafka_config import KafkaConfig

_logger = logging.getLogger(__name__)


class Rebalances:
    """Begins and completes rebalances, and takes members out of their groups."""

    def __init__(self, config: KafkaConfig, groups: GroupMetadataManager) -> None:
        self._initial_delay_ms = config.group_initial_rebalance_delay_ms
        self._groups = groups
        self.heartbeats = Heartbeats(
            on_member_failed=self.remove_member, on_pending_member_failed=self.remove_pending_member
        )
        self.purgatory = DelayedOperationPurgatory[GroupJoinKey | GroupSyncKey]()

    # Beginning

    def maybe_prepare(self, group: GroupMetadata) -> None:
        """Begin a rebalance unless one waits for members already, or the group is dead."""
        if group.can_rebalance:
            self.prepare(group)

    def prepare(self, group: GroupMetadata) -> None:
        """Begin a rebalance. Members that wait for their assignments join again."""
        if group.state is GroupState.COMPLETING_REBALANCE:
            self.propagate_assignment_error(group, ErrorCode.rebalance_in_progress)
        self.end_sync(group)
        was_empty = group.state is GroupState.EMPTY
        group.transition_to(GroupState.PREPARING_REBALANCE)
        if was_empty:
            delay_ms = self._initial_delay_ms
            self._await_first_members(
                group, delay_ms, max(group.rebalance_timeout_ms - delay_ms, 0)
            )
        else:
            self._await_members(group)

    def check_join(self, group: GroupMetadata) -> None:
        """Complete the rebalance if the members that it waits for have joined or left."""
        self.purgatory.check_and_complete(GroupJoinKey(group.group_id))

    def _await_members(self, group: GroupMetadata) -> None:
        watch(
            self.purgatory,
            DelayedJoin(group),
            GroupJoinKey(group.group_id),
            group.rebalance_timeout_ms,
            lambda _: self._complete_join(group),
        )

    def _await_first_members(self, group: GroupMetadata, delay_ms: int, remaining_ms: int) -> None:
        def go_on(_: None) -> None:
            if group.new_member_added and remaining_ms != 0:
                group.new_member_added = False
                self._await_first_members(
                    group,
                    min(self._initial_delay_ms, remaining_ms),
                    max(remaining_ms - delay_ms, 0),
                )
            else:
                self._complete_join(group)

        key = GroupJoinKey(group.group_id)
        watch(self.purgatory, InitialDelayedJoin(group), key, delay_ms, go_on)

    # Completion

    def _complete_join(self, group: GroupMetadata) -> None:
        """Begin the generation of the members that have joined."""
        if group.is_dead:
            return
        late = [m for m in group.members.values() if not m.is_awaiting_join and not m.is_static]
        for member in late:
            _logger.info("%s: member %s has not joined", group.group_id, member.member_id)
            group.remove(member.member_id)
            self.heartbeats.check(group, member.member_id)
        if group.members and not group.maybe_elect_new_joined_leader():
            self._await_members(group)  # static members only, and none of them has joined
            return
        group.init_next_generation()
        if group.state is GroupState.EMPTY:
            self._groups.store_group(group, {}, partial(_log_not_stored, group))
            return
        for member in group.members.values():
            group.answer_join(member, group.joined(member))
            self.heartbeats.schedule_next(group, member)
            member.is_new = False
            group.pending_sync_members[member.member_id] = None
        self._await_syncs(group)

    def _await_syncs(self, group: GroupMetadata) -> None:
        watch(
            self.purgatory,
            DelayedSync(group),
            GroupSyncKey(group.group_id),
            group.rebalance_timeout_ms,
            lambda late: self._expire_syncs(group, late),
        )

    def _expire_syncs(self, group: GroupMetadata, late: tuple[str, ...]) -> None:
        for member_id in late:
            _logger.info(
                "%s: member %s has not asked for its assignment", group.group_id, member_id
            )
            group.remove(member_id)
            self.heartbeats.check(group, member_id)
        if late:
            self.prepare(group)

    def remove_pending_sync(self, group: GroupMetadata, member_id: str) -> None:
        """Note that a member has asked for its assignment."""
        group.pending_sync_members.pop(member_id, None)
        self.purgatory.check_and_complete(GroupSyncKey(group.group_id))

    def end_sync(self, group: GroupMetadata) -> None:
        """Wait for no member to ask for its assignment any longer."""
        group.pending_sync_members.clear()
        self.purgatory.check_and_complete(GroupSyncKey(group.group_id))

    # Assignments

    def propagate_assignment(self, group: GroupMetadata) -> None:
        """Answer the SyncGroups that wait with the members' assignments."""
        for member in list(group.members.values()):
            self._answer_sync(
                group,
                member,
                SyncGroupResult(
                    protocol_type=group.protocol_type,
                    protocol_name=group.protocol_name,
                    assignment=member.assignment,
                ),
            )

    def propagate_assignment_error(self, group: GroupMetadata, error: ErrorCode) -> None:
        """Forget the assignments, and answer the SyncGroups that wait with the error."""
        for member in list(group.members.values()):
            member.assignment = b""
            self._answer_sync(group, member, SyncGroupResult(error))

    def _answer_sync(
        self, group: GroupMetadata, member: MemberMetadata, result: SyncGroupResult
    ) -> None:
        if group.answer_sync(member, result):
            self.heartbeats.schedule_next(group, member)

    # Members that go

    def remove_member(self, group: GroupMetadata, member: MemberMetadata) -> None:
        """Take a member out of its group, which then rebalances."""
        group.remove(member.member_id)
        if group.state in (GroupState.STABLE, GroupState.COMPLETING_REBALANCE):
            self.maybe_prepare(group)
        elif group.state is GroupState.PREPARING_REBALANCE:
            self.check_join(group)

    def remove_pending_member(self, group: GroupMetadata, member_id: str) -> None:
        """Take a member out of its group that has an id and has not joined."""
        group.remove(member_id)
        if group.state is GroupState.PREPARING_REBALANCE:
            self.check_join(group)

    # Groups that come and go

    def on_group_loaded(self, group: GroupMetadata, max_size: int) -> None:
        """Begin the sessions of the members of a group that was loaded; one that is too large rebalances."""
        if len(group.members) > max_size:
            self.prepare(group)
        for member in list(group.members.values()):
            self.heartbeats.schedule_next(group, member)

    def on_group_unloaded(self, group: GroupMetadata) -> None:
        """Send the members of a group to its next coordinator."""
        group.transition_to(GroupState.DEAD)
        error = ErrorCode.not_coordinator
        for member in list(group.members.values()):
            group.answer_join(member, JoinGroupResult(member.member_id, error))
            group.answer_sync(member, SyncGroupResult(error))
            self.heartbeats.check(group, member.member_id)
        for member_id in list(group.pending_members):
            self.heartbeats.check(group, member_id)
        self.check_join(group)
        self.end_sync(group)

    def shutdown(self) -> None:
        """Wait for nothing any longer."""
        self.heartbeats.purgatory.cancel_all()
        self.purgatory.cancel_all()


def _log_not_stored(group: GroupMetadata, error: ErrorCode) -> None:
    if error is not ErrorCode.none:
        _logger.warning("%s is empty, which is not stored: %s", group.group_id, error.name)
