"""What a KRaft quorum has committed, out of the metadata logs of its voters.

Each voter has a log ``__cluster_metadata-0`` of record batches, byte for byte those of the leader that it followed. A
batch is committed when a majority of the voters has it: the same base offset, epoch and CRC. A leader that was cut off
has batches that no majority has, until it follows another one and cuts them off. Within an epoch all voters must agree:
where they do not, the history has a problem.

A snapshot may have replaced the beginning of a voter's log. Its name has the offset at which it ends and the epoch of
the last record in it. A log that has this record in this epoch has, by the rules of Raft, the same records before it;
so its batches count for the voter with the snapshot, too.

Limits: a batch at the very end may be in a majority's logs before its leader knew that it was committed. What is in a
snapshot is not read: where snapshots have replaced the beginnings of all logs, the history has a problem.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from struct import Struct
from typing import Final, NamedTuple

from crc32c import crc32c

from nemesis.history.quorum_files import SEGMENTS, SNAPSHOTS
from nemesis.history.quorum_records import Reader

_SNAPSHOT_NAME: Final = re.compile(r"(\d{20})-(\d{10})\.checkpoint")
_HEADER: Final = Struct(">qiibIhiqqqhii")
"""Base offset, length, leader epoch, magic, CRC, attributes, last offset delta, two timestamps, producer, count."""
_PREFIX_BYTES: Final = 12
_CRC_COVERS_FROM: Final = 21
_MAGIC: Final = 2
_COMPRESSION: Final = 0x07
_CONTROL: Final = 0x20


class QuorumRecord(NamedTuple):
    """A record of the log: a key only if it is one of the quorum itself."""

    offset: int
    key: bytes | None
    value: bytes | None


@dataclass(frozen=True, slots=True)
class QuorumBatch:
    """Offsets ``base_offset`` to ``last_offset``, both included, appended by the leader of an epoch."""

    base_offset: int
    last_offset: int
    epoch: int
    crc: int
    is_control: bool
    wall_ms: int
    data: bytes
    """The records, without the header."""
    count: int

    @property
    def identity(self) -> tuple[int, int, int]:
        """What two voters' copies of the batch have in common."""
        return self.base_offset, self.epoch, self.crc

    def records(self) -> Iterator[QuorumRecord]:
        """Yield the records; raises ValueError for bytes that are not records."""
        reader = Reader(self.data)
        for _ in range(self.count):
            body = Reader(reader.take(reader.zigzag()))
            body.take(1)
            body.zigzag()
            offset = self.base_offset + body.zigzag()
            yield QuorumRecord(offset, _bytes(body), _bytes(body))


class SnapshotId(NamedTuple):
    """What the name of a snapshot says: all records before ``end_offset`` are in it, the last one of this epoch."""

    end_offset: int
    epoch: int


@dataclass(frozen=True, slots=True)
class QuorumLog:
    """Batches in the order of their offsets, the voter's snapshots, and what is wrong with the files."""

    batches: tuple[QuorumBatch, ...]
    problems: tuple[str, ...] = ()
    snapshots: tuple[SnapshotId, ...] = ()

    @property
    def start(self) -> int:
        """The first offset that the log has, or would have."""
        if self.batches:
            return self.batches[0].base_offset
        return max((snapshot.end_offset for snapshot in self.snapshots), default=0)


def read_quorum_log(directory: Path) -> QuorumLog:
    """Return a voter's log, up to the first batch that is cut short or damaged; raises OSError."""
    snapshots = tuple(snapshots_in(directory))
    batches: list[QuorumBatch] = []
    files = sorted(directory.glob(SEGMENTS))
    for file in files:
        data, position = file.read_bytes(), 0
        while position < len(data):
            batch, size = _batch(data, position)
            if batch is None:
                # A writer that was killed leaves a torn end in the last file; anywhere else something is lost.
                is_end = file == files[-1] and size > len(data)
                damage = f"{file} is damaged at byte {position}"
                return QuorumLog(tuple(batches), () if is_end else (damage,), snapshots)
            batches.append(batch)
            position = size
    return QuorumLog(tuple(batches), (), snapshots)


