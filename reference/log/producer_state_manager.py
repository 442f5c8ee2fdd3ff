"""What one log remembers of the producers that wrote to it, so that what is sent twice stands in it once (KIP-98).

The memory follows from the log: leader and followers learn it from the batches that they append, and whoever comes to
lead goes on with it. After a start or a truncation it is the newest snapshot not beyond the log's end, and the batches
from there on. A snapshot that cannot be read is deleted, and the one before it taken.

A producer is forgotten ``producer.id.expiration.ms`` after the time of its last batch.

Source: kafka's ProducerStateManager of Kafka 3.9. Where it differs: snapshots are found by looking into the directory,
none is written after a start or a truncation, and one is of use as long as the log's first segment does not begin
behind it, be the log start offset beyond it or not.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from nemesis.reference.log.log_segment import LogSegment
from nemesis.reference.log.producer_append_info import check_sequence
from nemesis.reference.log.producer_snapshot_file import (
    decode_snapshot,
    encode_snapshot,
    snapshot_file_name,
    snapshot_offset,
)
from nemesis.reference.log.producer_state_entry import (
    NO_PRODUCER_ID,
    BatchMetadata,
    ProducerStateEntry,
    appended,
)
from nemesis.reference.log.recent_batches import RecentBatches
from nemesis.reference.ports import Disk, WallClock
from nemesis.reference.protocol.record_batch import RecordBatchHeader

PRODUCER_ID_EXPIRATION_MS: Final = 86_400_000
"""Kafka's default of ``producer.id.expiration.ms``."""
_logger = logging.getLogger(__name__)

Updates = Mapping[int, ProducerStateEntry]
"""What becomes of the producers of an append, by producer id."""


