from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from nemesis.reference.adapters.disk import RealDisk
from nemesis.reference.log.errors import OffsetOutOfRangeError
from nemesis.reference.log.log import Log, LogStartOffsetIncrementReason
from nemesis.reference.log.log_config import LogConfig
from nemesis.reference.model import OffsetAndEpoch
from tests.reference.log.batches import batch
from tests.reference.log.logs import MANY, TP, read_all

FIRST = len(batch(1))
Reason = LogStartOffsetIncrementReason


class Kept:
    """A log of one batch per segment, with a clock of its own and what it asked to be removed."""

    def __init__(self, tmp_path: Path, **config: Any) -> None:
        self.now_ms = 0
        self.doomed: list[tuple[list[str], int]] = []
        self.moved: list[tuple[int, Reason]] = []
        self.log = Log(
            TP,
            str(tmp_path / "t-0"),
            disk=RealDisk(),
            config=LogConfig(segment_bytes=FIRST, **config),
            wall_clock=lambda: self.now_ms,
            delete_later=self.delete_later,
            on_start_moved=lambda log, reason: self.moved.append((log.log_start_offset, reason)),
        )

    def delete_later(self, paths: Sequence[str], delay_ms: int) -> None:
        self.doomed.append(([Path(path).name for path in paths], delay_ms))

    def append(self, *timestamps: int) -> None:
        for timestamp in timestamps:
            self.log.append_as_leader(batch(1, timestamp=timestamp), 0)
        self.log.update_high_watermark(self.log.log_end_offset)


def test_the_oldest_segments_go_when_the_log_is_too_large(tmp_path: Path) -> None:
    kept = Kept(tmp_path, retention_bytes=2 * FIRST + 5, retention_ms=-1)
    kept.append(1, 2, 3, 4, 5)
    assert kept.log.delete_old_segments() == 2  # a third would leave less than may stay
    assert kept.log.log_start_offset == 2
    assert kept.moved == [(2, Reason.SEGMENT_DELETION)]
    assert read_all(kept.log) == [(2, 2), (3, 3), (4, 4)]
    assert kept.log.delete_old_segments() == 0


def test_segments_go_by_their_newest_record(tmp_path: Path) -> None:
    kept = Kept(tmp_path, retention_ms=100)
    kept.append(10, 500, 20, 30)
    kept.now_ms = 200
    assert kept.log.delete_old_segments() == 1  # the second is young, and those behind it wait
    kept.now_ms = 601
    assert kept.log.delete_old_segments() == 3
    assert (kept.log.log_start_offset, kept.log.log_end_offset) == (4, 4)
    kept.append(700)
    assert read_all(kept.log) == [(4, 4)]


def test_nothing_beyond_the_high_watermark_goes(tmp_path: Path) -> None:
    """KAFKA-5634."""
    kept = Kept(tmp_path, retention_ms=1)
    kept.append(1, 2, 3)
    kept.log.update_high_watermark(2)
    kept.now_ms = 10_000
    assert kept.log.delete_old_segments() == 2
    assert read_all(kept.log) == [(2, 2)]
    with pytest.raises(OffsetOutOfRangeError):
        kept.log.maybe_increment_log_start_offset(3, Reason.CLIENT_RECORD_DELETION)


def test_records_without_a_time_do_not_age(tmp_path: Path) -> None:
    kept = Kept(tmp_path, retention_ms=1)
    kept.append(-1, -1)
    kept.now_ms = 10_000
    assert kept.log.delete_old_segments() == 0


def test_files_are_renamed_at_once_and_removed_later(tmp_path: Path) -> None:
    kept = Kept(tmp_path, retention_ms=1, file_delete_delay_ms=77)
    kept.append(1, 2)
    kept.now_ms = 10_000
    kept.log.delete_old_segments()
    names = sorted(path.name for path in (tmp_path / "t-0").iterdir())
    (doomed, delay_ms) = kept.doomed[0]
    assert delay_ms == 77
    assert sorted(doomed) == [name for name in names if name.endswith(".deleted")]
    assert {Path(name.removesuffix(".deleted")).suffix for name in doomed} == {
        ".log",
        ".index",
        ".timeindex",
    }
    again = Kept(tmp_path)
    assert (again.log.log_start_offset, again.log.log_end_offset) == (2, 2)
    assert not list((tmp_path / "t-0").glob("*.deleted"))


