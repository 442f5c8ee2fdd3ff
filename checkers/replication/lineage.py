"""The model of what a replica knows of leader epochs: where each began in its log (Kafka's leader epoch cache).

A leader epoch begins where the first batch of it is, or, on its leader, where the log ended when the leadership began:
a leader knows its own epoch before it has written anything (KAFKA-7415). Epochs and offsets both grow, so an epoch that
begins replaces those that it contradicts. What is known goes with the records: truncation takes the epochs that begin
behind the cut, and a log that starts later lets the epoch in force begin there.

A replica that moves to another log directory takes its epochs along, also those without records (KAFKA-15608).

A start that a broker has not checkpointed goes back when the broker is killed. The batches below are there again, and
their epochs are known again or stay forgotten (``is_start_lowered``). Kafka keeps those of its file, which it writes in
the background, and recovers only epochs that are larger than all of them; the reference recovers those of the batches.

``unknown_from`` is set where the events do not say what the log holds: a log that was there before, records that a
killed broker appended and did not trace, and a log that compaction has changed and that is opened again or moves.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from nemesis.checkers.framework.event_list import Row
from nemesis.history.events import Event, Kind


class EpochStart(NamedTuple):
    """A leader epoch, the offset at which it begins, and the event that shows it."""

    epoch: int
    offset: int
    row: int


class EpochEnd(NamedTuple):
    """A leader epoch and the offset at which it ends, as OffsetForLeaderEpoch answers it."""

    epoch: int
    offset: int


NO_EPOCH: Final = EpochEnd(-1, -1)
"""The answer of a log that has neither the requested epoch nor a larger one."""


@dataclass(slots=True)
class Lineage:
    """The leader epochs of one log. It is not known before it is opened."""

    starts: list[EpochStart] = field(default_factory=list)
    start: int = 0
    end: int = 0
    unknown_from: int | None = 0
    """From this offset on it is not known what the log holds; None: all is known."""
    is_opened: bool = False
    is_cleaned: bool = False
    is_start_lowered: bool = False
    """It was opened with an earlier start than it had: of epochs up to the first one, the log may know more."""

    @property
    def is_known(self) -> bool:
        return self.unknown_from is None

    @property
    def latest(self) -> EpochStart | None:
        """The latest leader epoch; None if the log knows none."""
        return self.starts[-1] if self.starts else None

    def end_of(self, epoch: int) -> EpochEnd:
        """Return the largest epoch that is at most this one, and where it ends.

        An epoch before the first one that is known ends where that one begins, and is named as it was asked for.
        """
        if epoch < 0 or not self.starts or epoch > self.starts[-1].epoch:
            return NO_EPOCH
        if epoch == self.starts[-1].epoch:
            return EpochEnd(epoch, self.end)
        larger = self.after(epoch)
        floor = self.starts[larger - 1].epoch if larger > 0 else epoch
        return EpochEnd(floor, self.starts[larger].offset)

    def possible_ends_of(self, epoch: int) -> dict[int, tuple[int, int]]:
        """Return the smallest and the largest offset at which an epoch may end, by the epoch that may be answered.

        Where the start went back, each epoch up to the requested one may be the largest that is known again. It ends at
        the start of a larger one: behind the log start, and at most where the first epoch begins that is surely known.
        """
        end = self.end_of(epoch)
        if self.is_start_lowered and self.starts and 0 <= epoch < self.starts[0].epoch:
            return dict.fromkeys(range(epoch + 1), (self.start, end.offset))
        return {end.epoch: (end.offset, end.offset)}

    def after(self, epoch: int) -> int:
        """Return the position of the first larger epoch."""
        return bisect_right(self.starts, epoch, key=lambda item: item.epoch)

    def take_in(self, reported: Row) -> None:
        """Follow an event of this replica."""
        row, event = reported
        end = self.end if event.log_end_offset is None else event.log_end_offset
        start = self.start if event.log_start_offset is None else event.log_start_offset
        match event.kind:
            case Kind.APPEND if event.offset is not None and event.leader_epoch is not None:
                self._append(EpochStart(event.leader_epoch, event.offset, row), end)
            case Kind.BECOME_LEADER if event.leader_epoch is not None:
                self._lead(EpochStart(event.leader_epoch, end, row))
            case Kind.TRUNCATE:
                self._truncate(event.offset, start, end)
            case Kind.LOG_START_OFFSET:
                self._raise_start(start)
            case Kind.LOG_LOADED:
                self._open(start, end)
            case Kind.LOG_DIR_CHANGED if not self.survives_move(event):
                self.end, self.unknown_from = end, 0
            case Kind.LOG_CLEANED:
                self.is_cleaned = True

    def survives_move(self, moved: Event) -> bool:
        """Return whether all is known of the log after this move to another directory."""
        return self.is_known and not self.is_cleaned and moved.log_end_offset == self.end

    def _append(self, first: EpochStart, end: int) -> None:
        if first.offset < self.end and self.start == self.end:
            self._empty(
                first.offset
            )  # the first batch holds the start of the log, and begins before it
        self._cut(first.offset)
        self._assign(first)
        self.end = end

    def _lead(self, item: EpochStart) -> None:
        if item.offset > self.end:
            self._lose_sight(self.end)
            self.end = item.offset
        self._cut(item.offset)
        self._assign(item)

    def _assign(self, item: EpochStart) -> None:
        starts = self.starts
        if starts and starts[-1].epoch == item.epoch and starts[-1].offset <= item.offset:
            return
        while starts and (starts[-1].epoch >= item.epoch or starts[-1].offset >= item.offset):
            starts.pop()
        starts.append(item)

    def _truncate(self, offset: int | None, start: int, end: int) -> None:
        if end > self.end:
            self._empty(end)
            return
        # Epochs without records go even if the truncation has none to remove (KAFKA-10706).
        behind = end if end < self.end else max(end if offset is None else offset, start)
        self._cut(end)
        self._forget_from(behind)
        self.start = start

    def _open(self, start: int, end: int) -> None:
        is_new, self.is_opened = not self.is_opened, True
        if end == 0:
            self._empty(0)
        elif is_new or self.is_cleaned or start == end:
            self.starts, self.start, self.end, self.unknown_from = [], start, end, 0
            self.is_start_lowered = False
        else:
            self.is_start_lowered |= start < self.start
            if end > self.end:
                self._lose_sight(self.end)
            self._cut(end)
            self._forget_from(end)
            self.start, self.end = start, end
            self._raise_start(start)

    def _empty(self, offset: int) -> None:
        self.starts, self.start, self.end, self.unknown_from = [], offset, offset, None
        self.is_start_lowered = False

    def _lose_sight(self, offset: int) -> None:
        self.unknown_from = offset if self.unknown_from is None else min(offset, self.unknown_from)

    def _cut(self, end: int) -> None:
        """Let the log end here, if it ends later."""
        if end < self.end:
            self.end = end
            self._forget_from(end)
        if self.unknown_from is not None and 0 < end <= self.unknown_from:
            self.unknown_from = None

    def _forget_from(self, offset: int) -> None:
        while self.starts and self.starts[-1].offset >= offset:
            self.starts.pop()

    def _raise_start(self, offset: int) -> None:
        """Let the epoch in force at this offset begin there, and forget those before."""
        self.start = offset
        position = bisect_right(self.starts, offset, key=lambda item: item.offset)
        if position > 0:
            first = self.starts[position - 1]._replace(offset=offset)
            self.starts[:position] = [first]
            self.is_start_lowered = False
