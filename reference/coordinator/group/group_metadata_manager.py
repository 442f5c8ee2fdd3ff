"""The groups that this broker coordinates, and their records in the offsets topic.

A broker coordinates the groups of the offsets partitions that it leads, from the end of their loading until it leads
them no more. The leader epoch of the partition is the coordinator epoch: an election or resignation of an older epoch
has no effect, a loading that a newer one has overtaken ends without one, and an append reaches the log in the epoch in
which the group was loaded, or not at all. A leader that is elected again, in a newer epoch, goes on with the groups
that it has: its log has had no other writer.

Loading is a job of its own of the scheduler, named after the partition. A log that cannot be read is not coordinated:
its groups are answered NOT_COORDINATOR.

Source: kafka.coordinator.group.GroupMetadataManager of Kafka 3.9.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field

from kio.schema.errors import ErrorCode

from nemesis.reference.coordinator.group.coordinator_logs import CoordinatorLogs
from nemesis.reference.coordinator.group.group_errors import group_error, offset_commit_error
from nemesis.reference.coordinator.group.group_loading import LoadedRecords
from nemesis.reference.coordinator.group.group_metadata import GroupMetadata
from nemesis.reference.coordinator.group.group_offsets import OffsetAndMetadata
from nemesis.reference.coordinator.group.group_partitions import partition_for
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
from nemesis.reference.model import (
    GROUP_METADATA_TOPIC_NAME,
    ProducePartitionResult,
    TopicPartition,
)
from nemesis.reference.ports import Scheduler, WallClock
from nemesis.reference.protocol.records import new_batch

_logger = logging.getLogger(__name__)

_MS_PER_MINUTE = 60_000
_LOAD_STEP_BYTES = 1 << 18
"""How much is read before other tasks run: some milliseconds. A larger buffer would hold up the broker."""


@dataclass(slots=True)
class _Coordinated:
    """An offsets partition that this broker leads."""

    epoch: int
    is_loading: bool = True
    groups: dict[str, GroupMetadata] = field(default_factory=dict)


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
        self._logs = logs
        self._scheduler = scheduler
        self._wall_clock = wall_clock
        self._retrieve_partition_count = retrieve_partition_count
        self._partition_count: int | None = None
        self._coordinated: dict[int, _Coordinated] = {}
        self._epochs: dict[int, int] = {}
        """The latest coordinator epoch of each partition, in this process."""
        self._is_expiring = False

    # Roles

    def schedule_load(
        self, partition: int, epoch: int, on_group_loaded: Callable[[GroupMetadata], None]
    ) -> None:
        """Coordinate the groups of a partition from now on, which has been won in the epoch, once they are loaded."""
        if epoch <= self._epochs.get(partition, -1):
            _logger.info("offsets partition %d is not loaded in the old epoch %d", partition, epoch)
            return
        self._epochs[partition] = epoch
        coordinated = self._coordinated.get(partition)
        if coordinated is not None and not coordinated.is_loading:
            coordinated.epoch = epoch
            return
        self._coordinated[partition] = loading = _Coordinated(epoch)
        self._start_expiring()
        self._scheduler.schedule_once(
            str(_topic_partition(partition)),
            lambda: self._load(partition, loading, on_group_loaded),
            delay_s=0,
        )

    def remove_groups_for_partition(
        self,
        partition: int,
        epoch: int | None,
        on_group_unloaded: Callable[[GroupMetadata], None],
    ) -> None:
        """Coordinate the groups of a partition no longer: another broker leads it in the epoch.

        Without an epoch the topic is deleted: another one of its name begins with epoch 0 again.
        """
        if epoch is None:
            self._epochs.pop(partition, None)
        elif epoch < self._epochs.get(partition, -1):
            return
        else:
            self._epochs[partition] = epoch
        coordinated = self._coordinated.pop(partition, None)
        if coordinated is not None:
            _logger.info("offsets partition %d is given up in epoch %s", partition, epoch)
            for group in coordinated.groups.values():
                on_group_unloaded(group)
        if not self._coordinated:
            self._partition_count = None  # the topic may come back with another number

    def shutdown(self, on_group_unloaded: Callable[[GroupMetadata], None]) -> None:
        """Coordinate nothing from now on."""
        for partition in list(self._coordinated):
            self.remove_groups_for_partition(partition, None, on_group_unloaded)

    async def _load(
        self,
        partition: int,
        loading: _Coordinated,
        on_group_loaded: Callable[[GroupMetadata], None],
    ) -> None:
        def is_current() -> bool:
            return self._coordinated.get(partition) is loading

        try:
            count = await self._retrieve_partition_count()
            loaded = await self._read(partition, loading.epoch, is_current)
        except Exception:
            _logger.exception("offsets partition %d is not loaded", partition)
            loaded = None
        if not is_current():
            return
        if loaded is None:
            _logger.info("offsets partition %d is not led in epoch %d", partition, loading.epoch)
            del self._coordinated[partition]
            return
        if self._partition_count is None:
            self._partition_count = count
        loading.groups = loaded.groups(self._wall_clock)
        loading.is_loading = False
        _logger.info(
            "offsets partition %d: %d groups in epoch %d",
            partition,
            len(loading.groups),
            loading.epoch,
        )
        for group in list(loading.groups.values()):
            on_group_loaded(group)

    async def _read(
        self, partition: int, epoch: int, is_current: Callable[[], bool]
    ) -> LoadedRecords | None:
        """Return what the log has; None if it is not led here in the epoch any more."""
        loaded = LoadedRecords()
        offset = 0
        max_bytes = min(self._config.offsets_load_buffer_size, _LOAD_STEP_BYTES)
        while is_current():
            read = self._logs.read(_topic_partition(partition), epoch, offset, max_bytes)
            if read is None:
                break
            loaded.take_in(read.records)
            if read.is_end:
                return loaded
            offset = read.next_offset
            await asyncio.sleep(0)
        return None

    # Look-up

    @property
    def is_loading(self) -> bool:
        """Whether groups of some partition are not known yet."""
        return any(coordinated.is_loading for coordinated in self._coordinated.values())

    def status_error(self, group_id: str) -> ErrorCode | None:
        """Why requests about a group cannot be answered; None if they can."""
        if self._partition_count is None:
            return (
                ErrorCode.coordinator_load_in_progress
                if self.is_loading
                else ErrorCode.not_coordinator
            )
        coordinated = self._coordinated_of(group_id)
        if coordinated is None:
            return ErrorCode.not_coordinator
        return ErrorCode.coordinator_load_in_progress if coordinated.is_loading else None

    def get_group(self, group_id: str) -> GroupMetadata | None:
        coordinated = self._coordinated_of(group_id)
        return None if coordinated is None else coordinated.groups.get(group_id)

    def get_or_create_group(self, group_id: str) -> GroupMetadata:
        """Return a group of a partition that is coordinated here, an empty one if it is new."""
        coordinated = self._coordinated_of(group_id)
        if coordinated is None:
            raise LookupError(f"{group_id} is not coordinated here")
        group = coordinated.groups.get(group_id)
        if group is None:
            group = GroupMetadata(group_id, wall_clock=self._wall_clock)
            coordinated.groups[group_id] = group
        return group

    def current_groups(self) -> list[GroupMetadata]:
        return [
            group
            for coordinated in self._coordinated.values()
            for group in coordinated.groups.values()
        ]

    def _coordinated_of(self, group_id: str) -> _Coordinated | None:
        if self._partition_count is None:
            return None
        return self._coordinated.get(partition_for(group_id, self._partition_count))

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

        records: list[tuple[bytes, bytes | None]] = [
            (offset_key(group.group_id, topic_partition), offset_value(offset))
            for topic_partition, offset in offsets.items()
        ]
        group.offsets.prepare(offsets)
        self._append(group, records, on_appended)

    def _append(
        self,
        group: GroupMetadata,
        records: list[tuple[bytes, bytes | None]],
        on_appended: Callable[[ProducePartitionResult], None],
    ) -> None:
        coordinated = self._coordinated_of(group.group_id)
        if coordinated is None or coordinated.groups.get(group.group_id) is not group:
            on_appended(ProducePartitionResult(ErrorCode.not_leader_or_follower))
            return
        self._logs.append(
            self._partition_of(group),
            coordinated.epoch,
            new_batch(records, self._wall_clock()),
            timeout_ms=self._config.offsets_commit_timeout_ms,
            on_appended=on_appended,
        )

    def _partition_of(self, group: GroupMetadata) -> TopicPartition:
        return _topic_partition(partition_for(group.group_id, self._partition_count or 1))

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
            if group.state is GroupState.EMPTY and not len(group.offsets):
                group.transition_to(GroupState.DEAD)
            self._write_tombstones(group, removed)

    def _write_tombstones(self, group: GroupMetadata, removed: tuple[TopicPartition, ...]) -> None:
        coordinated = self._coordinated_of(group.group_id)
        if coordinated is None or coordinated.groups.get(group.group_id) is not group:
            return
        if group.is_dead:
            del coordinated.groups[group.group_id]
        # A group of generation 0 has never been written.
        with_group = group.is_dead and group.generation_id > 0
        records = tombstones(group.group_id, removed, with_group=with_group)
        if records and not self._logs.append_unacknowledged(
            self._partition_of(group), coordinated.epoch, new_batch(records, self._wall_clock())
        ):
            _logger.warning("the deletion of offsets of %s is not in the log", group.group_id)


def _topic_partition(partition: int) -> TopicPartition:
    return TopicPartition(GROUP_METADATA_TOPIC_NAME, partition)


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