def test_a_start_within_a_segment_hides_what_is_below(tmp_path: Path) -> None:
    kept = Kept(tmp_path)
    kept.log.append_as_leader(batch(5), 3)
    kept.log.append_as_leader(batch(5), 4)
    kept.log.update_high_watermark(7)
    assert kept.log.maybe_increment_log_start_offset(6, Reason.CLIENT_RECORD_DELETION)
    assert not kept.log.maybe_increment_log_start_offset(6, Reason.CLIENT_RECORD_DELETION)
    with pytest.raises(OffsetOutOfRangeError):
        kept.log.read(5, MANY, MANY, min_one_message=True)
    assert kept.log.leader_epoch_cache.entries == ((4, 6),)
    assert kept.log.truncate_to(2)  # not below the start
    assert kept.log.log_end_offset == 6
    assert kept.log.high_watermark == 6


def test_a_start_that_was_not_checkpointed_goes_back_and_its_epochs_are_known_again(
    tmp_path: Path,
) -> None:
    kept = Kept(tmp_path)
    for epoch in (3, 4, 5):
        kept.log.append_as_leader(batch(2), epoch)
    kept.log.update_high_watermark(6)
    assert kept.log.maybe_increment_log_start_offset(3, Reason.CLIENT_RECORD_DELETION)
    assert kept.log.end_offset_for_epoch(3) == OffsetAndEpoch(offset=3, leader_epoch=3)
    again = Kept(tmp_path).log
    assert again.log_start_offset == 0
    assert again.end_offset_for_epoch(3) == OffsetAndEpoch(offset=2, leader_epoch=3)


def test_the_start_is_kept_where_it_was_checkpointed(tmp_path: Path) -> None:
    kept = Kept(tmp_path)
    kept.append(*range(6))
    for start, expected in ((3, (3, 6)), (9, (9, 9))):
        log = Log(
            TP,
            str(tmp_path / "t-0"),
            disk=RealDisk(),
            config=LogConfig(segment_bytes=FIRST),
            log_start_offset=start,
        )
        assert (log.log_start_offset, log.log_end_offset) == expected
        assert log.high_watermark == expected[0]
    log.append_as_leader(batch(1), 5)
    assert read_all(log) == [(9, 9)]
    assert log.leader_epoch_cache.entries == ((5, 9),)


def test_a_log_that_starts_anew_forgets_everything(tmp_path: Path) -> None:
    kept = Kept(tmp_path)
    kept.append(1, 2, 3)
    kept.log.truncate_fully_and_start_at(50)
    assert (kept.log.log_start_offset, kept.log.log_end_offset, kept.log.high_watermark) == (
        50,
        50,
        50,
    )
    assert kept.log.latest_epoch is None
    kept.append(4)
    assert read_all(kept.log) == [(50, 50)]
    assert sorted(path.name for path in (tmp_path / "t-0").glob("*.log")) == [f"{50:020d}.log"]


def test_a_segment_ends_after_segment_ms(tmp_path: Path) -> None:
    kept = Kept(tmp_path, segment_ms=100)
    kept.log.config = LogConfig(segment_ms=100)
    kept.append(1000, 1100, 1050, 1101, 1150)
    assert [segment.base_offset for segment in kept.log.segments] == [0, 3]


def test_a_segment_ends_when_an_index_is_full(tmp_path: Path) -> None:
    kept = Kept(tmp_path)
    kept.log.config = LogConfig(segment_index_bytes=24, index_interval_bytes=0)
    kept.log.truncate_fully_and_start_at(0)
    kept.append(*[-1] * 7)
    assert [segment.base_offset for segment in kept.log.segments] == [0, 4]
