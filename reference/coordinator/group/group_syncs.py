"""SyncGroup: the leader hands in the assignments, and each member is answered its own once they are stored.

Source: kafka.coordinator.group.GroupCoordinator of Kafka 3.9 (doSyncGroup).
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass

from kio.schema.errors import ErrorCode

from nemesis.reference.coordinator.group.group_joins import member_error
from nemesis.reference.coordinator.group.group_metadata import GroupMetadata
from nemesis.reference.coordinator.group.group_metadata_manager import GroupMetadataManager
from nemesis.reference.coordinator.group.group_results import SyncCallback, SyncGroupResult
from nemesis.reference.coordinator.group.group_states import GroupState
from nemesis.reference.coordinator.group.rebalances import Rebalances

_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class SyncGroup:
    """A SyncGroup request of any version."""

    group_id: str
    generation_id: int
    member_id: str
    group_instance_id: str | None
    protocol_type: str | None
    protocol_name: str | None
    """None before version 5: it is not checked."""
    assignments: Mapping[str, bytes]


class GroupSyncs:
    """Answers go to the callback of the request, in this step or when the assignments are stored."""

    def __init__(self, groups: GroupMetadataManager, rebalances: Rebalances) -> None:
        self._groups = groups
        self._rebalances = rebalances

    def sync(self, group: GroupMetadata, request: SyncGroup, callback: SyncCallback) -> None:
        """Answer a member of a group that is coordinated here."""
        error = _refusal(group, request)
        if error is not None:
            callback(SyncGroupResult(error))
            return
        member = group.members[request.member_id]
        if group.state is GroupState.COMPLETING_REBALANCE:
            group.answer_sync(member, SyncGroupResult(ErrorCode.rebalance_in_progress))
            member.awaiting_sync = callback
            self._rebalances.remove_pending_sync(group, request.member_id)
            if group.is_leader(request.member_id):
                self._store(group, request.assignments)
            return
        self._rebalances.remove_pending_sync(group, request.member_id)
        callback(
            SyncGroupResult(
                protocol_type=group.protocol_type,
                protocol_name=group.protocol_name,
                assignment=member.assignment,
            )
        )
        self._rebalances.heartbeats.schedule_next(group, member)

    def _store(self, group: GroupMetadata, assignments: Mapping[str, bytes]) -> None:
        """Write the assignments of the generation; a member that the leader has left out has an empty one."""
        generation_id = group.generation_id
        assignment = {member_id: assignments.get(member_id, b"") for member_id in group.members}

        def on_stored(error: ErrorCode) -> None:
            # A rebalance that has begun meanwhile has answered the members.
            is_current = generation_id == group.generation_id
            if group.state is not GroupState.COMPLETING_REBALANCE or not is_current:
                return
            if error is not ErrorCode.none:
                _logger.info("%s: assignments are not stored: %s", group.group_id, error.name)
                self._rebalances.propagate_assignment_error(group, error)
                self._rebalances.maybe_prepare(group)
                return
            for member in group.members.values():
                member.assignment = assignment.get(member.member_id, b"")
            self._rebalances.propagate_assignment(group)
            group.transition_to(GroupState.STABLE)

        self._groups.store_group(group, assignment, on_stored)


def _refusal(group: GroupMetadata, request: SyncGroup) -> ErrorCode | None:
    if group.is_dead:
        return ErrorCode.coordinator_not_available
    error = member_error(group, request.member_id, request.group_instance_id)
    if error is not None:
        return error
    if request.generation_id != group.generation_id:
        return ErrorCode.illegal_generation
    if request.protocol_type not in (None, group.protocol_type) or (
        request.protocol_name not in (None, group.protocol_name)
    ):
        return ErrorCode.inconsistent_group_protocol
    if group.state is GroupState.EMPTY:
        return ErrorCode.unknown_member_id
    if group.state is GroupState.PREPARING_REBALANCE:
        return ErrorCode.rebalance_in_progress
    return None
