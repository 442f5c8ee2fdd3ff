"""What the files of a stopped broker hold: the log of each replica, batch by batch, in Kafka's format on disk.

Written after the format's description, and apart from the system under test: it must not share its mistakes. In each
log directory there are ``<topic>-<partition>/<base offset, 20 digits>.log`` files of record batches (magic 2),
``partition.metadata`` with the topic's id, and beside them the checkpoints of high watermarks, of log start offsets and
of what the cleaner has been through.

A log is read up to the first batch that is cut short or whose CRC-32C does not match its bytes: that is where the
next start would cut it. Of records only those of control batches are looked at, which are markers
(``stored_markers``). Two batches are the same if base offset, extent, leader epoch and CRC are. What stands beside the
batches, the indexes among them, is read by ``stored_companions``.

Limits: one replica's batches are in memory at a time; moves between directories (``-future``) and deleted logs
(``-delete``, ``.deleted``) are left out.
"""

from __future__ import annotations

import re
from base64 import urlsafe_b64decode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from struct import Struct
from typing import Final, NamedTuple
from uuid import UUID

from crc32c import crc32c

from nemesis.history.quorum_files import METADATA_LOG
from nemesis.history.stored_companions import (
    Companions,
    Files,
    first_superseded,
    offsets_of,
    read_companions,
)
from nemesis.history.stored_markers import StoredMarker, marker_of

HIGH_WATERMARKS: Final = "replication-offset-checkpoint"
LOG_STARTS: Final = "log-start-offset-checkpoint"
CLEANED: Final = "cleaner-offset-checkpoint"
RECOVERY_POINTS: Final = "recovery-point-offset-checkpoint"
METADATA: Final = "partition.metadata"
_CHECKPOINTS: Final = (HIGH_WATERMARKS, LOG_STARTS, CLEANED, RECOVERY_POINTS)

_LOG: Final = re.compile(r"(?P<topic>[a-zA-Z0-9._-]+)-(?P<partition>[0-9]+)")
_SEGMENT: Final = re.compile(r"[0-9]{20}\.log")
_HEADER: Final = Struct(">qiibIhiqqqhi")
"""Base offset, length, leader epoch, magic, CRC, attributes, last offset delta, first and largest timestamp, producer
id, producer epoch, first sequence number: what of 61 bytes is looked at."""
_HEADER_BYTES: Final = 61
_PREFIX_BYTES: Final = 12
_CRC_COVERS_FROM: Final = 21
_MAGIC: Final = 2
_TRANSACTIONAL: Final = 16
_CONTROL: Final = 32
_HAS_DELETE_HORIZON: Final = 64
"""The first timestamp is then the delete horizon (KIP-534)."""
_FOREIGN_FILES: Final = frozenset({"lost+found", METADATA_LOG})
"""Not logs of replicas: a file system's own directory, and the metadata log of a KRaft quorum."""


class StoredBatch(NamedTuple):
    """Offsets ``base_offset`` to ``last_offset``, both included."""

    base_offset: int
    last_offset: int
    leader_epoch: int
    crc: int
    segment_offset: int
    """The offset in the name of its file."""
    position: int
    """Where it begins in its file, in bytes."""
    max_timestamp: int
    """The largest of a record, in ms; −1 when no record has one."""
    producer_id: int
    """−1 also of control batches, which no producer numbers."""
    producer_epoch: int
    base_sequence: int
    marked_producer: int
    """Of a control batch, the producer whose transaction it ends; −1 of any other."""
    marker: StoredMarker | None
    """Of a control batch that holds one."""
    is_transactional: bool
    delete_horizon_ms: int | None = None
    """From this time on compaction may remove its tombstones, in ms since 1970; None: no compaction has set it."""


class StoredSegment(NamedTuple):
    base_offset: int
    """The offset in its name."""
    size_bytes: int


def marked_batches(
    batches: Iterable[StoredBatch],
) -> Iterator[tuple[StoredBatch, StoredMarker, int]]:
    """Yield the batches of a log that hold markers, each with its marker and the first offset of the transaction.

    The first offset is −1 if the log holds no record of the transaction.
    """
    opened: dict[int, int] = {}
    for batch in batches:
        if batch.marker is not None:
            yield batch, batch.marker, opened.pop(batch.marked_producer, -1)
        elif batch.is_transactional and batch.producer_id >= 0:
            opened.setdefault(batch.producer_id, batch.base_offset)


