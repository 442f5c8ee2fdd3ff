"""The log of one partition: segments of record batches, the leader epochs among them, the high watermark.

The leader appends what clients send and gives it offsets and its epoch; a follower appends the leader's batches as
they are, and only where they continue its own. Records below the high watermark are committed; what is above may be
truncated when a new leader's log differs (KIP-101, KIP-279).

An append reaches the page cache before it returns and is not synced (``log.flush.interval.messages``): it
survives the end of the process, replication protects it against the loss of the machine. Opening a log recovers it:
epochs and end offset are those of the batches that are there. Order of writes: an epoch before its first batch, a
truncated segment before the epochs; so a crash in between leaves at most epochs at the end of the log, which opening
removes.

Limits: no retention, no compaction (the log start offset is that of the first segment), no transactions.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Final, NamedTuple
from uuid import UUID

from reference.log.errors import (
    InconsistentTopicIdError,
    InvalidRecordError,
    KafkaStorageError,
    OffsetOutOfRangeError,
    OffsetsOutOfOrderError,
    RecordBatchListTooLargeError,
    RecordTooLargeError,
)
from reference.log.leader_epoch_file_cache import EpochEntry, LeaderEpochFileCache
from reference.log.log_config import LogConfig
from reference.log.log_segment import LogSegment
from reference.log.offset_index import MAX_RELATIVE_OFFSET
from reference.log.partition_metadata import read_partition_metadata, write_partition_metadata
from reference.model import UNDEFINED_EPOCH, OffsetAndEpoch, TopicPartition
from reference.ports import Disk
from reference.protocol.record_batch import (
    RecordBatchHeader,
    assign,
    complete_size,
    iter_batches,
    verify_crc,
)

LEADER_EPOCH_CHECKPOINT: Final = "leader-epoch-checkpoint"
_SEGMENT_NAME: Final = re.compile(r"[0-9]{20}\.log")


class AppendedBatch(NamedTuple):
    """One batch as it now is in the log: offsets ``base_offset`` to ``last_offset``, both included."""

    base_offset: int
    last_offset: int
    leader_epoch: int
    crc: int
    size: int


class LogAppendInfo(NamedTuple):
    """What one append added; with no batch, ``last_offset`` is ``first_offset`` − 1."""

    first_offset: int
    last_offset: int
    batches: tuple[AppendedBatch, ...]


class TimestampAndOffset(NamedTuple):
    """A record found by time (ms), and the leader epoch of its batch."""

    timestamp: int
    offset: int
    leader_epoch: int


class Log:
    """One replica of one partition on disk. Offsets count records; end offset and high watermark are exclusive.

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
    ) -> None:
        """Open the log in the directory, recovering it, or create an empty one.

        ``high_watermark`` is the one last checkpointed; what the log does not hold is not below it.
        """
        self.topic_partition = topic_partition
        self.directory = directory
        self._disk = disk
        self.config = config
        """Counts from the next append on; the topic's settings may change it at any time."""
        self._unflushed_messages = 0
        with self._storage_errors("opening"):
            disk.make_directory(directory)
            self._topic_id = read_partition_metadata(disk, directory)
            self.leader_epoch_cache = LeaderEpochFileCache(
                disk, f"{directory}/{LEADER_EPOCH_CHECKPOINT}"
            )
            self._segments = self._load_segments()
        # Plain attributes, which only this class sets: every fetch asks for them of every partition.
        self.log_start_offset = self._segments[0].base_offset
        self.log_end_offset = self._segments[-1].next_offset
        self.high_watermark = self._clamped(high_watermark)

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
    def size_in_bytes(self) -> int:
        return sum(segment.size for segment in self._segments)

    def assign_topic_id(self, topic_id: UUID) -> None:
        """Write partition.metadata unless it names this id; raises InconsistentTopicIdError if it names another."""
        if self._topic_id == topic_id:
            return
        if self._topic_id is not None:
            raise InconsistentTopicIdError(
                f"{self.topic_partition} has topic id {self._topic_id}, not {topic_id}"
            )
        with self._storage_errors("assigning a topic id to"):
            write_partition_metadata(self._disk, self.directory, topic_id)
        self._topic_id = topic_id

    def update_high_watermark(self, offset: int) -> int:
        """Set the high watermark to the offset, or to the nearest one the log can have; return what it is now."""
        if offset != self.high_watermark:
            self.high_watermark = self._clamped(offset)
        return self.high_watermark

    def maybe_assign_epoch_start_offset(self, epoch: int, offset: int) -> bool:
        """Note that the epoch starts at the offset, as a new leader does before it has data (KAFKA-7415).

        Returns whether that was news: an epoch that started earlier keeps its start.
        """
        with self._storage_errors("assigning an epoch to"):
            return self.leader_epoch_cache.assign(epoch, offset)

    def append_as_leader(self, records: bytes, leader_epoch: int) -> LogAppendInfo:
        """Give a client's batches the next offsets and the epoch, and append them.

        Raises RecordError, RecordTooLargeError or RecordBatchListTooLargeError; then nothing was appended.
        """
        if not records:
            raise InvalidRecordError("no record batch to append")
        if len(records) > self.config.segment_bytes:
            raise RecordBatchListTooLargeError(
                f"{len(records)} bytes exceed a segment of {self.config.segment_bytes} bytes"
            )
        produced = list(iter_batches(records))
        for header in produced:
            self._check_produced(header)
            verify_crc(records, header)
        assigned, headers = assign(records, produced, self.log_end_offset, leader_epoch)
        return self._append(assigned, headers)

    def append_as_follower(self, records: bytes) -> LogAppendInfo:
        """Append the leader's batches as they are; a last one that was cut short is left out.

        Raises RecordError, or OffsetsOutOfOrderError unless they start at the log end offset and have no gaps.
        """
        complete = complete_size(records)
        if complete < len(records):
            records = records[:complete]
        headers = list(iter_batches(records))
        expected = self.log_end_offset
        for header in headers:
            if header.base_offset != expected:
                raise OffsetsOutOfOrderError(
                    f"{self.topic_partition} expects offset {expected}, was given {header.base_offset}"
                )
            verify_crc(records, header)
            expected = header.last_offset + 1
        return self._append(records, headers)

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
            return self._segment_of(start_offset).read(
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
                self._truncate_segments(offset)
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
                header = segment.first_batch_from_timestamp(timestamp)
                if header is not None:
                    first_is_late_enough = header.base_timestamp >= timestamp
                    return TimestampAndOffset(
                        header.base_timestamp if first_is_late_enough else header.max_timestamp,
                        header.base_offset,
                        header.partition_leader_epoch,
                    )
        return None

    def flush(self) -> None:
        """Sync what was appended."""
        with self._storage_errors("flushing"):
            self._segments[-1].flush()
        self._unflushed_messages = 0

    def close(self) -> None:
        """Sync what was appended since the last time, and let go of the files."""
        if self._unflushed_messages > 0:
            self.flush()
        self._disk.close(self.directory)

    def _check_produced(self, header: RecordBatchHeader) -> None:
        if header.size_in_bytes > self.config.max_message_bytes:
            raise RecordTooLargeError(
                f"a batch of {header.size_in_bytes} bytes exceeds {self.config.max_message_bytes}"
            )
        if header.record_count != header.last_offset_delta + 1:
            raise InvalidRecordError(
                f"{header.record_count} records, but {header.last_offset_delta + 1} offsets"
            )
        if header.is_control:
            raise InvalidRecordError("clients may not write control batches")

    def _append(self, records: bytes, headers: Sequence[RecordBatchHeader]) -> LogAppendInfo:
        first_offset = self.log_end_offset
        if not headers:
            return LogAppendInfo(first_offset, first_offset - 1, ())
        with self._storage_errors("appending to"):
            segment = self._segments[-1]
            if self._is_full(segment, len(records), headers[-1].last_offset):
                segment = self._roll()
            latest = self.leader_epoch_cache.latest_epoch
            for header in headers:
                if header.partition_leader_epoch != latest:
                    latest = header.partition_leader_epoch
                    self.leader_epoch_cache.assign(latest, header.base_offset)
            segment.append(records, headers)
        last_offset = headers[-1].last_offset
        self.log_end_offset = last_offset + 1
        self._unflushed_messages += last_offset + 1 - first_offset
        if self._unflushed_messages >= self.config.flush_interval_messages:
            self.flush()
        batches = tuple(
            AppendedBatch(
                header.base_offset,
                header.last_offset,
                header.partition_leader_epoch,
                header.crc,
                header.size_in_bytes,
            )
            for header in headers
        )
        return LogAppendInfo(first_offset, last_offset, batches)

    def _is_full(self, segment: LogSegment, more_bytes: int, last_offset: int) -> bool:
        too_large = segment.size + more_bytes > self.config.segment_bytes
        beyond_index = last_offset - segment.base_offset > MAX_RELATIVE_OFFSET
        return segment.size > 0 and (too_large or beyond_index)

    def _roll(self) -> LogSegment:
        """Sync the last segment and start the next one: only the last one is ever in doubt after a crash."""
        last = self._segments[-1]
        last.flush()
        last.write_index()
        self._unflushed_messages = 0
        segment = LogSegment.create(self._disk, self.directory, last.next_offset)
        self._segments.append(segment)
        return segment

    def _truncate_segments(self, offset: int) -> None:
        try:
            while len(self._segments) > 1 and self._segments[-1].base_offset >= offset:
                self._segments[-1].remove()
                del self._segments[-1]
            self._segments[-1].truncate_to(offset)
        finally:
            self.log_end_offset = self._segments[-1].next_offset
            self.high_watermark = self._clamped(self.high_watermark)

    def _segment_of(self, offset: int) -> LogSegment:
        """The one with the largest base offset that is not above the offset; most reads want the last one."""
        last = self._segments[-1]
        if last.base_offset <= offset:
            return last
        return next(s for s in reversed(self._segments) if s.base_offset <= offset)

    def _load_segments(self) -> list[LogSegment]:
        names = self._disk.list(self.directory)
        bases = sorted(int(name[:20]) for name in names if _SEGMENT_NAME.fullmatch(name))
        if not bases:
            self.leader_epoch_cache.truncate_from_end(0)
            return [LogSegment.create(self._disk, self.directory, 0)]
        segments = [
            LogSegment.open_rolled(self._disk, self.directory, base, following)
            for base, following in pairwise(bases)
        ]
        epochs: list[EpochEntry] = []

        def note_epoch(header: RecordBatchHeader) -> None:
            epoch = header.partition_leader_epoch
            if not epochs or epochs[-1].epoch != epoch:
                epochs.append(EpochEntry(epoch, header.base_offset))

        segments.append(LogSegment.recover(self._disk, self.directory, bases[-1], note_epoch))
        self.leader_epoch_cache.rebuild(bases[-1], epochs)
        return segments

    def _clamped(self, offset: int) -> int:
        return min(max(offset, self.log_start_offset), self.log_end_offset)

    def _storage_errors(self, doing: str) -> _StorageErrors:
        return _StorageErrors(doing, self)


class _StorageErrors:
    """Turns an OSError of its block into a KafkaStorageError. No generator: every read and append enters one."""

    __slots__ = ("_doing", "_log")

    def __init__(self, doing: str, log: Log) -> None:
        self._doing = doing
        self._log = log

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: object
    ) -> None:
        if isinstance(error, OSError):
            raise KafkaStorageError(
                f"{self._doing} {self._log.topic_partition}: {error}",
                failed_log_dir=self._log.directory.rpartition("/")[0],
            ) from error
