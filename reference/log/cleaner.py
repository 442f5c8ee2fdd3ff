"""Compacts one log: learns the last offset of each key, then writes old segments again without what came before.

1. The offset map takes in the dirty part of the log, from where the last cleaning ended, segment by segment, until it
   is full or the part that may be cleaned ends.
2. All segments up to there, clean ones too, are written again in groups that fit one segment each, and replaced.

What a key's last record in the map supersedes goes, wherever it stands below. Records of aborted transactions do not
get into the map, and go; their markers follow later (``cleaned_transactions``). Between two reads the cleaner lets
others do their work; it then makes sure that its cleaning has not been given up meanwhile.

Source: kafka.log.Cleaner of Kafka 3.9. Where it differs: the dedupe buffer is a bound of keys, not memory that is taken
beforehand.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from nemesis.reference.log.cleaned_transactions import CleanedTransactions
from nemesis.reference.log.log import Log
from nemesis.reference.log.log_segment import LogSegment
from nemesis.reference.log.offset_index import MAX_RELATIVE_OFFSET
from nemesis.reference.log.offset_map import OffsetMap
from nemesis.reference.log.record_filter import RecordFilter
from nemesis.reference.log.storage_errors import StorageErrors
from nemesis.reference.log.transaction_index import AbortedRanges
from nemesis.reference.ports import WallClock
from nemesis.reference.protocol.record_batch import RecordBatchHeader, iter_batches, verify_crc
from nemesis.reference.protocol.records import read_records


class LogToClean(NamedTuple):
    """A log, from where on it is dirty, and where what may be cleaned ends: the start of a segment."""

    log: Log
    first_dirty_offset: int
    first_uncleanable_offset: int
    high_watermark: int
    """When that was decided."""


@dataclass(slots=True)
class CleanedSegments:
    """What became of some segments that follow one another."""

    high_watermark: int
    """When it was decided to clean them."""
    base_offset: int
    last_offset: int
    """Before the next segment begins."""
    bytes_before: int
    wall_ms: int
    """When the cleaning began; delete horizons are compared with it."""
    bytes_after: int = 0
    rewritten: list[RecordBatchHeader] = field(default_factory=list)
    """The batches that are there no longer as they were, but are there."""


OnCleaned = Callable[[Log, CleanedSegments], None]
"""Told of a group of segments before what is left of it takes its place."""


class Cleaner:
    """Cleans one log at a time. Raises KafkaStorageError when the disk fails, RecordError for a damaged batch, and
    whatever ``check_done`` raises."""

    def __init__(
        self,
        *,
        offset_map_capacity: int,
        io_buffer_size: int,
        wall_clock: WallClock,
        on_cleaned: OnCleaned,
    ) -> None:
        self._offset_map_capacity = offset_map_capacity
        self._io_buffer_size = io_buffer_size
        self._wall_clock = wall_clock
        self._on_cleaned = on_cleaned

    async def clean(self, cleanable: LogToClean, check_done: Callable[[], None]) -> int:
        """Clean the log; return up to where it is clean now."""
        log = cleanable.log
        with StorageErrors("cleaning", log.topic_partition, log.log_dir):
            offset_map = OffsetMap(self._offset_map_capacity)
            await self._build_offset_map(cleanable, offset_map, check_done)
            end = offset_map.latest_offset + 1
            aborted = log.collect_aborted_transactions(log.segments[0].base_offset, end)
            record_filter = RecordFilter(
                offset_map,
                transactions=CleanedTransactions(aborted),
                producers=dict(log.producer_state_manager.active_producers),
                now_ms=self._wall_clock(),
                delete_retention_ms=log.config.delete_retention_ms,
            )
            segments = [segment for segment in log.segments if segment.base_offset < end]
            for group in group_segments_by_size(segments, log.config.segment_bytes):
                await self._clean_segments(cleanable, group, record_filter, check_done)
        return max(end, cleanable.first_dirty_offset)

    async def _build_offset_map(
        self, cleanable: LogToClean, offset_map: OffsetMap, check_done: Callable[[], None]
    ) -> None:
        start, end = cleanable.first_dirty_offset, cleanable.first_uncleanable_offset
        offset_map.update_latest_offset(start - 1)
        aborted = AbortedRanges(cleanable.log.collect_aborted_transactions(start, end))
        for segment in [s for s in cleanable.log.segments if s.base_offset < end]:
            offset = max(start, segment.base_offset)
            while chunk := self._read(segment, offset):
                for header in iter_batches(chunk):
                    if aborted.contain(header):
                        offset_map.update_latest_offset(header.last_offset)
                    elif not _take_in(offset_map, chunk, header, start):
                        return
                    offset = header.last_offset + 1
                await asyncio.sleep(0)
                check_done()
        offset_map.update_latest_offset(end - 1)  # there may be no records up to there

    async def _clean_segments(
        self,
        cleanable: LogToClean,
        group: Sequence[LogSegment],
        record_filter: RecordFilter,
        check_done: Callable[[], None],
    ) -> None:
        log = cleanable.log
        cleaned = log.create_cleaned_segment(group[0].base_offset)
        done = CleanedSegments(
            cleanable.high_watermark,
            cleaned.base_offset,
            _offset_behind(log, group[-1]) - 1,
            sum(segment.size for segment in group),
            record_filter.now_ms,
        )
        for segment in group:
            offset = segment.base_offset
            while chunk := self._read(segment, offset):
                headers = list(iter_batches(chunk))
                kept = [record_filter.retained(chunk, header) for header in headers]
                if data := b"".join(kept):
                    left = list(iter_batches(data))
                    cleaned.append(data, left)
                    former = {header.base_offset: header.crc for header in headers}
                    done.rewritten += [
                        item for item in left if item.crc != former[item.base_offset]
                    ]
                offset = headers[-1].last_offset + 1
                await asyncio.sleep(0)
                check_done()
            for transaction in segment.transactions.entries:
                if record_filter.transactions.had_batches(transaction):
                    cleaned.transactions.append(transaction)
        cleaned.flush()
        done.bytes_after = cleaned.size
        log.allow_gaps()
        self._on_cleaned(log, done)
        log.replace_segments(cleaned, group)

    def _read(self, segment: LogSegment, offset: int) -> bytes:
        """Return some whole batches from the offset on; nothing at the end."""
        return segment.read(offset, self._io_buffer_size, segment.next_offset, min_one_message=True)


def group_segments_by_size(
    segments: Sequence[LogSegment], max_bytes: int
) -> list[list[LogSegment]]:
    """Return the segments in groups that follow one another and fit one segment each, or are one."""
    groups: list[list[LogSegment]] = []
    for segment in segments:
        group = groups[-1] if groups else []
        if (
            group
            and sum(item.size for item in group) + segment.size <= max_bytes
            and segment.next_offset - group[0].base_offset <= MAX_RELATIVE_OFFSET
        ):
            group.append(segment)
        else:
            groups.append([segment])
    return groups


def _take_in(offset_map: OffsetMap, data: bytes, header: RecordBatchHeader, start: int) -> bool:
    """Put the keys of a batch into the map; return whether there was room for all."""
    if not header.is_control:
        verify_crc(data, header)
        batch = data[header.position : header.position + header.size_in_bytes]
        for record in read_records(batch, header):
            if (
                record.key is not None
                and record.offset >= start
                and not offset_map.put(record.key, record.offset)
            ):
                return False
    offset_map.update_latest_offset(header.last_offset)
    return True


def _offset_behind(log: Log, segment: LogSegment) -> int:
    """Where the next segment starts."""
    return log.segments[log.segments.index(segment) + 1].base_offset
