"""What the traces of a replica say of its leader epochs, against a log of the reference that goes through the same."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st

from nemesis.checkers.breaks.events import (
    append,
    become_leader,
    broker,
    loaded,
    log_start,
    truncate,
)
from nemesis.checkers.replication.lineage import NO_EPOCH, EpochEnd, EpochStart, Lineage
from nemesis.history.events import Event
from nemesis.reference.adapters.disk import RealDisk
from nemesis.reference.log.log import Log, LogStartOffsetIncrementReason
from nemesis.reference.log.log_config import LogConfig
from nemesis.reference.model import TopicPartition
from tests.reference.log.batches import PRODUCERS, assigned, batch

EPOCHS = 12
STEPS = ("append", "append", "follow", "lead", "truncate", "start", "restart", "crash", "give-up")

steps = st.lists(st.tuples(st.sampled_from(STEPS), st.integers(0, 20)), max_size=40)


class TracedLog:
    """A log of the reference, and the events that its broker would trace."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.epoch = 0
        self.log = self._open(0)

    def _open(self, start: int) -> Log:
        return Log(
            TopicPartition("t", 0),
            str(self.directory / "t-0"),
            disk=RealDisk(max_handles=4),
            config=LogConfig(),
            log_start_offset=start,
            **PRODUCERS,
        )

    def step(self, action: str, number: int) -> Event | None:
        log = self.log
        if action in ("append", "follow"):
            self.epoch = min(EPOCHS, self.epoch + (number % 3 if action == "follow" else 0))
            first = log.log_end_offset
            log.append_as_follower(assigned(batch(count=1 + number % 3), first, self.epoch))
            return append(1, 1, self.epoch, first, last=log.log_end_offset - 1)
        if action == "lead":
            self.epoch = min(EPOCHS, self.epoch + number % 3)
            log.maybe_assign_epoch_start_offset(self.epoch, log.log_end_offset)
            return become_leader(1, 1, self.epoch, log.log_end_offset)
        if action == "truncate":
            offset = max(0, log.log_end_offset + 1 - number % 8)
            log.truncate_to(offset)
            self.epoch = log.latest_epoch or 0
            return self._cut(offset)
        if action == "give-up":
            offset = log.log_end_offset + 1 + number
            log.truncate_fully_and_start_at(offset)
            return self._cut(offset)
        if action == "start":
            log.update_high_watermark(log.log_end_offset)
            start = min(log.log_start_offset + number % 5, log.log_end_offset)
            log.maybe_increment_log_start_offset(
                start, LogStartOffsetIncrementReason.CLIENT_RECORD_DELETION
            )
            return broker(1, 1, "log-start-offset", **self._bounds())
        lost = number if action == "crash" else 0
        self.log = self._open(max(0, log.log_start_offset - lost))
        self.epoch = self.log.latest_epoch or 0
        return loaded(1, 1, self.log.log_end_offset, log_start_offset=self.log.log_start_offset)

    def _bounds(self) -> dict[str, int]:
        return {
            "log_start_offset": self.log.log_start_offset,
            "log_end_offset": self.log.log_end_offset,
        }

    def _cut(self, offset: int) -> Event:
        cut = truncate(1, 1, self.log.log_end_offset, log_start_offset=self.log.log_start_offset)
        cut.offset = offset
        return cut

    def end_of(self, epoch: int) -> EpochEnd:
        end = self.log.end_offset_for_epoch(epoch)
        return NO_EPOCH if end is None else EpochEnd(end.leader_epoch, end.offset)


def opened(end: int = 0) -> Lineage:
    lineage = Lineage()
    lineage.take_in((0, loaded(0, 1, end)))
    return lineage


