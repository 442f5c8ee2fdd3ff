"""The group coordinator of one broker: every request about consumer groups, and what changes of role mean for them.

A request about a group that is not coordinated here is refused with what lets its client find the coordinator:
COORDINATOR_NOT_AVAILABLE while the broker starts or stops, COORDINATOR_LOAD_IN_PROGRESS, NOT_COORDINATOR. Everything
else is decided by the group's state, member by member.

Source: kafka.coordinator.group.GroupCoordinator of Kafka 3.9 (the coordinator of KIP-62, not that of KIP-848).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from random import Random  # noqa: TID251  # the type; the instance is an argument

from kio.schema.errors import ErrorCode

from nemesis.reference.coordinator.group.group_joins import GroupJoins, JoinGroup, member_error
from nemesis.reference.coordinator.group.group_metadata import CONSUMER, GroupMetadata
from nemesis.reference.coordinator.group.group_metadata_manager import GroupMetadataManager
from nemesis.reference.coordinator.group.group_results import (
    UNKNOWN_MEMBER_ID,
    GroupOverview,
    GroupSummary,
    JoinCallback,
    JoinGroupResult,
    LeaveGroupResult,
    MemberIdentity,
    OffsetFetchResult,
    SyncCallback,
    SyncGroupResult,
)
from nemesis.reference.coordinator.group.group_states import GroupState
from nemesis.reference.coordinator.group.group_syncs import GroupSyncs, SyncGroup
from nemesis.reference.coordinator.group.offset_commits import (
    CommitCallback,
    OffsetCommit,
    OffsetCommits,
    fetch_offsets,
)
from nemesis.reference.coordinator.group.rebalances import Rebalances
from nemesis.reference.kafka_config import KafkaConfig
from nemesis.reference.model import TopicPartition

CLASSIC_GROUP = "classic"
"""The type of all groups here, as ListGroups 5 reports it (KIP-848 adds others)."""


class GroupCoordinator:
    """Answers requests about the groups of one broker."""

    def __init__(self, config: KafkaConfig, groups: GroupMetadataManager, *, rng: Random) -> None:
        """``rng`` gives member ids."""
        self._config = config
        self._groups = groups
        self._rebalances = Rebalances(config, groups)
        self._joins = GroupJoins(config, groups, self._rebalances, rng)
        self._syncs = GroupSyncs(groups, self._rebalances)
        self._commits = OffsetCommits(
            groups,
            self._rebalances.heartbeats,
            max_metadata_bytes=config.offset_metadata_max_bytes,
        )
        self._is_active = True

    # Roles

    def on_election(self, partition: int, leader_epoch: int) -> None:
        """This broker leads an offsets partition."""
        if self._is_active:
            self._groups.schedule_load(
                partition,
                leader_epoch,
                lambda group: self._rebalances.on_group_loaded(group, self._config.group_max_size),
            )

    def on_resignation(self, partition: int, leader_epoch: int | None) -> None:
        """This broker does not lead an offsets partition any more; None: the topic is deleted."""
        self._groups.remove_groups_for_partition(
            partition, leader_epoch, self._rebalances.on_group_unloaded
        )

    def shutdown(self) -> None:
        """Send all members to other coordinators, and wait for nothing any longer."""
        self._is_active = False
        self._groups.shutdown(self._rebalances.on_group_unloaded)
        self._rebalances.shutdown()

    # Members

    def join_group(self, request: JoinGroup, callback: JoinCallback) -> None:
        error = self._status_error(request.group_id)
        if error is None and not (
            self._config.group_min_session_timeout_ms
            <= request.session_timeout_ms
            <= self._config.group_max_session_timeout_ms
        ):
            error = ErrorCode.invalid_session_timeout
        group = None if error is not None else self._groups.get_group(request.group_id)
        if error is None and group is None:
            if request.member_id == UNKNOWN_MEMBER_ID:
                group = self._groups.get_or_create_group(request.group_id)
            else:
                error = ErrorCode.unknown_member_id
        if group is None:
            refusal = error or ErrorCode.unknown_server_error
            callback(JoinGroupResult(request.member_id, refusal))
        else:
            self._joins.join(group, request, callback)

    def sync_group(self, request: SyncGroup, callback: SyncCallback) -> None:
        error = self._status_error(request.group_id)
        group = None if error is not None else self._groups.get_group(request.group_id)
        if group is not None:
            self._syncs.sync(group, request, callback)
        elif error is ErrorCode.coordinator_load_in_progress:
            # The assignments of a generation that was not stored are lost: the member joins again.
            callback(SyncGroupResult(ErrorCode.rebalance_in_progress))
        else:
            callback(SyncGroupResult(error or ErrorCode.unknown_member_id))

    def heartbeat(
        self, group_id: str, generation_id: int, member_id: str, group_instance_id: str | None
    ) -> ErrorCode:
        error = self._status_error(group_id)
        if error is ErrorCode.coordinator_load_in_progress:
            return ErrorCode.none  # its session begins when the group is loaded
        if error is not None:
            return error
        group = self._groups.get_group(group_id)
        if group is None:
            return ErrorCode.unknown_member_id
        if group.is_dead:
            return ErrorCode.coordinator_not_available
        error = member_error(group, member_id, group_instance_id)
        if error is not None:
            return error
        if generation_id != group.generation_id:
            return ErrorCode.illegal_generation
        self._rebalances.heartbeats.schedule_next(group, group.members[member_id])
        is_preparing = group.state is GroupState.PREPARING_REBALANCE
        return ErrorCode.rebalance_in_progress if is_preparing else ErrorCode.none

    def leave_group(self, group_id: str, leaving: Iterable[MemberIdentity]) -> LeaveGroupResult:
        error = self._status_error(group_id)
        if error is not None:
            return LeaveGroupResult(error)
        group = self._groups.get_group(group_id)
        if group is None:
            unknown = ErrorCode.unknown_member_id
            return LeaveGroupResult(members=tuple((identity, unknown) for identity in leaving))
        if group.is_dead:
            return LeaveGroupResult(ErrorCode.coordinator_not_available)
        return LeaveGroupResult(
            members=tuple((identity, self._leave(group, identity)) for identity in leaving)
        )

    def _leave(self, group: GroupMetadata, leaving: MemberIdentity) -> ErrorCode:
        """Let a member leave; an administrator names a static member by its instance id alone."""
        member_id, instance_id = leaving.member_id, leaving.group_instance_id
        if member_id == UNKNOWN_MEMBER_ID:
            current = None if instance_id is None else group.static_members.get(instance_id)
            if current is None:
                return ErrorCode.unknown_member_id
            member_id = current
        elif member_id in group.pending_members:
            self._rebalances.remove_pending_member(group, member_id)
            self._rebalances.heartbeats.check(group, member_id)
            return ErrorCode.none
        error = member_error(group, member_id, instance_id)
        if error is not None:
            return error
        self._rebalances.remove_member(group, group.members[member_id])
        self._rebalances.heartbeats.check(group, member_id)
        return ErrorCode.none

    # Offsets

    def commit_offsets(self, request: OffsetCommit, callback: CommitCallback) -> None:
        """Commit offsets, also those of a transaction, whose group need not exist."""
        is_transactional = request.producer is not None
        error = self._status_error(request.group_id, may_be_empty=not is_transactional)
        group = None if error is not None else self._groups.get_group(request.group_id)
        if error is None and group is None:
            if is_transactional or request.generation_id < 0:
                group = self._groups.get_or_create_group(request.group_id)
            else:
                error = ErrorCode.illegal_generation
        if group is None:
            callback(request.refused(error or ErrorCode.unknown_server_error))
        else:
            self._commits.commit(group, request, callback)

    def on_transaction_completed(
        self, partition: int, producer_id: int, marker_offset: int, *, is_commit: bool
    ) -> None:
        """The marker of a transaction is in the log of an offsets partition."""
        self._groups.complete_transaction(
            partition, producer_id, marker_offset, is_commit=is_commit
        )

    def fetch_offsets(
        self,
        group_id: str,
        partitions: Sequence[TopicPartition] | None,
        *,
        require_stable: bool,
    ) -> tuple[ErrorCode, Mapping[TopicPartition, OffsetFetchResult]]:
        """Return the error of the request, and the committed offsets of these or (None) of all partitions."""
        error = self._status_error(group_id, may_be_empty=True)
        if error is not None:
            return error, {}
        group = self._groups.get_group(group_id)
        return ErrorCode.none, fetch_offsets(group, partitions, require_stable=require_stable)

    def delete_offsets(
        self, group_id: str, partitions: Sequence[TopicPartition]
    ) -> tuple[ErrorCode, Mapping[TopicPartition, ErrorCode]]:
        """Delete committed offsets; those of topics that a live group of consumers consumes stay (KIP-496)."""
        error = self._status_error(group_id)
        if error is not None:
            return error, {}
        group = self._groups.get_group(group_id)
        if group is None or group.is_dead:
            return ErrorCode.group_id_not_found, {}
        is_empty = group.state is GroupState.EMPTY
        if not is_empty and group.protocol_type != CONSUMER:
            return ErrorCode.non_empty_group, {}
        deletable = [key for key in partitions if is_empty or not group.is_subscribed_to(key.topic)]
        self._groups.cleanup_groups([group], lambda group: group.offsets.remove(deletable))
        subscribed = dict.fromkeys(partitions, ErrorCode.group_subscribed_to_topic)
        return ErrorCode.none, subscribed | dict.fromkeys(deletable, ErrorCode.none)

    def remove_offsets_of(self, deleted: Collection[TopicPartition]) -> None:
        """Delete the committed offsets of partitions that are deleted."""
        self._groups.cleanup_groups(
            self._groups.current_groups(), lambda group: group.offsets.remove(deleted)
        )

    # Administration

    def list_groups(
        self, states: Collection[str], types: Collection[str]
    ) -> tuple[ErrorCode, list[GroupOverview]]:
        """Return the groups that are coordinated here, of these states and types; empty filters are none."""
        if not self._is_active:
            return ErrorCode.coordinator_not_available, []
        wanted = {state.lower() for state in states}
        is_classic = not types or CLASSIC_GROUP in {name.lower() for name in types}
        groups = [
            group.overview()
            for group in self._groups.current_groups()
            if is_classic and (not wanted or group.state.value.lower() in wanted)
        ]
        is_loading = self._groups.is_loading
        error = ErrorCode.coordinator_load_in_progress if is_loading else ErrorCode.none
        return error, groups

    def describe_group(self, group_id: str) -> GroupSummary:
        """A group that does not exist is described as dead."""
        error = self._status_error(group_id, may_be_empty=True)
        if error is not None:
            return GroupSummary(error)
        group = self._groups.get_group(group_id)
        if group is None:
            return GroupSummary(state=GroupState.DEAD.value)
        return group.summary()

    def delete_groups(self, group_ids: Iterable[str]) -> dict[str, ErrorCode]:
        """Delete groups without members, with their offsets."""
        return {group_id: self._delete_group(group_id) for group_id in group_ids}

    def _delete_group(self, group_id: str) -> ErrorCode:
        error = self._status_error(group_id, may_be_empty=True)
        if error is not None:
            return error
        group = self._groups.get_group(group_id)
        if group is None or group.is_dead:
            return ErrorCode.group_id_not_found
        if group.state is not GroupState.EMPTY:
            return ErrorCode.non_empty_group
        group.transition_to(GroupState.DEAD)
        self._groups.cleanup_groups(
            [group], lambda group: group.offsets.remove(group.offsets.partitions)
        )
        return ErrorCode.none

    def _status_error(self, group_id: str, *, may_be_empty: bool = False) -> ErrorCode | None:
        if not group_id and not may_be_empty:
            return ErrorCode.invalid_group_id
        if not self._is_active:
            return ErrorCode.coordinator_not_available
        return self._groups.status_error(group_id)
