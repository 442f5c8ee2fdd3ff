"""What stands beside the batches of a stored log: indexes, the epochs of leaders, remembered producers, checkpoints.

* ``<base offset>.index`` and ``.timeindex``: entries of 8 bytes (offset, position) and 12 bytes (time, offset), both
  offsets relative to the base offset. A program that maps the file into memory leaves zeros behind the last entry.
  Those of the last segment are left out: they are complete once it is rolled.
* ``leader-epoch-checkpoint``: version, count, then a line for each epoch: the epoch and where it starts.
* ``<offset>.snapshot``: of each producer that wrote below the offset, its last batch. It is -1 where the last that the
  log has of the producer's epoch is the marker of a transaction.
* ``<base offset>.txnindex`` is not read: it has an entry for each aborted transaction, and a log may lack it.
* Checkpoints of a log directory: version, count, then a line for each log: topic, partition, offset.

Also the keys of records: compaction leaves one record of each. Control batches have no such keys. Written after
Kafka's formats, and apart from the system under test. A malformed file raises ValueError; an index that is cut short
ends there.

Limit: of compressed records only gzip is read.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from struct import Struct
from typing import Final, NamedTuple, Protocol

EPOCHS: Final = "leader-epoch-checkpoint"
SNAPSHOT: Final = ".snapshot"

_INDEX: Final = re.compile(r"[0-9]{20}\.(time)?index")
_SEGMENT: Final = re.compile(r"[0-9]{20}\.log")
_SNAPSHOT: Final = re.compile(r"[0-9]{20}\.snapshot")
_OFFSET_ENTRY: Final = Struct(">ii")
_TIME_ENTRY: Final = Struct(">qi")
_PRODUCER: Final = Struct(">qhiqiqiq")
"""Producer id, epoch, last sequence number, last offset, offset delta, time, coordinator epoch, open transaction."""
_SNAPSHOT_HEAD_BYTES: Final = 10
"""Version, CRC, and the number of producers."""
_BATCH_HEADER: Final = Struct(">qi")
_PREFIX_BYTES: Final = 12
_ATTRIBUTES: Final = Struct(">h")
_ATTRIBUTES_AT: Final = 21
_COUNT: Final = Struct(">i")
_COUNT_AT: Final = 57
_RECORDS_AT: Final = 61
_CODEC, _CONTROL, _GZIP = 7, 32, 1


class Files(Protocol):
    """Files by path; raises OSError."""

    def list(self, path: str) -> Sequence[str]: ...
    def size(self, path: str) -> int: ...
    def read(self, path: str, offset: int, size: int) -> bytes: ...


class IndexEntry(NamedTuple):
    """Of an offset index it has a position, of a time index a time."""

    segment_offset: int
    """The offset in the name of the file."""
    offset: int
    position: int | None
    timestamp: int | None


class StoredEpoch(NamedTuple):
    epoch: int
    start_offset: int


class StoredProducer(NamedTuple):
    """The last batch of a producer below the offset in a snapshot's name; -1 if its epoch has none."""

    snapshot_offset: int
    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_offset: int


@dataclass(frozen=True, slots=True)
class Companions:
    """Of one log."""

    entries: tuple[IndexEntry, ...] = ()
    epochs: tuple[StoredEpoch, ...] = ()
    snapshots: tuple[int, ...] = ()
    """The offsets in the names of the snapshots, whether or not they hold producers."""
    producers: tuple[StoredProducer, ...] = ()


def read_companions(files: Files, directory: str) -> Companions:
    """Read the files beside the batches of a log; raises OSError and ValueError."""
    names = sorted(files.list(directory))
    entries: list[IndexEntry] = []
    producers: list[StoredProducer] = []
    snapshots = [name for name in names if _SNAPSHOT.fullmatch(name)]
    last = max((int(name[:20]) for name in names if _SEGMENT.fullmatch(name)), default=0)
    for name in names:
        if _INDEX.fullmatch(name) and int(name[:20]) < last:
            entries += _index(name, _content(files, f"{directory}/{name}"))
    for name in snapshots:
        producers += _snapshot(name, _content(files, f"{directory}/{name}"))
    return Companions(
        tuple(entries),
        _epochs(files, directory) if EPOCHS in names else (),
        tuple(int(name[:20]) for name in snapshots),
        tuple(producers),
    )


