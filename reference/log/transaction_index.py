"""The aborted transactions of one segment, in Kafka's ``.txnindex`` format.

Each abort marker of a transaction with data has an entry in the segment that holds the marker, in the sequence of the
markers, big endian:

    version int16 = 0 | producer id int64 | first offset int64 | offset of the marker int64 | last stable offset int64

The last stable offset is that behind the marker: no transaction that ends later begins before it. So a search for the
aborted transactions below an offset ends at the first entry whose last stable offset reaches that offset.

An entry is in the file once its marker was appended; the file is synced with the segment. A segment without aborted
transactions has no file. Recovery builds the index again (``producer_state_manager``).

Source: TransactionIndex and AbortedTxn of Kafka 3.9.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from struct import Struct
from typing import Final

from nemesis.reference.model import AbortedTransaction
from nemesis.reference.ports import Disk
from nemesis.reference.protocol.record_batch import RecordBatchHeader

TRANSACTION_INDEX_SUFFIX: Final = ".txnindex"
_VERSION: Final = 0
_ENTRY: Final = Struct(">hqqqq")


class TransactionIndex:
    """Of one segment. Methods that touch the disk raise OSError."""

    def __init__(self, disk: Disk, path: str) -> None:
        """Nothing is read: see ``load``."""
        self._files = disk.files
        self._directories = disk.directories
        self._path = path
        self._entries: list[AbortedTransaction] = []
        self._written = 0
        """How many entries the file has."""
        self._is_torn = False
        """Whether an append has failed, and may have left a part of an entry in the file."""
        self._is_synced = True
        self.is_outdated = False
        """Whether the file could not be read, or the segment was recovered: the entries have to be added again."""

    @property
    def entries(self) -> Sequence[AbortedTransaction]:
        return self._entries

    def load(self, base_offset: int) -> None:
        """Take the entries from the file, if it exists; drop it if it cannot be that of the segment."""
        if not self._files.exists(self._path):
            return
        data = self._files.read(self._path, 0, self._files.size(self._path))
        self._files.close(self._path)
        entries = decoded(data, base_offset)
        if entries is None:
            self.reset()
        else:
            self._entries = entries
            self._written = len(entries)

    def reset(self) -> None:
        """Drop all entries: the segment is read again from its start."""
        self._drop_from(0)
        if self._files.exists(self._path):
            self._directories.remove(self._path)
        self.is_outdated = True

    def remove(self) -> None:
        """Delete the file, if there is one."""
        if self._entries or self._is_torn:
            self._directories.remove(self._path)

    def complete(self) -> None:
        """Note that all entries of the segment have been added again."""
        self.flush()
        self.is_outdated = False

    def append(self, entry: AbortedTransaction) -> None:
        """Add a transaction whose marker is behind that of the last entry."""
        if self._entries and entry.last_offset <= self._entries[-1].last_offset:
            raise ValueError(f"{entry} does not follow {self._entries[-1]} in {self._path}")
        self._entries.append(entry)
        self._is_synced = False
        self._write()

    def truncate_to(self, offset: int) -> None:
        """Remove the entries whose markers are at the offset or behind it."""
        count = sum(entry.last_offset < offset for entry in self._entries)
        if count < len(self._entries):
            self._drop_from(count)
            self._files.truncate(self._path, count * _ENTRY.size)

    def flush(self) -> None:
        """Sync the file, if it has changed."""
        if not self._is_synced:
            self._write()
            self._files.fsync(self._path)
            self._is_synced = True

    def use_path(self, path: str) -> None:
        """Rename the file, if there is one."""
        if self._entries:
            self._directories.rename(self._path, path)
        self._path = path

    def collect(
        self, fetch_offset: int, upper_bound_offset: int, collected: list[AbortedTransaction]
    ) -> bool:
        """Add the transactions that overlap the range; return whether no later segment can have another."""
        for entry in self._entries:
            if entry.last_offset >= fetch_offset and entry.first_offset < upper_bound_offset:
                collected.append(entry)
            if entry.last_stable_offset >= upper_bound_offset:
                return True
        return False

    def _write(self) -> None:
        """Bring the file up to date."""
        if self._is_torn:
            self._files.truncate(self._path, self._written * _ENTRY.size)
        self._is_torn = True
        missing = self._entries[self._written :]
        self._files.append(self._path, b"".join(map(encoded, missing)))
        self._written = len(self._entries)
        self._is_torn = False

    def _drop_from(self, count: int) -> None:
        del self._entries[count:]
        self._written = min(self._written, count)


class AbortedRanges:
    """Tells the batches of aborted transactions from all others."""

    def __init__(self, transactions: Iterable[AbortedTransaction]) -> None:
        self._by_producer: dict[int, list[AbortedTransaction]] = {}
        for transaction in transactions:
            self._by_producer.setdefault(transaction.producer_id, []).append(transaction)

    def contain(self, header: RecordBatchHeader) -> bool:
        """Whether the batch is data of an aborted transaction."""
        if not header.is_transactional or header.is_control:
            return False
        return any(
            transaction.first_offset <= header.base_offset < transaction.last_offset
            for transaction in self._by_producer.get(header.producer_id, ())
        )


def encoded(entry: AbortedTransaction) -> bytes:
    """Return an entry's bytes."""
    return _ENTRY.pack(_VERSION, *entry)


def decoded(data: bytes, base_offset: int) -> list[AbortedTransaction] | None:
    """Return the entries of a file; None if it cannot be the index of a segment with this base offset."""
    if len(data) % _ENTRY.size:
        return None
    entries: list[AbortedTransaction] = []
    last_offset = base_offset - 1
    for version, *fields in _ENTRY.iter_unpack(data):
        entry = AbortedTransaction(*fields)
        if version < _VERSION or entry.last_offset <= last_offset:
            return None
        last_offset = entry.last_offset
        entries.append(entry)
    return entries