@dataclass(frozen=True, slots=True)
class StoredLog:
    """One replica's log."""

    topic: str
    partition: int
    topic_id: UUID | None
    start_offset: int
    end_offset: int
    high_watermark: int
    """As it was checkpointed last; 0 where it never was."""
    cleaned_below: int
    """Below this offset compaction may have removed records."""
    recovery_point: int
    """Below this offset everything was synced, as it was checkpointed last; 0 where it never was."""
    first_superseded: int | None
    """The first record below ``cleaned_below`` that a later one of its key below it supersedes."""
    damage: str | None
    """Why nothing was read from ``end_offset`` on; None when the files end there."""
    batches: tuple[StoredBatch, ...]
    segments: tuple[StoredSegment, ...]
    companions: Companions


def read_logs(files: Files, log_dirs: Sequence[str]) -> Iterator[StoredLog]:
    """Yield each log of these directories, in order; raises OSError, or ValueError for a malformed checkpoint."""
    for log_dir in log_dirs:
        checkpoints = {name: offsets_of(files, log_dir, name) for name in _CHECKPOINTS}
        for name in files.list(log_dir):
            names = _LOG.fullmatch(name)
            if names is not None and name not in _FOREIGN_FILES:
                key = (names["topic"], int(names["partition"]))
                known = {file: offsets.get(key, 0) for file, offsets in checkpoints.items()}
                yield _log(files, f"{log_dir}/{name}", key, known)


def _log(
    files: Files, directory: str, key: tuple[str, int], checkpointed: Mapping[str, int]
) -> StoredLog:
    segments = [s for s in files.list(directory) if _SEGMENT.fullmatch(s)]
    batches, damage = _batches(files, directory, segments)
    first = batches[0].base_offset if batches else 0
    base = int(segments[0][:20]) if segments else 0
    start = max(checkpointed[LOG_STARTS], min(first, base) if batches else base)
    cleaned_below = checkpointed[CLEANED]
    return StoredLog(
        topic=key[0],
        partition=key[1],
        topic_id=_topic_id(files, directory),
        start_offset=start,
        end_offset=batches[-1].last_offset + 1 if batches else base,
        high_watermark=checkpointed[HIGH_WATERMARKS],
        cleaned_below=cleaned_below,
        recovery_point=checkpointed[RECOVERY_POINTS],
        first_superseded=_first_superseded(files, directory, batches, start, cleaned_below),
        damage=damage,
        batches=tuple(batches),
        segments=tuple(
            StoredSegment(int(s[:20]), files.size(f"{directory}/{s}")) for s in segments
        ),
        companions=read_companions(files, directory),
    )


def _first_superseded(
    files: Files, directory: str, batches: Sequence[StoredBatch], start: int, end: int
) -> int | None:
    """Look into the records of a compacted log, as far as it is compacted."""
    ranges = [
        (f"{directory}/{batch.segment_offset:020d}.log", batch.position)
        for batch in batches
        if batch.base_offset < end
    ]
    return first_superseded(files, ranges, start, end) if ranges else None


def _batches(
    files: Files, directory: str, segments: Sequence[str]
) -> tuple[list[StoredBatch], str | None]:
    batches: list[StoredBatch] = []
    for segment in segments:
        path = f"{directory}/{segment}"
        data = files.read(path, 0, files.size(path))
        position = 0
        while position < len(data):
            batch, position_after = _batch(data, position, int(segment[:20]))
            if batch is None:
                return batches, f"{path} is damaged at byte {position}"
            batches.append(batch)
            position = position_after
    return batches, None


def _batch(data: bytes, position: int, segment: int) -> tuple[StoredBatch | None, int]:
    if position + _HEADER_BYTES > len(data):
        return None, position
    (
        base,
        length,
        epoch,
        magic,
        crc,
        attributes,
        delta,
        first_timestamp,
        latest,
        producer,
        producer_epoch,
        sequence,
    ) = _HEADER.unpack_from(data, position)
    end = position + _PREFIX_BYTES + length
    is_whole = magic == _MAGIC and length >= _HEADER_BYTES - _PREFIX_BYTES and end <= len(data)
    if not is_whole or delta < 0 or crc32c(data[position + _CRC_COVERS_FROM : end]) != crc:
        return None, position
    marked, marker = -1, None
    if attributes & _CONTROL:
        marked, producer, marker = producer, -1, marker_of(data[position:end])
    batch = StoredBatch(
        base,
        base + delta,
        epoch,
        crc,
        segment,
        position,
        latest,
        producer,
        producer_epoch,
        sequence,
        marked,
        marker,
        bool(attributes & _TRANSACTIONAL),
        first_timestamp if attributes & _HAS_DELETE_HORIZON else None,
    )
    return batch, end


def _topic_id(files: Files, directory: str) -> UUID | None:
    if METADATA not in files.list(directory):
        return None
    path = f"{directory}/{METADATA}"
    for line in files.read(path, 0, files.size(path)).decode().splitlines():
        name, _, value = line.partition(": ")
        if name == "topic_id":
            return UUID(bytes=urlsafe_b64decode(value + "=="))
    return None