def offsets_of(files: Files, log_dir: str, name: str) -> Mapping[tuple[str, int], int]:
    """Return what a checkpoint of a log directory holds; nothing if the file does not exist."""
    if name not in files.list(log_dir):
        return {}
    lines = _content(files, f"{log_dir}/{name}").decode().splitlines()
    entries = (line.split(" ") for line in lines[2:])
    return {(topic, int(partition)): int(offset) for topic, partition, offset in entries}


def first_superseded(
    files: Files, batches: Sequence[tuple[str, int]], start: int, end: int
) -> int | None:
    """Return the smallest offset in a range whose key a later record of the range has, too.

    ``batches``: paths and positions, by offset. None also if some records cannot be read.
    """
    last: dict[bytes, int] = {}
    first: int | None = None
    for path, position in batches:
        keys = _keys(files, path, position)
        if keys is None:
            return None
        for offset, key in keys:
            if not start <= offset < end:
                continue
            before = last.get(key)
            if before is not None:
                first = before if first is None else min(first, before)
            last[key] = offset
    return first


def _index(name: str, data: bytes) -> list[IndexEntry]:
    base = int(name[:20])
    entries: list[IndexEntry] = []
    if name.endswith(".timeindex"):
        for timestamp, relative in _TIME_ENTRY.iter_unpack(_cut(data, _TIME_ENTRY.size)):
            if entries and timestamp == 0:
                break
            entries.append(IndexEntry(base, base + relative, None, timestamp))
        return [] if entries and entries[0].timestamp == 0 else entries
    for relative, position in _OFFSET_ENTRY.iter_unpack(_cut(data, _OFFSET_ENTRY.size)):
        if position == 0:
            break  # the batch at the beginning of a file needs no entry
        entries.append(IndexEntry(base, base + relative, position, None))
    return entries


def _cut(data: bytes, size: int) -> bytes:
    return data[: len(data) - len(data) % size]


def _epochs(files: Files, directory: str) -> tuple[StoredEpoch, ...]:
    lines = _content(files, f"{directory}/{EPOCHS}").decode().splitlines()
    pairs = (line.split(" ") for line in lines[2:])
    return tuple(StoredEpoch(int(epoch), int(start)) for epoch, start in pairs)


def _snapshot(name: str, data: bytes) -> list[StoredProducer]:
    packed = data[_SNAPSHOT_HEAD_BYTES:]
    if len(packed) % _PRODUCER.size:
        raise ValueError(f"{name}: {len(packed)} bytes hold no whole number of producers")
    return [
        StoredProducer(int(name[:20]), producer_id, epoch, sequence, offset)
        for producer_id, epoch, sequence, offset, *_ in _PRODUCER.iter_unpack(packed)
    ]


def _keys(files: Files, path: str, position: int) -> list[tuple[int, bytes]] | None:
    """Return offset and key of the records of a batch that have one; None if they cannot be read."""
    try:
        return _read_keys(files, path, position)
    except (IndexError, zlib.error):
        return None


def _read_keys(files: Files, path: str, position: int) -> list[tuple[int, bytes]] | None:
    base, length = _BATCH_HEADER.unpack(files.read(path, position, _PREFIX_BYTES))
    data = files.read(path, position, _PREFIX_BYTES + length)
    (attributes,) = _ATTRIBUTES.unpack_from(data, _ATTRIBUTES_AT)
    (count,) = _COUNT.unpack_from(data, _COUNT_AT)
    records = data[_RECORDS_AT:]
    if attributes & _CONTROL:
        return []
    if attributes & _CODEC == _GZIP:
        records = zlib.decompress(records, 16 + zlib.MAX_WBITS)
    elif attributes & _CODEC:
        return None
    keys: list[tuple[int, bytes]] = []
    index = 0
    for _ in range(count):
        size, index = varint(records, index)
        behind = index + size
        _, index = varint(records, index + 1)  # behind one byte of attributes: the time
        delta, index = varint(records, index)
        key_size, index = varint(records, index)
        if key_size >= 0:
            keys.append((base + delta, records[index : index + key_size]))
        index = behind
    return keys


def varint(data: bytes, index: int) -> tuple[int, int]:
    """Return a signed number of variable length, and where it ends."""
    value = shift = 0
    while True:
        byte = data[index]
        index += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), index
        shift += 7


def _content(files: Files, path: str) -> bytes:
    return files.read(path, 0, files.size(path))
