"""The groups that this broker coordinates, and their records in the offsets topic.

A leader that is elected again, in a newer epoch, goes on with the groups that it has: its log has had no other writer.
Loading, coordinator epochs and appends are those of ``coordinated_partitions``; the job that loads a partition has its
name.

Source: kafka.coordinator.group.GroupMetadataManager of Kafka 3.9.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping

from kio.schema.errors import ErrorCode

from nemesis.reference.coordinator.coordinated_partitions import (
    CoordinatedPartition,
    CoordinatedPartitions,
)
from nemesis.reference.coordinator.coordinator_logs import CoordinatorLogs, OnVerified
from nemesis.reference.coordinator.group.group_errors import group_error, offset_commit_error
from nemesis.reference.coordinator.group.group_loading import LoadedRecords
from nemesis.reference.coordinator.group.group_metadata import GroupMetadata
from nemesis.reference.coordinator.group.group_offsets import OffsetAndMetadata
from nemesis.reference.coordinator.group.group_records import (
    StoredGroup,
    StoredMember,
    group_key,
    group_value,
    offset_key,
    offset_value,
    tombstones,
)
from nemesis.reference.coordinator.group.group_states import GroupState
from nemesis.reference.kafka_config import KafkaConfig
from nemesis.reference.log.verification_state import VerificationGuard
from nemesis.reference.model import (
    GROUP_METADATA_TOPIC_NAME,
    ProducePartitionResult,
    TopicPartition,
    TransactionalProducer,
)
from nemesis.reference.ports import Scheduler, WallClock
from nemesis.reference.protocol.record_batch import TRANSACTIONAL_FLAG
from nemesis.reference.protocol.records import new_batch

_logger = logging.getLogger(__name__)

_MS_PER_MINUTE = 60_000
_NO_SEQUENCE = -1


class GroupMetadataManager:
    """Groups by id; the partition of each follows from the id and the number of partitions."""

    def __init__(
        self,
        config: KafkaConfig,
        *,
        logs: CoordinatorLogs,
        scheduler: Scheduler,
        wall_clock: WallClock,
        retrieve_partition_count: Callable[[], Awaitable[int]],
    ) -> None:
        """``retrieve_partition_count`` returns how many partitions the offsets topic has."""
        self._config = config
        self._scheduler = scheduler
        self._wall_clock = wall_clock
        self._partitions = CoordinatedPartitions[GroupMetadata, LoadedRecords](
            GROUP_METADATA_TOPIC_NAME,
            logs=logs,
            scheduler=scheduler,
            retrieve_partition_count=retrieve_partition_count,
            load_buffer_size=config.offsets_load_buffer_size,
            new_contents=LoadedRecords,
            items_of=lambda loaded: loaded.groups(wall_clock),
        )
        self._is_expiring = False

    # Roles

    def schedule_load(
        self, partition: int, epoch: int, on_group_loaded: Callable[[GroupMetadata], None]
    ) -> None:
        """Coordinate the groups of a partition from now on, which has been won in the epoch, once they are loaded."""

        def on_loaded(coordinated: CoordinatedPartition[GroupMetadata]) -> None:
            for group in list(coordinated.items.values()):
                on_group_loaded(group)

        if self._partitions.schedule_load(
            partition, epoch, on_loaded, job_name=f"{GROUP_METADATA_TOPIC_NAME}-{partition}"
        ):
            self._start_expiring()

    def remove_groups_for_partition(
        self,
        partition: int,
        epoch: int | None,
        on_group_unloaded: Callable[[GroupMetadata], None],
    ) -> None:
        """Coordinate the groups of a partition no longer: another broker leads it in the epoch.

        Without an epoch the topic is deleted: another one of its name begins with epoch 0 again.
        """
        removed = self._partitions.remove(partition, epoch)
        if removed is not None:
            for group in removed.items.values():
                on_group_unloaded(group)

    def shutdown(self, on_group_unloaded: Callable[[GroupMetadata], None]) -> None:
        """Coordinate nothing from now on."""
        for partition in self._partitions.current:
            self.remove_groups_for_partition(partition.number, None, on_group_unloaded)

    # Look-up

    @property
    def is_loading(self) -> bool:
        """Whether groups of some partition are not known yet."""
        return self._partitions.is_loading

    def status_error(self, group_id: str) -> ErrorCode | None:
        """Why requests about a group cannot be answered; None if they can."""
        return self._partitions.status_error(group_id)

    def get_group(self, group_id: str) -> GroupMetadata | None:
        coordinated = self._partitions.of_key(group_id)
        return None if coordinated is None else coordinated.items.get(group_id)

    def get_or_create_group(self, group_id: str) -> GroupMetadata:
        """Return a group of a partition that is coordinated here, an empty one if it is new."""
        coordinated = self._partitions.of_key(group_id)
        if coordinated is None:
            raise LookupError(f"{group_id} is not coordinated here")
        group = coordinated.items.get(group_id)
        if group is None:
            group = GroupMetadata(group_id, wall_clock=self._wall_clock)
            coordinated.items[group_id] = group
        return group

    def current_groups(self) -> list[GroupMetadata]:
        return [
            group
            for coordinated in self._partitions.current
            for group in coordinated.items.values()
        ]

    # Records

    def store_group(
        self,
        group: GroupMetadata,
        assignment: Mapping[str, bytes],
        on_stored: Callable[[ErrorCode], None],
    ) -> None:
        """Write the group with these assignments; ``on_stored`` is called with the error for its members."""
        record = (group_key(group.group_id), group_value(_stored(group, assignment)))
        self._append(group, [record], lambda result: on_stored(group_error(result.error)))

    def store_offsets(
        self,
        group: GroupMetadata,
        offsets: Mapping[TopicPartition, OffsetAndMetadata],
        on_stored: Callable[[ErrorCode], None],
    ) -> None:
        """Write these offsets, at least one; they count once they are committed in the log."""

        def on_appended(result: ProducePartitionResult) -> None:
            if not group.is_dead:
                if result.error is ErrorCode.none:
                    group.offsets.complete(offsets, result.base_offset)
                else:
                    group.offsets.fail(offsets)
            on_stored(offset_commit_error(result.error))

        group.offsets.prepare(offsets)
        self._append(group, _offset_records(group, offsets), on_appended)

    def store_transactional_offsets(
        self,
        group: GroupMetadata,
        offsets: Mapping[TopicPartition, OffsetAndMetadata],
        producer: TransactionalProducer,
        guard: VerificationGuard | None,
        on_stored: Callable[[ErrorCode], None],
    ) -> None:
        """Write these offsets, at least one; they count once the transaction is committed.

        ``guard`` is that of ``verify_transaction``.
        """
        producer_id = producer.producer_id

        def on_appended(result: ProducePartitionResult) -> None:
            if not group.is_dead:
                if result.error is ErrorCode.none:
                    group.offsets.store_transactional(producer_id, offsets, result.base_offset)
                else:
                    group.offsets.fail_transactional(offsets)
            on_stored(offset_commit_error(result.error))

        group.offsets.prepare_transactional(offsets)
        self._append(group, _offset_records(group, offsets), on_appended, producer, guard)

    def verify_transaction(
        self,
        group: GroupMetadata,
        producer: TransactionalProducer,
        on_verified: OnVerified,
        *,
        knows_abortable: bool,
    ) -> None:
        """Verify that the offsets partition of a group is in a transaction; see ``CoordinatorLogs``."""
        coordinated = self._partitions.of_key(group.group_id)
        if coordinated is None:
            on_verified(ErrorCode.not_leader_or_follower, None)
        else:
            self._partitions.verify_transaction(
                coordinated.number, producer, on_verified, knows_abortable=knows_abortable
            )

    def complete_transaction(
        self, partition: int, producer_id: int, marker_offset: int, *, is_commit: bool
    ) -> None:
        """Commit or drop the pending offsets of a transaction whose marker is in the log of an offsets partition."""
        coordinated = self._partitions.of_number(partition)
        groups = () if coordinated is None else coordinated.items.values()
        for group in groups:
            group.offsets.complete_transactional(producer_id, marker_offset, is_commit=is_commit)

    def _append(
        self,
        group: GroupMetadata,
        records: list[tuple[bytes, bytes | None]],
        on_appended: Callable[[ProducePartitionResult], None],
        producer: TransactionalProducer | None = None,
        guard: VerificationGuard | None = None,
    ) -> None:
        coordinated = self._partitions.of_key(group.group_id)
        if coordinated is None or coordinated.items.get(group.group_id) is not group:
            on_appended(ProducePartitionResult(ErrorCode.not_leader_or_follower))
            return
        self._partitions.append(
            coordinated,
            _batch(records, self._wall_clock(), producer),
            timeout_ms=self._config.offsets_commit_timeout_ms,
            on_appended=on_appended,
            guard=guard,
        )

    # Deletion and expiry

    def _start_expiring(self) -> None:
        """Look for expired offsets from now on. A broker that never coordinates anything has no such job."""
        if not self._is_expiring:
            self._is_expiring = True
            self._scheduler.schedule(
                "delete-expired-group-metadata",
                self.cleanup_expired_metadata,
                period_s=self._config.offsets_retention_check_interval_ms / 1000,
            )

    def cleanup_expired_metadata(self) -> None:
        """Delete the offsets that have expired, and the groups that have neither members nor offsets."""
        now_ms = self._wall_clock()
        retention_ms = self._config.offsets_retention_minutes * _MS_PER_MINUTE
        self.cleanup_groups(
            self.current_groups(),
            lambda group: group.remove_expired_offsets(now_ms, retention_ms),
        )

    def cleanup_groups(
        self,
        groups: Iterable[GroupMetadata],
        remove_offsets: Callable[[GroupMetadata], tuple[TopicPartition, ...]],
    ) -> None:
        """Delete offsets of groups, and those of the groups that are empty and have no offsets left, or are dead."""
        for group in groups:
            removed = remove_offsets(group)
            if group.state is GroupState.EMPTY and group.offsets.is_empty:
                group.transition_to(GroupState.DEAD)
            self._write_tombstones(group, removed)

    def _write_tombstones(self, group: GroupMetadata, removed: tuple[TopicPartition, ...]) -> None:
        coordinated = self._partitions.of_key(group.group_id)
        if coordinated is None or coordinated.items.get(group.group_id) is not group:
            return
        if group.is_dead:
            del coordinated.items[group.group_id]
        # A group of generation 0 has never been written.
        with_group = group.is_dead and group.generation_id > 0
        records = tombstones(group.group_id, removed, with_group=with_group)
        if records and not self._partitions.append_unacknowledged(
            coordinated, new_batch(records, self._wall_clock())
        ):
            _logger.warning("the deletion of offsets of %s is not in the log", group.group_id)


def _offset_records(
    group: GroupMetadata, offsets: Mapping[TopicPartition, OffsetAndMetadata]
) -> list[tuple[bytes, bytes | None]]:
    return [
        (offset_key(group.group_id, topic_partition), offset_value(offset))
        for topic_partition, offset in offsets.items()
    ]


def _batch(
    records: list[tuple[bytes, bytes | None]], now_ms: int, producer: TransactionalProducer | None
) -> bytes:
    if producer is None:
        return new_batch(records, now_ms)
    return new_batch(
        records,
        now_ms,
        attributes=TRANSACTIONAL_FLAG,
        producer=(producer.producer_id, producer.epoch, _NO_SEQUENCE),
    )


def _stored(group: GroupMetadata, assignment: Mapping[str, bytes]) -> StoredGroup:
    protocol = group.protocol_name
    return StoredGroup(
        group.protocol_type or "",
        group.generation_id,
        protocol,
        group.leader_id,
        group.current_state_timestamp,
        tuple(
            StoredMember(
                member.member_id,
                member.group_instance_id,
                member.client_id,
                member.client_host,
                member.rebalance_timeout_ms,
                member.session_timeout_ms,
                member.metadata(protocol or ""),
                assignment.get(member.member_id, b""),
            )
            for member in group.members.values()
        ),
    )
