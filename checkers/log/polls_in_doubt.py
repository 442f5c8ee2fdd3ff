"""Polls of unknown outcome: each may have returned a record that no other poll returned.

A consumer reads on behind the records that its polls returned. If the outcome of an earlier poll is unknown, that poll
may have returned what lies before. So a consumer shows that a record is absent only if no poll in doubt of its process
began before. Consumers that subscribe share their positions: a poll in doubt of one may have moved all of them.

A poll in doubt that reports records returned these and no others. A poll that failed returned nothing. Limit: a
process with a poll in doubt proves nothing from then on, also if it seeks to the beginning of a log.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import pyarrow.compute as pc
from msgspec.structs import replace

from nemesis.checkers.framework.model import Finding, Verdict
from nemesis.checkers.framework.segment import Numbers, Segment
from nemesis.history.events import Kind
from nemesis.history.foreign.logs import process_of

MAY_BE_READ = "An earlier poll of unknown outcome, of the reader or of another subscriber, may have returned it."


class Reader(NamedTuple):
    """A consumer whose poll shows that it passed over a record."""

    process: str
    is_subscribed: bool
    time: int
    """A poll in doubt that began after this moment does not matter."""


@dataclass(slots=True)
class PollsInDoubt:
    """When the first poll of unknown outcome began."""

    by_process: dict[str, int] = field(default_factory=dict)
    of_subscribers: float = math.inf

    def add(self, process: str, began: int, *, is_subscribed: bool) -> None:
        self.by_process[process] = min(began, self.by_process.get(process, began))
        if is_subscribed:
            self.of_subscribers = min(began, self.of_subscribers)

    def update(self, other: PollsInDoubt) -> None:
        """Add those that another part of the history has."""
        for process, began in other.by_process.items():
            self.add(process, began, is_subscribed=False)
        self.of_subscribers = min(other.of_subscribers, self.of_subscribers)

    def may_precede(self, reader: Reader) -> bool:
        """Whether one of them may have returned what this reader passed over."""
        began = self.by_process.get(reader.process, math.inf)
        return min(began, self.of_subscribers if reader.is_subscribed else math.inf) < reader.time


@dataclass(frozen=True, slots=True)
class Missed:
    """A finding of a record that no poll returned, though these readers passed over it."""

    finding: Finding
    readers: tuple[Reader, ...]

    def judged(self, in_doubt: PollsInDoubt) -> Finding:
        """Return the finding: ``unknown`` if a poll in doubt may precede each of the readers."""
        if not all(map(in_doubt.may_precede, self.readers)):
            return self.finding
        steps = (*self.finding.steps, MAY_BE_READ)
        return replace(self.finding, verdict=Verdict.UNKNOWN, steps=steps)


def polls_in_doubt(segment: Segment) -> PollsInDoubt:
    """Return the polls of these events whose outcome is unknown, and that report no records."""
    polls = segment.where(segment.is_word("f", {"poll"}))
    counts = pc.fill_null(pc.list_value_length(polls.columns.arrow("offsets")), 0).to_numpy()
    is_decided = polls.is_kind(Kind.OK, Kind.FAIL) | (counts > 0)
    decided = polls.numbers("op")[is_decided]
    begun = polls.where(polls.is_kind(Kind.INVOKE) & ~np.isin(polls.numbers("op"), decided))
    codes, names = begun.codes("process")
    in_doubt = PollsInDoubt()
    for code, time, group in zip(
        codes.tolist(), begun.numbers("time").tolist(), begun.values("group"), strict=True
    ):
        in_doubt.add(process_of(names[code]), time, is_subscribed=group is not None)
    return in_doubt


def readers_of(polls: Segment, positions: Iterable[int] | Numbers) -> tuple[Reader, ...]:
    """Return the consumers that made the polls at these positions, each with the first of them to end."""
    chosen = polls.take(np.unique(np.asarray(positions, dtype=np.int64)))
    codes, names = chosen.codes("process")
    first: dict[tuple[str, bool], int] = {}
    for code, time, group in zip(
        codes.tolist(), chosen.numbers("time").tolist(), chosen.values("group"), strict=True
    ):
        name = (process_of(names[code]), group is not None)
        first[name] = min(time, first.get(name, time))
    return tuple(
        Reader(process, is_subscribed, time) for (process, is_subscribed), time in first.items()
    )
