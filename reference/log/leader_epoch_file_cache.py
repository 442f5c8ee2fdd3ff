"""Which leader epoch starts at which offset: the lineage of a log (KIP-101, KIP-279).

An entry (epoch, start offset) says that the records from there up to the next entry's start were appended by the
leader of that epoch. Epochs and start offsets both grow strictly, so an assignment removes the entries that it
contradicts. A new leader assigns its epoch before it has data (KAFKA-7415): otherwise it could not tell a
follower where the epoch before its own ended, and the follower would truncate to its high watermark.

Kept in memory and, on every change, written to leader-epoch-checkpoint. Memory changes only once the file has.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from typing import NamedTuple

from nemesis.reference.log.checkpoint import encode_checkpoint, read_checkpoint
from nemesis.reference.log.errors import KafkaStorageError
from nemesis.reference.model import UNDEFINED_EPOCH, OffsetAndEpoch
from nemesis.reference.ports import AtomicFiles, Disk


class EpochEntry(NamedTuple):
    epoch: int
    start_offset: int


class LeaderEpochFileCache:
    """The epochs of one log. Methods that change it raise OSError when the file cannot be written."""

    def __init__(self, disk: Disk, path: str) -> None:
        """Read the file; raises OSError, or KafkaStorageError when it is malformed."""
        self._atomic = disk.atomic
        self.path = path
        try:
            self._entries = [
                EpochEntry(int(epoch), int(start))
                for epoch, start in read_checkpoint(disk.files, path, fields=2)
            ]
        except ValueError as error:
            raise KafkaStorageError(f"malformed checkpoint file {path}: {error}") from error
        if self._entries != _lineage((), self._entries):
            raise KafkaStorageError(f"epochs or offsets do not grow in {path}")
        self.latest_epoch = self._latest_epoch()
        """None while no epoch was ever assigned. An attribute, as it is asked for with every fetch."""

    @property
    def entries(self) -> tuple[EpochEntry, ...]:
        return tuple(self._entries)

    @property
    def latest(self) -> EpochEntry | None:
        return self._entries[-1] if self._entries else None

    def assign(self, epoch: int, start_offset: int) -> bool:
        """Let the epoch start at the offset unless it is the latest and started earlier; return whether it changed.

        Epoch 0 counts like any other (KAFKA-10432); a negative epoch is not one and is ignored.
        """
        entries = self.entries_with(epoch, start_offset)
        if entries is None:
            return False
        self._write(entries)
        return True

    def end_offset_for(self, epoch: int, log_end_offset: int) -> OffsetAndEpoch | None:
        """Return the largest epoch known that is not larger than the one asked for, and the offset where it ends.

        The latest epoch ends at the log end offset. An epoch before the first one known ends where that one starts and
        is returned as asked. None: the log knows no such epoch nor a later one, so it cannot say.
        """
        if epoch == UNDEFINED_EPOCH or not self._entries:
            return None
        if epoch == self._entries[-1].epoch:
            return OffsetAndEpoch(offset=log_end_offset, leader_epoch=epoch)
        higher = bisect_right(self._entries, epoch, key=_epoch)
        if higher == len(self._entries):
            return None
        end = self._entries[higher].start_offset
        floor = self._entries[higher - 1].epoch if higher > 0 else epoch
        return OffsetAndEpoch(offset=end, leader_epoch=floor)

    def epoch_for_offset(self, offset: int) -> int | None:
        """Return the epoch of the record at the offset; None before the first entry."""
        index = bisect_right(self._entries, offset, key=_start_offset)
        return self._entries[index - 1].epoch if index > 0 else None

    def truncate_from_end(self, end_offset: int) -> None:
        """Forget the epochs that start at or after the offset: those records are gone."""
        kept = self._entries[: bisect_left(self._entries, end_offset, key=_start_offset)]
        self._write(kept)

    def truncate_from_start(self, start_offset: int) -> None:
        """Forget what lies before the new log start offset; the epoch in force there now starts there."""
        index = bisect_right(self._entries, start_offset, key=_start_offset)
        if index > 0:
            first = EpochEntry(self._entries[index - 1].epoch, start_offset)
            self._write([first, *self._entries[index:]])

    def rebuild(self, from_offset: int, assignments: Iterable[EpochEntry]) -> None:
        """Replace what is known from the offset on by what the batches there say (recovery)."""
        kept = self._entries[: bisect_left(self._entries, from_offset, key=_start_offset)]
        self._write(_lineage(kept, assignments))

    def complete(self, assignments: Iterable[EpochEntry]) -> None:
        """Add the epochs behind the last one that is known (recovery of a log that may have gaps).

        What is known stays: a cleaner may have taken all batches of an epoch, and then nothing else tells of it.
        """
        latest = -1 if self.latest_epoch is None else self.latest_epoch
        self._write(_lineage(self._entries, (e for e in assignments if e.epoch > latest)))

    def entries_with(self, epoch: int, start_offset: int) -> list[EpochEntry] | None:
        """Return what ``assign`` would write; None when that is no change."""
        latest = self.latest
        if epoch < 0 or start_offset < 0:
            return None
        if latest is not None and latest.epoch == epoch and latest.start_offset <= start_offset:
            return None
        return _lineage(self._entries, [EpochEntry(epoch, start_offset)])

    def _write(self, entries: list[EpochEntry]) -> None:
        if entries != self._entries:
            self._atomic.replace(self.path, encode_checkpoint(entries))
            self.adopt(entries)

    def adopt(self, entries: list[EpochEntry]) -> None:
        """Take over what is in the file now."""
        self._entries = entries
        self.latest_epoch = self._latest_epoch()

    def _latest_epoch(self) -> int | None:
        return self._entries[-1].epoch if self._entries else None


def assign_all(
    atomic: AtomicFiles, starts: Iterable[tuple[LeaderEpochFileCache, int, int]]
) -> None:
    """``assign`` an epoch and its start offset in each of the caches, waiting for the medium only once.

    A cache whose file could not be written is as it was: whoever assigns in it alone gets the error.
    """
    changed = {
        cache.path: (cache, entries)
        for cache, epoch, start_offset in starts
        if (entries := cache.entries_with(epoch, start_offset)) is not None
    }
    failed = atomic.replace_all(
        {path: encode_checkpoint(entries) for path, (_, entries) in changed.items()}
    )
    for path, (cache, entries) in changed.items():
        if path not in failed:
            cache.adopt(entries)


def _epoch(entry: EpochEntry) -> int:
    return entry.epoch


def _start_offset(entry: EpochEntry) -> int:
    return entry.start_offset


def _lineage(entries: Iterable[EpochEntry], more: Iterable[EpochEntry]) -> list[EpochEntry]:
    """Return the entries with further ones put at the end, each removing those that it contradicts."""
    result = list(entries)
    for entry in more:
        if result and result[-1].epoch == entry.epoch and result[-1][1] <= entry.start_offset:
            continue
        while result and (
            result[-1].epoch >= entry.epoch or result[-1].start_offset >= entry.start_offset
        ):
            result.pop()
        result.append(entry)
    return result
