"""The simplest fold: keep the events themselves.

Elections, state znodes, control requests and faults are rare next to appends and polls, so a check of theirs
may simply collect them and judge the whole list at the end. The summary is that list, and joining two lists
is associative by nature. Not for kinds that grow with the load.
"""

from __future__ import annotations

from abc import abstractmethod

from nemesis.checkers.framework.fold import Fold, Results
from nemesis.checkers.framework.segment import Segment
from nemesis.history.events import NO_ERROR, Event

Row = tuple[int, Event]
"""An event and the number of its row in the history."""


class EventListCheck(Fold[list[Row]]):
    """A fold over few events; a check implements ``judge``."""

    def reduce(self, segment: Segment) -> list[Row]:
        return list(segment.events(*self.columns))

    def combine(self, a: list[Row], b: list[Row]) -> list[Row]:
        return a + b

    def finish(self, summary: list[Row]) -> Results:
        return self.judge(summary)

    @abstractmethod
    def judge(self, rows: list[Row]) -> Results:
        """Decide the property from all its events, in history order."""


def succeeded(event: Event) -> bool:
    """Whether the event's ``error`` says that all went well."""
    return event.error is None or event.error == NO_ERROR