@settings(max_examples=200)
@given(steps)
def test_it_says_what_the_log_says(taken: list[tuple[str, int]]) -> None:
    with TemporaryDirectory() as directory:
        traced, lineage = TracedLog(Path(directory)), opened()
        for row, (action, number) in enumerate(taken, 1):
            event = traced.step(action, number)
            assert event is not None
            lineage.take_in((row, event))
            if lineage.is_known:
                first = lineage.starts[0].epoch if lineage.starts else EPOCHS + 2
                for epoch in range(-1, EPOCHS + 2):
                    end = traced.end_of(epoch)
                    if lineage.is_start_lowered and epoch < first:
                        assert is_possible(end, lineage, epoch), action
                    else:
                        assert lineage.end_of(epoch) == end, action


def is_possible(end: EpochEnd, lineage: Lineage, epoch: int) -> bool:
    """Return whether the log may answer this; a log that is not known to have any epoch never leads."""
    low, high = lineage.possible_ends_of(epoch).get(end.epoch, (1, 0))
    return not lineage.starts or low <= end.offset <= high


def test_epochs_below_a_start_that_went_back_may_be_known_again() -> None:
    lineage = opened()
    lineage.take_in((1, append(1, 1, 1, 0, last=3)))
    lineage.take_in((2, append(1, 1, 3, 4, last=5)))
    lineage.take_in((3, log_start(2, 1, 5, 6)))
    assert lineage.possible_ends_of(2) == {2: (5, 5)}
    lineage.take_in((4, loaded(3, 1, 6, log_start_offset=2)))
    assert lineage.possible_ends_of(2) == {0: (2, 5), 1: (2, 5), 2: (2, 5)}
    assert lineage.possible_ends_of(3) == {3: (6, 6)}


def test_most_logs_that_are_opened_again_are_known() -> None:
    lineage = opened()
    lineage.take_in((1, append(1, 1, 3, 0, last=4)))
    lineage.take_in((2, loaded(2, 1, 5)))
    assert lineage.is_known
    assert lineage.end_of(3) == EpochEnd(3, 5)


def test_a_log_that_was_there_before_is_not_known() -> None:
    assert not opened(5).is_known


def test_records_that_were_not_traced_are_not_known_until_they_are_truncated() -> None:
    lineage = opened()
    lineage.take_in((1, append(1, 1, 3, 0, last=4)))
    lineage.take_in((2, loaded(2, 1, 7)))
    assert lineage.unknown_from == 5
    lineage.take_in((3, truncate(3, 1, 5)))
    assert lineage.is_known
    assert lineage.end_of(3) == EpochEnd(3, 5)


def test_a_log_that_was_compacted_is_not_known_once_it_is_opened_again() -> None:
    lineage = opened()
    lineage.take_in((1, append(1, 1, 3, 0, last=4)))
    lineage.take_in((2, broker(2, 1, "log-cleaned", offset=0, last_offset=2)))
    assert lineage.unknown_from is None
    lineage.take_in((3, loaded(3, 1, 5)))
    assert not lineage.is_known


def test_a_log_in_another_directory_has_the_same_epochs() -> None:
    lineage = opened()
    lineage.take_in((1, append(1, 1, 3, 0, last=4)))
    lineage.take_in((2, become_leader(2, 1, 4, 5)))
    lineage.take_in((3, moved(3, 5)))
    assert lineage.is_known
    assert lineage.latest == EpochStart(4, 5, 2)
    assert lineage.end_of(4) == EpochEnd(4, 5)


def test_a_compacted_log_or_one_of_another_end_is_not_known_once_it_has_moved() -> None:
    shorter = opened()
    shorter.take_in((1, append(1, 1, 3, 0, last=4)))
    shorter.take_in((2, moved(2, 4)))
    assert not shorter.is_known
    cleaned = opened()
    cleaned.take_in((1, append(1, 1, 3, 0, last=4)))
    cleaned.take_in((2, broker(2, 1, "log-cleaned", offset=0, last_offset=2)))
    cleaned.take_in((3, moved(3, 5)))
    assert not cleaned.is_known


def moved(time: int, end: int) -> Event:
    return broker(time, 1, "log-dir-changed", log_end_offset=end, log_start_offset=0)
