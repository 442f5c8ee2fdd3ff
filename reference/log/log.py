"""The log of one partition: record batches with offsets, the leader epochs among them, the high watermark.

The leader appends what clients send and gives it offsets and its epoch; a follower appends the leader's batches as
they are, and only where they continue its own; where the leader's log was compacted, they leave gaps. Records below
the high watermark are committed; what is above may be truncated when a new leader's log differs (KIP-101, KIP-279).
Consumers with ``read_committed`` read up to the last stable offset: where the first transaction begins that has no
marker below the high watermark (KIP-98).
Records below the log start offset are gone: deleted by age or size, by DeleteRecords, or because the leader has them no
longer. The log never starts above the high watermark.

Order of writes: an epoch before its first batch, a truncated segment before the epochs; so a crash in between leaves
at most epochs at the end of the log, which opening removes (``log_loader``).

Source: kafka.log.UnifiedLog of Kafka 3.9.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from typing import Final, NamedTuple
from uuid import UUID

from nemesis.reference.log.errors import (
    InconsistentTopicIdError,
    InvalidRecordError,
    OffsetOutOfRangeError,
    OffsetsOutOfOrderError,
    RecordBatchListTooLargeError,
)
from nemesis.reference.log.leader_epoch_file_cache import LeaderEpochFileCache
from nemesis.reference.log.local_log import DeleteLater, LocalLog
from nemesis.reference.log.log_append_info import LogAppendInfo, appended_batches
from nemesis.reference.log.log_config import LogConfig
from nemesis.reference.log.log_loader import LogLoader
from nemesis.reference.log.log_retention import deletable_segments
from nemesis.reference.log.log_segment import LogSegment
from nemesis.reference.log.log_validator import (
    AppendOrigin,
    validate_batch,
    validate_keys,
)
from nemesis.reference.log.partition_metadata import (
    read_partition_metadata,
    write_partition_metadata,
)
from nemesis.reference.log.producer_append_info import (
    AnalyzedAppend,
    OpenedTransaction,
)
from nemesis.reference.log.producer_state_manager import (
    PRODUCER_ID_EXPIRATION_MS,
    ProducerStateManager,
)
from nemesis.reference.log.verification_state import VerificationGuard
from nemesis.reference.model import UNDEFINED_EPOCH, OffsetAndEpoch, TopicPartition
from nemesis.reference.ports import Disk, WallClock
from nemesis.reference.protocol.record_batch import (
    CONTROL_FLAG,
    TRANSACTIONAL_FLAG,
    RecordBatchHeader,
    assign,
    complete_size,
    iter_batches,
    verify_crc,
)
from nemesis.reference.protocol.records import read_records

LEADER_EPOCH_CHECKPOINT: Final = "leader-epoch-checkpoint"
_OF_TRANSACTIONS: Final = TRANSACTIONAL_FLAG | CONTROL_FLAG
OnDeletion = Callable[["Log", int, int], None]
"""Takes the log, how many of its first segments are deleted, and the time (ms) by which they were chosen."""


class TimestampAndOffset(NamedTuple):
    """A record found by time (ms), and the leader epoch of its batch."""

    timestamp: int
    offset: int
    leader_epoch: int


class LogStartOffsetIncrementReason(Enum):
    """Why records at the start of a log are gone."""

    SEGMENT_DELETION = "segment-deletion"
    """By age or size."""
    CLIENT_RECORD_DELETION = "client-record-deletion"
    """By DeleteRecords."""
    LEADER_OFFSET_INCREMENTED = "leader-offset-incremented"
    """The leader's are."""


