"""Damage at the end of a log: behind what is synced, where recovery sees it, and nowhere else."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nemesis.reference.log.log import Log
from nemesis.reference.log.log_config import LogConfig
from nemesis.reference.model import TopicPartition
from nemesis.simulation.disk import SimulatedDisk
from nemesis.support import log_damage as damage
from tests.reference.log.batches import batch

DIRECTORY = "d/t-0"
FILE = f"{DIRECTORY}/{0:020d}.log"


def opened(disk: SimulatedDisk) -> Log:
    return Log(TopicPartition("t", 0), DIRECTORY, disk=disk, config=LogConfig())


@given(st.integers(0, 4), st.integers(1, 4), st.integers(0, 2**32))
def test_recovery_keeps_what_was_synced_and_cuts_what_is_damaged(
    synced: int, unsynced: int, seed: int
) -> None:
    disk = SimulatedDisk()
    log = opened(disk)
    for _ in range(synced):
        log.append_as_leader(batch(), 0)
    disk.fsync(FILE)
    for _ in range(unsynced):
        log.append_as_leader(batch(), 0)
    before = disk.contents()[f"/{FILE}"]
    [done] = disk.corrupt_tail(Random(seed))
    batches = list(damage.batches(before))
    hurt = next(n for n, b in enumerate(batches) if b.start <= done.position < b.end)
    assert hurt >= synced
    assert done.lost_bytes == len(before) - batches[hurt].start
    assert opened(disk).log_end_offset == hurt


def test_a_log_without_unsynced_batches_is_left_alone() -> None:
    disk = SimulatedDisk()
    opened(disk).append_as_leader(batch(), 0)
    disk.fsync(FILE)
    before = disk.contents()
    assert disk.corrupt_tail(Random(1)) == ()
    assert disk.contents() == before


@pytest.mark.parametrize("junk", [b"", b"short", bytes(100), b"\xff" * 100])
def test_what_is_no_batch_is_none(junk: bytes) -> None:
    assert list(damage.batches(junk)) == []


def test_only_the_segment_that_is_written_to_is_damaged() -> None:
    old, new, other = (f"d/t-{p}/{base:020d}.log" for p, base in ((0, 0), (0, 7), (1, 0)))
    index = f"d/t-0/{9:020d}.index"
    assert damage.last_segments([new, old, index, other, "d/replication-offset-checkpoint"]) == [
        new,
        other,
    ]