def snapshots_in(directory: Path) -> Iterator[SnapshotId]:
    """Yield the snapshots of a voter in the order of their ends; one that is empty says nothing and is left out."""
    for file in sorted(directory.glob(SNAPSHOTS)):
        name = _SNAPSHOT_NAME.fullmatch(file.name)
        if name is not None and int(name[1]) > 0:
            yield SnapshotId(int(name[1]), int(name[2]))


def committed(members: Sequence[QuorumLog], voters: int) -> QuorumLog:
    """Return what a majority of this many voters has, in its log or in a snapshot."""
    majority = voters // 2 + 1
    problems = [problem for member in members for problem in member.problems]
    there = sum(bool(member.batches or member.snapshots) for member in members)
    if there < majority:
        problems.append(
            f"the metadata logs of {there} voters have records: expected a majority of {voters}"
        )
    counts = Counter(batch.identity for member in members for batch in member.batches)
    counts.update(identity for member in members for identity in _in_snapshots(member, members))
    batches = {
        batch.base_offset: batch
        for member in members
        for batch in member.batches
        if counts[batch.identity] >= majority
    }
    ordered = tuple(batches[offset] for offset in sorted(batches))
    problems += [
        f"the metadata logs of a majority lack the offsets {first} to {last}"
        for first, last in _gaps(ordered)
    ]
    problems += [
        f"voters have different batches at offset {offset} of epoch {epoch} of the metadata log"
        for offset, epoch in _disagreements(members)
    ]
    return QuorumLog(ordered, tuple(problems))


def _in_snapshots(
    member: QuorumLog, members: Sequence[QuorumLog]
) -> frozenset[tuple[int, int, int]]:
    """Return the batches before the beginning of this voter's log that its snapshots have, by logs that have them."""
    return frozenset(
        batch.identity
        for snapshot in member.snapshots
        if snapshot.end_offset >= member.start
        for other in members
        if _continues(other, snapshot)
        for batch in other.batches
        if batch.last_offset < member.start
    )


def _continues(log: QuorumLog, snapshot: SnapshotId) -> bool:
    """Return whether the log has the last record of the snapshot, and so all records of it that it has place for."""
    last = snapshot.end_offset - 1
    return any(
        batch.base_offset <= last <= batch.last_offset and batch.epoch == snapshot.epoch
        for batch in log.batches
    )


def _disagreements(members: Sequence[QuorumLog]) -> list[tuple[int, int]]:
    """Return the offsets and epochs at which voters differ, though an epoch has one leader and offsets one writer."""
    copies: dict[tuple[int, int], set[tuple[int, int]]] = {}
    for member in members:
        for batch in member.batches:
            written = (batch.base_offset, batch.epoch)
            copies.setdefault(written, set()).add((batch.last_offset, batch.crc))
    return sorted(written for written, different in copies.items() if len(different) > 1)


def _gaps(batches: Sequence[QuorumBatch]) -> Iterator[tuple[int, int]]:
    expected = 0
    for batch in batches:
        if batch.base_offset != expected:
            yield expected, batch.base_offset - 1
        expected = batch.last_offset + 1


def _batch(data: bytes, position: int) -> tuple[QuorumBatch | None, int]:
    """Return the batch, None if it is not a whole one, and where it ends, or would end."""
    if position + _HEADER.size > len(data):
        return None, position + _HEADER.size
    (base, length, epoch, magic, crc, attributes, delta, _, wall_ms, _, _, _, count) = (
        _HEADER.unpack_from(data, position)
    )
    end = position + _PREFIX_BYTES + length
    if end > len(data):
        return None, end
    is_whole = magic == _MAGIC and length >= _HEADER.size - _PREFIX_BYTES and delta >= 0
    if not is_whole or crc32c(data[position + _CRC_COVERS_FROM : end]) != crc:
        return None, position
    if attributes & _COMPRESSION:
        raise ValueError(f"a batch of the metadata log is compressed at offset {base}")
    records = data[position + _HEADER.size : end]
    is_control = bool(attributes & _CONTROL)
    return QuorumBatch(base, base + delta, epoch, crc, is_control, wall_ms, records, count), end


def _bytes(reader: Reader) -> bytes | None:
    size = reader.zigzag()
    return None if size < 0 else reader.take(size)
