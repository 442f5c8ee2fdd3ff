"""What is left of a log when the process, the machine or the disk failed in the middle of something."""

from __future__ import annotations

import errno
from itertools import accumulate, pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nemesis.reference.adapters.disk import RealDisk
from nemesis.reference.log.errors import KafkaStorageError
from nemesis.reference.log.file_records import FileRecords
from nemesis.reference.log.log import Log
from nemesis.simulation.fenced_disk import FencedDisk
from tests.reference.log.batches import batch
from tests.reference.log.logs import MANY, open_log, read_all
from tests.reference.log.mortal import Killed, Mortal

WINDOW = 1 << 20
"""What recovery reads at once."""
SIZES = (3, 1, 2, 4)
INTACT = b"".join(batch(n, payload=b"p" * 10 * n) for n in SIZES)
ENDS = [0, *(sum(61 + 10 * n for n in SIZES[: i + 1]) for i in range(4))]
OFFSETS = [0, *(sum(SIZES[: i + 1]) for i in range(4))]


def log_of_four_batches(tmp_path: Path) -> Path:
    log = open_log(tmp_path)
    log.append_as_leader(batch(3, payload=b"p" * 30), 1)
    log.append_as_leader(batch(1, payload=b"p" * 10), 2)
    log.append_as_leader(batch(2, payload=b"p" * 20) + batch(4, payload=b"p" * 40), 4)
    return tmp_path / "t-0" / ("0" * 20 + ".log")


@pytest.mark.parametrize("junk", [b"", b"\0" * 100, b"junk" * 40], ids=["", "zeros", "junk"])
def test_a_tail_torn_at_any_byte_is_cut_back_to_the_last_whole_batch(
    tmp_path: Path, junk: bytes
) -> None:
    file = log_of_four_batches(tmp_path)
    intact = file.read_bytes()
    assert len(intact) == ENDS[-1]
    epochs = {0: (), 3: ((1, 0),), 4: ((1, 0), (2, 3)), 6: ((1, 0), (2, 3), (4, 4))}
    for size in range(len(intact), -1, -7):
        file.write_bytes(intact[:size] + junk)
        log = open_log(tmp_path)
        batches = sum(end <= size for end in ENDS[1:])
        assert log.log_end_offset == OFFSETS[batches]
        assert file.stat().st_size == ENDS[batches]
        assert log.leader_epoch_cache.entries == epochs[min(log.log_end_offset, 6)]
        log.append_as_leader(batch(2), 9)
        assert read_all(open_log(tmp_path))[-1] == (OFFSETS[batches], OFFSETS[batches] + 1)


@given(position=st.integers(0, ENDS[-1] - 1), bit=st.integers(0, 7))
@settings(max_examples=60)
def test_a_damaged_bit_cuts_at_its_batch(position: int, bit: int) -> None:
    with TemporaryDirectory() as directory:
        file = log_of_four_batches(Path(directory))
        data = bytearray(file.read_bytes())
        data[position] ^= 1 << bit
        file.write_bytes(data)
        log = open_log(Path(directory))
        damaged = sum(end <= position for end in ENDS[1:])
        in_leader_epoch = 12 <= position - ENDS[damaged] < 16
        # The CRC does not cover the leader epoch: Kafka's format cannot tell.
        assert log.log_end_offset == (OFFSETS[-1] if in_leader_epoch else OFFSETS[damaged])


@given(
    sizes=st.lists(st.sampled_from((1, 61, 5_000, WINDOW - 61, WINDOW, 3 * WINDOW)), max_size=6),
    cut=st.sampled_from((0, 1, 30, 61, 70)),
)
@settings(max_examples=30)
def test_batches_of_any_size_are_walked_whatever_is_read_at_once(
    sizes: list[int], cut: int
) -> None:
    """A window of recovery may end within a header, within a batch, or between two of them."""
    with TemporaryDirectory() as directory:
        file = Path(directory) / "log"
        data = b"".join(
            batch(base_offset=offset, payload=b"p" * size) for offset, size in enumerate(sizes)
        )
        file.write_bytes(data[: len(data) - cut])
        records, size = FileRecords(RealDisk(), str(file)), file.stat().st_size
        walked = list(records.intact_batches(0, size, may_have_gaps=False))
        all_headers = [header for headers in walked for header in headers]
        assert [header.position for header in all_headers] == [
            start
            for start, end in pairwise(accumulate((61 + n for n in sizes), initial=0))
            if end <= size
        ]


