"""OffsetCommit, TxnOffsetCommit and OffsetFetch of one group.

A member commits in its generation, and not while assignments are on their way. A client without membership (generation
−1) commits in a group that has no members.

A TxnOffsetCommit is checked likewise if it names a member (KIP-447), also while assignments are on their way. One that
names none is accepted, as older producers send it. The session of the member ends as if it had not been sent.

Before the offsets of a TxnOffsetCommit are written, the transaction coordinator confirms that the transaction has their
offsets partition (KIP-890).

Source: kafka.coordinator.group.GroupCoordinator (validateOffsetCommit, doCommitOffsets, doTxnCommitOffsets),
GroupMetadataManager (storeOffsets, getOffsets) of Kafka 3.9.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from kio.schema.errors import ErrorCode

from nemesis.reference.coordinator.group.group_errors import offset_commit_error
from nemesis.reference.coordinator.group.group_joins import member_error
from nemesis.reference.coordinator.group.group_metadata import GroupMetadata
from nemesis.reference.coordinator.group.group_metadata_manager import GroupMetadataManager
from nemesis.reference.coordinator.group.group_offsets import OffsetAndMetadata
from nemesis.reference.coordinator.group.group_results import (
    UNKNOWN_MEMBER_ID,
    OffsetFetchResult,
)
from nemesis.reference.coordinator.group.group_states import GroupState
from nemesis.reference.coordinator.group.heartbeats import Heartbeats
from nemesis.reference.log.verification_state import VerificationGuard
from nemesis.reference.model import TopicPartition, TransactionalProducer

CommitCallback = Callable[[Mapping[TopicPartition, ErrorCode]], None]


@dataclass(frozen=True, slots=True)
class OffsetCommit:
    """An OffsetCommit or TxnOffsetCommit request of any version."""

    group_id: str
    generation_id: int
    """−1 of a client without membership."""
    member_id: str
    group_instance_id: str | None
    offsets: Mapping[TopicPartition, OffsetAndMetadata]
    producer: TransactionalProducer | None = None
    """Of a TxnOffsetCommit."""
    knows_abortable: bool = False
    """Whether the producer understands TRANSACTION_ABORTABLE."""

    def refused(self, error: ErrorCode) -> dict[TopicPartition, ErrorCode]:
        return dict.fromkeys(self.offsets, error)


class OffsetCommits:
    """Answers go to the callback of the request, in this step or when the offsets are committed in the log."""

    def __init__(
        self, groups: GroupMetadataManager, heartbeats: Heartbeats, *, max_metadata_bytes: int
    ) -> None:
        self._groups = groups
        self._heartbeats = heartbeats
        self._max_metadata_length = max_metadata_bytes

    def commit(self, group: GroupMetadata, request: OffsetCommit, callback: CommitCallback) -> None:
        """Commit offsets of a group that is coordinated here, those of a transaction once it is verified."""
        if request.producer is None:
            self._commit(group, request, None, callback)
            return

        def on_verified(error: ErrorCode, guard: VerificationGuard | None) -> None:
            if error is ErrorCode.none:
                self._commit(group, request, guard, callback)
            else:
                callback(request.refused(offset_commit_error(error)))

        self._groups.verify_transaction(
            group, request.producer, on_verified, knows_abortable=request.knows_abortable
        )

    def _commit(
        self,
        group: GroupMetadata,
        request: OffsetCommit,
        guard: VerificationGuard | None,
        callback: CommitCallback,
    ) -> None:
        error = _refusal(group, request)
        if error is not None:
            callback(request.refused(error))
            return
        member = group.members.get(request.member_id)
        is_alive = request.producer is None and group.state is not GroupState.EMPTY
        if member is not None and is_alive:
            self._heartbeats.schedule_next(group, member)
        accepted = {
            topic_partition: offset
            for topic_partition, offset in request.offsets.items()
            if len(offset.metadata) <= self._max_metadata_length
        }
        refused = request.refused(ErrorCode.offset_metadata_too_large)
        if not accepted:
            callback(refused)
            return

        def on_stored(outcome: ErrorCode) -> None:
            callback(refused | dict.fromkeys(accepted, outcome))

        if request.producer is None:
            self._groups.store_offsets(group, accepted, on_stored)
        else:
            self._groups.store_transactional_offsets(
                group, accepted, request.producer, guard, on_stored
            )


def fetch_offsets(
    group: GroupMetadata | None,
    partitions: Sequence[TopicPartition] | None,
    *,
    require_stable: bool,
) -> dict[TopicPartition, OffsetFetchResult]:
    """Return the committed offset of each partition, or (None) of all that have one."""
    if group is None or group.is_dead:
        return dict.fromkeys(partitions or (), OffsetFetchResult())
    named = group.offsets.partitions if partitions is None else partitions
    return {key: _fetched(group, key, require_stable=require_stable) for key in named}


def _fetched(
    group: GroupMetadata, topic_partition: TopicPartition, *, require_stable: bool
) -> OffsetFetchResult:
    if require_stable and group.offsets.is_pending(topic_partition):
        return OffsetFetchResult(error=ErrorCode.unstable_offset_commit)
    committed = group.offsets.get(topic_partition)
    if committed is None:
        return OffsetFetchResult()
    return OffsetFetchResult(committed.offset, committed.leader_epoch, committed.metadata)


def _refusal(group: GroupMetadata, request: OffsetCommit) -> ErrorCode | None:
    if group.is_dead:
        return ErrorCode.coordinator_not_available
    is_empty = group.state is GroupState.EMPTY
    if request.generation_id < 0 and is_empty:
        return None
    names_member = (
        request.generation_id >= 0
        or request.member_id != UNKNOWN_MEMBER_ID
        or request.group_instance_id is not None
    )
    is_transactional = request.producer is not None
    if not names_member:
        return None if is_transactional else ErrorCode.unknown_member_id
    error = member_error(group, request.member_id, request.group_instance_id)
    if error is not None:
        return error
    if request.generation_id != group.generation_id:
        return ErrorCode.illegal_generation
    if group.state is GroupState.COMPLETING_REBALANCE and not is_transactional:
        return ErrorCode.rebalance_in_progress
    return None