class ProducerStateManager:
    """One log's producers. Methods that touch the disk raise OSError."""

    def __init__(
        self, disk: Disk, directory: str, *, expiration_ms: int, wall_clock: WallClock
    ) -> None:
        self._files = disk.files
        self._directories = disk.directories
        self._atomic = disk.atomic
        self._directory = directory
        self._expiration_ms = expiration_ms
        self._wall_clock = wall_clock
        self._producers: dict[int, ProducerStateEntry] = {}
        self._last_snapshot_offset = 0

    @property
    def active_producers(self) -> Mapping[int, ProducerStateEntry]:
        """Those that are remembered, by id."""
        return self._producers

    def last_offsets(self) -> dict[int, int]:
        """Return the last offset of each producer that is remembered and has one, by its id."""
        entries = self._producers.values()
        return {
            entry.producer_id: entry.batches[-1].last_offset for entry in entries if entry.batches
        }

    @property
    def end_offset(self) -> int:
        """The offset behind the last batch that is remembered of any producer; 0 without any."""
        return max(self.last_offsets().values(), default=-1) + 1

    # Appending

    def find_duplicate(self, headers: Iterable[RecordBatchHeader]) -> BatchMetadata | None:
        """Return the batch that is in the log already, if a client sends one of its last five again."""
        for header in headers:
            entry = self._producers.get(header.producer_id)
            if entry is not None and (duplicate := entry.find_duplicate(header)) is not None:
                return duplicate
        return None

    def validated(self, headers: Sequence[RecordBatchHeader]) -> Updates:
        """Return what a client's batches make of their producers; they have their offsets.

        Raises InvalidProducerEpochError or OutOfOrderSequenceError.
        """
        updates: dict[int, ProducerStateEntry] = {}
        for header in headers:
            if (producer_id := header.producer_id) > NO_PRODUCER_ID:
                before = updates.get(producer_id) or self._producers.get(producer_id)
                check_sequence(before, header)
                updates[producer_id] = appended(before, header)
        return updates

    def replicated(self, headers: Iterable[RecordBatchHeader]) -> Updates:
        """Return what batches make of their producers that are in the leader's log, or in one's own: no checks."""
        updates: dict[int, ProducerStateEntry] = {}
        for header in headers:
            if (producer_id := header.producer_id) > NO_PRODUCER_ID and not header.is_control:
                before = updates.get(producer_id) or self._producers.get(producer_id)
                updates[producer_id] = appended(before, header)
        return updates

    def update(self, updates: Updates) -> None:
        """Remember what ``validated`` or ``replicated`` returned: those batches are in the log now."""
        if updates:
            self._producers.update(updates)

    def remove_expired_producers(self) -> None:
        """Forget those whose last batch is ``producer.id.expiration.ms`` old."""
        now = self._wall_clock()
        expired = [
            producer_id
            for producer_id, entry in self._producers.items()
            if self._is_expired(entry, now)
        ]
        for producer_id in expired:
            del self._producers[producer_id]

    # Snapshots

    def take_snapshot(self, log_end_offset: int) -> None:
        """Write down what is remembered of a log that ends there, unless that was done before."""
        if log_end_offset > self._last_snapshot_offset:
            path = f"{self._directory}/{snapshot_file_name(log_end_offset)}"
            self._atomic.replace(path, encode_snapshot(self._producers.values()))
            self._last_snapshot_offset = log_end_offset

    def delete_snapshots(self, segments: Iterable[LogSegment]) -> None:
        """Delete the snapshots that segments began with which are going to be deleted."""
        for segment in segments:
            self._delete_snapshot(segment.base_offset)

    def truncate_fully(self) -> None:
        """Forget everything: the log is emptied."""
        for offset in self._snapshot_offsets():
            self._delete_snapshot(offset)
        self._producers = {}
        self._last_snapshot_offset = 0

    def rebuild(
        self,
        segments: Sequence[LogSegment],
        log_end_offset: int,
        walked: RecentBatches | None = None,
    ) -> None:
        """Remember what a log has that was opened or truncated: its newest snapshot, and the batches behind it.

        ``walked`` are those of the last segments, which somebody has looked at already. Snapshots beyond the log's end,
        or from before its first segment, are deleted.
        """
        missing_from = self._reload(segments[0].base_offset, log_end_offset)
        walked = walked or RecentBatches(log_end_offset)
        recent = RecentBatches(missing_from)
        for segment in segments:
            if missing_from < segment.next_offset and segment.base_offset < walked.start_offset:
                recent.add(segment.batches_from(segment.position_of(missing_from)))
        for batches in (recent, walked):
            self.update(self.replicated(batches.behind(missing_from)))

    def _reload(self, first_offset: int, log_end_offset: int) -> int:
        """Go back to the newest snapshot; return its offset, or the log's first one if there is none."""
        self._producers, self._last_snapshot_offset = {}, first_offset
        usable = []
        for offset in self._snapshot_offsets():
            if first_offset <= offset <= log_end_offset:
                usable.append(offset)
            else:
                self._delete_snapshot(offset)
        while usable:
            offset = usable.pop()
            if (entries := self._read_snapshot(offset)) is not None:
                now = self._wall_clock()
                living = (entry for entry in entries if not self._is_expired(entry, now))
                self._producers = {entry.producer_id: entry for entry in living}
                self._last_snapshot_offset = offset
                break
        return self._last_snapshot_offset

    def _snapshot_offsets(self) -> list[int]:
        names = self._directories.list(self._directory)
        offsets = (snapshot_offset(name) for name in names)
        return sorted(offset for offset in offsets if offset is not None)

    def _delete_snapshot(self, offset: int) -> None:
        self._directories.remove(f"{self._directory}/{snapshot_file_name(offset)}")

    def _read_snapshot(self, offset: int) -> list[ProducerStateEntry] | None:
        path = f"{self._directory}/{snapshot_file_name(offset)}"
        data = self._files.read(path, 0, self._files.size(path))
        self._files.close(path)
        try:
            return decode_snapshot(data)
        except ValueError as error:
            _logger.warning("%s is deleted: %s", path, error)
            self._directories.remove(path)
            return None

    def _is_expired(self, entry: ProducerStateEntry, now: int) -> bool:
        return now - entry.last_timestamp >= self._expiration_ms