def test_epochs_lost_with_their_file_come_back_from_the_batches(tmp_path: Path) -> None:
    """Epoch 0 among them: KAFKA-10432."""
    log = open_log(tmp_path)
    for epoch in (0, 0, 3):
        log.append_as_leader(batch(2), epoch)
    (tmp_path / "t-0" / "leader-epoch-checkpoint").unlink()
    assert open_log(tmp_path).leader_epoch_cache.entries == ((0, 0), (3, 4))


def test_an_epoch_without_records_does_not_outlive_the_process(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    log.append_as_leader(batch(2), 1)
    log.maybe_assign_epoch_start_offset(7, 2)
    assert open_log(tmp_path).latest_epoch == 1


def test_older_segments_keep_their_epochs(tmp_path: Path) -> None:
    log = open_log(tmp_path, segment_bytes=150)
    for epoch in range(6):
        log.append_as_leader(batch(2), epoch)
    entries = log.leader_epoch_cache.entries
    assert len(entries) == 6
    again = open_log(tmp_path, segment_bytes=150)
    assert again.leader_epoch_cache.entries == entries
    assert read_all(again) == [(2 * i, 2 * i + 1) for i in range(6)]


class FullDisk(RealDisk):
    """Fails after a number of bytes, as a full one does: what fitted is written."""

    def __init__(self, room: int) -> None:
        super().__init__()
        self.room = room

    def append(self, path: str, data: bytes) -> None:
        super().append(path, data[: self.room])
        if len(data) > self.room:
            raise OSError(errno.ENOSPC, "No space left on device")
        self.room -= len(data)


def test_a_failed_append_is_as_if_it_had_not_been(tmp_path: Path) -> None:
    disk = FullDisk(room=len(batch()) + 20)
    log = open_log(tmp_path, disk=disk)
    log.append_as_leader(batch(), 0)
    with pytest.raises(KafkaStorageError):
        log.append_as_leader(batch(), 0)
    assert log.log_end_offset == 1
    assert read_all(log) == [(0, 0)]
    disk.room = MANY
    log.append_as_leader(batch(3), 0)
    assert read_all(log) == [(0, 0), (1, 3)]
    assert read_all(open_log(tmp_path)) == [(0, 0), (1, 3)]


def test_a_segment_is_rolled_without_what_a_failed_append_left(tmp_path: Path) -> None:
    """Nobody verifies a rolled segment again, so nothing torn may be in it."""
    disk = FullDisk(room=len(batch()) + 20)
    log = open_log(tmp_path, disk=disk, segment_bytes=2 * len(batch()))
    log.append_as_leader(batch(), 0)
    with pytest.raises(KafkaStorageError):
        log.append_as_leader(batch(), 0)
    disk.room = MANY
    log.append_as_leader(batch(3, payload=b"too large for what is left"), 0)
    assert read_all(log) == [(0, 0), (1, 3)]
    assert read_all(open_log(tmp_path)) == [(0, 0), (1, 3)]


def scripted_incarnation(
    log: Log, sure: list[tuple[int, int]], possible: list[tuple[int, int]]
) -> None:
    """Lead, append, truncate. Of (base offset, epoch) ``sure`` must be there and ``possible`` may be, at any moment."""
    for term in range(4):
        log.maybe_assign_epoch_start_offset(2 * term, log.log_end_offset)
        for i in range(4):
            possible.append((log.log_end_offset, 2 * term + i // 2))
            log.append_as_leader(batch(2), 2 * term + i // 2)
            sure.append(possible[-1])
        del sure[-3:]
        log.truncate_to(sure[-1][0] + 2)
        possible[:] = sure


CHANGES_IN_AN_INCARNATION = 88


@pytest.mark.parametrize("changes", range(CHANGES_IN_AN_INCARNATION + 1))
def test_killed_before_any_change_of_a_file_a_log_opens_with_what_it_acknowledged(
    tmp_path: Path, changes: int
) -> None:
    sure: list[tuple[int, int]] = []
    possible: list[tuple[int, int]] = []
    disk = FencedDisk(RealDisk(), Mortal(changes))
    killed = False
    try:
        scripted_incarnation(open_log(tmp_path, disk=disk, segment_bytes=200), sure, possible)
    except Killed:
        killed = True
    assert killed == (changes < CHANGES_IN_AN_INCARNATION), "a change of a file goes untested"
    log = open_log(tmp_path, segment_bytes=200)
    offsets = [base for base, _ in read_all(log)]
    assert offsets == [base for base, _ in possible][: len(offsets)]
    assert len(offsets) >= len(sure)
    lineage: list[tuple[int, int]] = []
    for base, epoch in possible[: len(offsets)]:
        if not lineage or lineage[-1][0] != epoch:
            lineage.append((epoch, base))
    assert list(log.leader_epoch_cache.entries) == lineage