class Log(LocalLog):
    """One replica of one partition. Offsets count records; end offset and high watermark are exclusive.

    Every method that touches the disk raises KafkaStorageError when that fails.
    """

    def __init__(
        self,
        topic_partition: TopicPartition,
        directory: str,
        *,
        disk: Disk,
        config: LogConfig,
        high_watermark: int = 0,
        log_start_offset: int = 0,
        recovery_point: int = 0,
        had_clean_shutdown: bool = False,
        producer_id_expiration_ms: int = PRODUCER_ID_EXPIRATION_MS,
        wall_clock: WallClock = lambda: 0,
        delete_later: DeleteLater | None = None,
        on_start_moved: Callable[[Log, LogStartOffsetIncrementReason], None] | None = None,
        may_have_gaps: bool = False,
        on_gap: Callable[[Log], None] | None = None,
        transaction_verification_enabled: bool = False,
    ) -> None:
        """Open the log in the directory, mending it, or create an empty one.

        The three offsets are those last checkpointed; what the log does not hold is not below the high watermark.
        ``on_start_moved`` is called when the log start offset has been raised. A log that ``may_have_gaps`` is mended
        accordingly when it is opened; ``on_gap`` has to make that last. With verification, a batch opens a transaction
        only with the guard of ``maybe_start_transaction_verification``.
        """
        super().__init__(
            topic_partition,
            directory,
            disk=disk,
            config=config,
            wall_clock=wall_clock,
            delete_later=delete_later,
        )
        self._on_start_moved = on_start_moved
        self._on_gap = on_gap
        self.may_have_gaps = may_have_gaps
        """Whether a cleaner, here or at a leader of this partition, has removed records."""
        with self._storage_errors("opening"):
            disk.directories.make_directory(directory)
            self._topic_id = read_partition_metadata(disk.files, directory)
            self.leader_epoch_cache = LeaderEpochFileCache(
                disk, f"{directory}/{LEADER_EPOCH_CHECKPOINT}"
            )
            loaded = LogLoader(
                disk,
                directory,
                self.leader_epoch_cache,
                index_interval_bytes=config.index_interval_bytes,
                log_start_offset=log_start_offset,
                recovery_point=recovery_point,
                had_clean_shutdown=had_clean_shutdown,
                may_have_gaps=may_have_gaps,
            ).load()
            self._segments = loaded.segments
            self.producer_state_manager = ProducerStateManager(
                disk,
                directory,
                expiration_ms=producer_id_expiration_ms,
                wall_clock=wall_clock,
                transaction_verification_enabled=transaction_verification_enabled,
            )
            self._transactions = self.producer_state_manager.transactions
            self.producer_state_manager.rebuild(
                self._segments, loaded.log_end_offset, loaded.walked
            )
        # Plain attributes, which only this class sets: every fetch asks for them of every partition.
        self.log_start_offset = loaded.log_start_offset
        self.log_end_offset = loaded.log_end_offset
        self.recovery_point = loaded.recovery_point
        self.high_watermark = self.last_stable_offset = 0
        self._set_high_watermark(high_watermark)

    @property
    def topic_id(self) -> UUID | None:
        """The topic's id as partition.metadata has it; None before it was assigned."""
        return self._topic_id

    @property
    def latest_epoch(self) -> int | None:
        """The latest leader epoch assigned, whether or not it has records; None when there is none."""
        return self.leader_epoch_cache.latest_epoch

    @property
    def epoch_at_end(self) -> int:
        """``latest_epoch`` as the protocol writes it: −1 for none."""
        latest = self.leader_epoch_cache.latest_epoch
        return UNDEFINED_EPOCH if latest is None else latest

    @property
    def producers_end(self) -> int:
        """The offset behind the last batch of which the producer is remembered; 0 if no producer is."""
        return self.producer_state_manager.end_offset

    def assign_topic_id(self, topic_id: UUID) -> None:
        """Write partition.metadata unless it names this id; raises InconsistentTopicIdError if it names another."""
        if self._topic_id == topic_id:
            return
        if self._topic_id is not None:
            raise InconsistentTopicIdError(
                f"{self.topic_partition} has topic id {self._topic_id}, not {topic_id}"
            )
        with self._storage_errors("assigning a topic id to"):
            write_partition_metadata(self._disk.atomic, self.directory, topic_id)
        self._topic_id = topic_id

    def update_high_watermark(self, offset: int) -> int:
        """Set the high watermark to the offset, or to the nearest one the log can have; return what it is now."""
        if offset != self.high_watermark:
            # What ``_set_high_watermark`` does: each append comes by here.
            self.high_watermark = self.last_stable_offset = self._clamped(offset)
            if self._transactions.first_unstable_offset is not None:
                self._follow_high_watermark()
        return self.high_watermark

    def maybe_assign_epoch_start_offset(self, epoch: int, offset: int) -> bool:
        """Note that the epoch starts at the offset, as a new leader does before it has data (KAFKA-7415).

        Returns whether that was news: an epoch that started earlier keeps its start.
        """
        with self._storage_errors("assigning an epoch to"):
            return self.leader_epoch_cache.assign(epoch, offset)

    def maybe_start_transaction_verification(
        self, producer_id: int, sequence: int, epoch: int
    ) -> VerificationGuard | None:
        """Return the guard of a producer whose transaction has to be verified before its batch is appended.

        None if the producer has a transaction open here, which has been verified. The guard is made before the
        coordinator is asked, so that a marker in between makes it void. ``sequence`` is the batch's first.
        """
        return self.producer_state_manager.maybe_start_verification(producer_id, sequence, epoch)

    def append_as_leader(
        self,
        records: bytes,
        leader_epoch: int,
        origin: AppendOrigin = AppendOrigin.CLIENT,
        guard: VerificationGuard | None = None,
    ) -> LogAppendInfo:
        """Give the batches of a client, or of a coordinator, the next offsets and the epoch, and append them.

        What an idempotent producer sends again is not appended again: what is returned says where it is.
        ``guard`` is that of the verified transaction which the batches open.
        Raises RecordError, RecordTooLargeError, RecordBatchListTooLargeError, InvalidProducerEpochError,
        OutOfOrderSequenceError, InvalidTxnStateError or TransactionCoordinatorFencedError; then nothing was appended.
        """
        if not records:
            raise InvalidRecordError("no record batch to append")
        if len(records) > self.config.segment_bytes:
            raise RecordBatchListTooLargeError(
                f"{len(records)} bytes exceed a segment of {self.config.segment_bytes} bytes"
            )
        produced = list(iter_batches(records))
        attributes = 0
        for header in produced:
            attributes |= header.attributes
            validate_batch(header, self.config.max_message_bytes, origin)
            verify_crc(records, header)
            if self.config.is_compact:
                validate_keys(records, header)
        if (duplicate := self.producer_state_manager.find_duplicate(produced)) is not None:
            where = duplicate.first_offset, duplicate.last_offset
            return LogAppendInfo(*where, (), duplicate.timestamp)
        assigned, headers = assign(records, produced, self.log_end_offset, leader_epoch)
        if attributes & _OF_TRANSACTIONS:
            append = self.producer_state_manager.analyzed(assigned, headers, origin, guard)
        else:
            append = AnalyzedAppend(self.producer_state_manager.validated(headers))
        return self._append(assigned, headers, append)

    def append_as_follower(self, records: bytes) -> LogAppendInfo:
        """Append the leader's batches as they are; a last one that was cut short is left out.

        Raises RecordError, or OffsetsOutOfOrderError when they overlap what is there. Gaps are what a cleaner has left,
        perhaps on a broker that is gone and under a policy that is over: before the first one in this log,
        ``on_gap`` is called.
        """
        complete = complete_size(records)
        if complete < len(records):
            records = records[:complete]
        headers = list(iter_batches(records))
        expected, has_gaps, attributes = self.log_end_offset, False, 0
        for header in headers:
            attributes |= header.attributes
            if header.base_offset < expected:
                raise OffsetsOutOfOrderError(
                    f"{self.topic_partition} expects offset {expected}, was given {header.base_offset}"
                )
            has_gaps = has_gaps or header.base_offset > expected
            verify_crc(records, header)
            expected = header.last_offset + 1
        if has_gaps and not self.may_have_gaps:
            self.allow_gaps()
        if attributes & _OF_TRANSACTIONS:
            origin = AppendOrigin.REPLICATION
            append = self.producer_state_manager.analyzed(records, headers, origin)
        else:
            append = AnalyzedAppend(self.producer_state_manager.replicated(headers))
        return self._append(records, headers, append)

    def allow_gaps(self) -> None:
        """From now on there may be gaps: that is made to last before the first one is there."""
        if not self.may_have_gaps:
            if self._on_gap is not None:
                self._on_gap(self)
            self.may_have_gaps = True

    def read(
        self, start_offset: int, max_bytes: int, upper_bound_offset: int, *, min_one_message: bool
    ) -> bytes:
        """Return whole batches of one segment that end below the upper bound, ``max_bytes`` at most.

        The first is the one that holds ``start_offset``, so it may start before it. With ``min_one_message`` it is
        returned even if it is larger than ``max_bytes``. Raises OffsetOutOfRangeError.
        """
        if not self.log_start_offset <= start_offset <= self.log_end_offset:
            raise OffsetOutOfRangeError(
                f"{self.topic_partition} holds offsets {self.log_start_offset} to"
                f" {self.log_end_offset} (exclusive), not {start_offset}"
            )
        if start_offset >= upper_bound_offset:
            return b""
        with self._storage_errors("reading"):
            return self._read_segment(
                start_offset, max_bytes, upper_bound_offset, min_one_message=min_one_message
            )

    def truncate_to(self, offset: int) -> bool:
        """Remove the records from the offset on, whole batches; return whether there were any.

        The end offset is then at most ``offset``, and so is the high watermark. Epochs that start there or later go
        even if they have no records (KAFKA-10706): they are what the new leader contradicts.
        """
        offset = max(offset, self.log_start_offset)
        with self._storage_errors("truncating"):
            truncated = offset < self.log_end_offset
            if truncated:
                try:
                    self._truncate_segments(offset)
                    if self.log_end_offset < self.log_start_offset:
                        self._restart_at(
                            self.log_start_offset
                        )  # it starts within the batch that went
                finally:
                    self._set_high_watermark(self.high_watermark)
                self.producer_state_manager.rebuild(self._segments, self.log_end_offset)
                self._set_high_watermark(self.high_watermark)
            self.leader_epoch_cache.truncate_from_end(self.log_end_offset if truncated else offset)
        return truncated

    def end_offset_for_epoch(self, epoch: int) -> OffsetAndEpoch | None:
        """Return the largest epoch not above the one asked for and where it ends here; None when unknown."""
        return self.leader_epoch_cache.end_offset_for(epoch, self.log_end_offset)

    def offset_for_timestamp(self, timestamp: int) -> TimestampAndOffset | None:
        """Return the first batch that has a record at or after the time (ms); None when there is none.

        Batches stay opaque: the offset is the batch's first, which may precede the record by some of the same batch.
        """
        with self._storage_errors("searching"):
            for segment in self._segments:
                header = segment.first_batch_from_timestamp(timestamp, self.log_start_offset)
                if header is not None:
                    first_is_late_enough = header.base_timestamp >= timestamp
                    return TimestampAndOffset(
                        header.base_timestamp if first_is_late_enough else header.max_timestamp,
                        max(header.base_offset, self.log_start_offset),
                        header.partition_leader_epoch,
                    )
        return None

    def record_of_max_timestamp(self) -> TimestampAndOffset | None:
        """Return the first record with the latest time of all; None when no record has a time. Unpacks its batch.

        Raises ``CorruptRecordError`` when the records of that batch cannot be read.
        """
        with self._storage_errors("searching"):
            segment = max(self._segments, key=lambda segment: segment.max_timestamp)
            batch = segment.batch_of_max_timestamp()
        if batch is None:
            return None
        (header,) = iter_batches(batch)
        records = (
            record
            for record in read_records(batch, header)
            if record.timestamp == header.max_timestamp
        )
        if (record := next(records, None)) is None:
            return None
        return TimestampAndOffset(record.timestamp, record.offset, header.partition_leader_epoch)

    def truncate_fully_and_start_at(self, offset: int, log_start_offset: int | None = None) -> None:
        """Remove every record; what is appended next has this offset.

        The log starts there, or at ``log_start_offset`` where that is above it: the first batch then holds it.
        """
        with self._storage_errors("truncating"):
            self.leader_epoch_cache.truncate_from_end(0)
            self.producer_state_manager.truncate_fully()
            self._restart_at(offset)
        self.log_start_offset = offset if log_start_offset is None else log_start_offset
        self._set_high_watermark(offset)

    def maybe_increment_log_start_offset(
        self, offset: int, reason: LogStartOffsetIncrementReason
    ) -> bool:
        """Let the log start there unless it starts later; return whether that was news.

        Raises OffsetOutOfRangeError when the offset is above the high watermark. The files go with the next retention.
        """
        if offset > self.high_watermark:
            raise OffsetOutOfRangeError(
                f"{self.topic_partition} cannot start at {offset}, above its high watermark"
                f" {self.high_watermark}"
            )
        if offset <= self.log_start_offset:
            return False
        self.log_start_offset = offset
        self._update_last_stable_offset()
        if self._on_start_moved is not None:
            self._on_start_moved(self, reason)
        with self._storage_errors("starting"):
            self.leader_epoch_cache.truncate_from_start(offset)
        return True

    def delete_old_segments(self, on_deletion: OnDeletion | None = None) -> int:
        """Delete the segments that the topic's settings, or the log start offset, allow to go; return how many.

        None that reaches beyond the high watermark (KAFKA-5634). ``on_deletion`` is called before anything is deleted,
        with the number of segments and the time by which they were chosen.
        """
        now_ms = self._wall_clock()
        count = deletable_segments(self, now_ms=now_ms)
        if count == 0:
            return 0
        if count == len(self._segments):
            self.roll()
        start = self._segments[count].base_offset
        if on_deletion is not None:
            on_deletion(self, count, now_ms)
        self.maybe_increment_log_start_offset(start, LogStartOffsetIncrementReason.SEGMENT_DELETION)
        with self._storage_errors("deleting segments of"):
            self.producer_state_manager.delete_snapshots(self._segments[:count])
            self._delete_first_segments(count)
        return count

    def replace_segments(self, cleaned: LogSegment, old: Sequence[LogSegment]) -> None:
        """See ``LocalLog``. Snapshots of producers with which the old segments began go before that.

        Such a snapshot may contain an open transaction of which the log will have neither records nor the marker.
        """
        with self._storage_errors("cleaning"):
            self.producer_state_manager.delete_snapshots(old)
        super().replace_segments(cleaned, old)

    def roll(self) -> LogSegment:
        segment = super().roll()
        with self._storage_errors("rolling"):
            self.producer_state_manager.take_snapshot(segment.base_offset)
        return segment

    def close(self) -> None:
        with self._storage_errors("closing"):
            self.producer_state_manager.take_snapshot(self.log_end_offset)
        super().close()

    def _append(
        self, records: bytes, headers: Sequence[RecordBatchHeader], append: AnalyzedAppend
    ) -> LogAppendInfo:
        first_offset = self.log_end_offset
        if not headers:
            return LogAppendInfo(first_offset, first_offset - 1, ())
        with self._storage_errors("appending to"):
            latest = self.leader_epoch_cache.latest_epoch
            for header in headers:
                if header.partition_leader_epoch != latest:
                    latest = header.partition_leader_epoch
                    self.leader_epoch_cache.assign(latest, header.base_offset)
            self._append_to_segment(records, headers)
        producers, transactions, markers = append
        self.producer_state_manager.update(producers)
        last_offset = headers[-1].last_offset
        self.log_end_offset = last_offset + 1
        if transactions:
            with self._storage_errors("indexing transactions of"):
                self.producer_state_manager.track(transactions, self._segments[-1].transactions)
            self._update_last_stable_offset()
        if self.unflushed_messages >= self.config.flush_interval_messages:
            self.flush()
        opened = tuple(step for step in transactions if isinstance(step, OpenedTransaction))
        batches = appended_batches(headers)
        return LogAppendInfo(first_offset, last_offset, batches, opened=opened, markers=markers)

    def _set_high_watermark(self, offset: int) -> None:
        self.high_watermark = self.last_stable_offset = self._clamped(offset)
        self._follow_high_watermark()

    def _follow_high_watermark(self) -> None:
        self._transactions.on_high_watermark(self.high_watermark)
        self._update_last_stable_offset()

    def _update_last_stable_offset(self) -> None:
        first = self._transactions.first_unstable_offset
        if first is None or first >= self.high_watermark:
            self.last_stable_offset = self.high_watermark
        else:
            self.last_stable_offset = max(first, self.log_start_offset)

    def _clamped(self, offset: int) -> int:
        return min(max(offset, self.log_start_offset), self.log_end_offset)
