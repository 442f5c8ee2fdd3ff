"""What an explanation starts from: a finding and its events."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from nemesis.checkers.framework.model import Finding, Verdict
from nemesis.history.events import Event, Kind


@dataclass(frozen=True, slots=True)
class Case:
    finding: Finding
    events: tuple[Event, ...]
    """The events that prove it, in the finding's order; at least one."""

    @property
    def is_undecided(self) -> bool:
        return self.finding.verdict is Verdict.UNKNOWN

    @property
    def is_allowed(self) -> bool:
        """It is reported, and held against nobody."""
        return self.finding.verdict is Verdict.VALID

    @property
    def is_proved(self) -> bool:
        return self.finding.verdict is Verdict.INVALID

    def first_of(self, *kinds: Kind) -> Event | None:
        return next((event for event in self.events if event.kind in kinds), None)


Reason = Callable[[Case], str]
"""Returns why what the events say cannot all be, in whole sentences."""


@dataclass(frozen=True, slots=True)
class Cause:
    """What kept the system from what a finding misses, as far as the history records it."""

    sentences: tuple[str, ...]
    """Since when it is so, the last write that should have changed it, who answered what, what was expected next."""
    rows: tuple[int, ...] = ()
    """The numbers of the rows that the sentences are about."""


SeekCause = Callable[[Case, Sequence[tuple[int, Event]]], Cause]
"""Returns the cause of a finding, from the events around it with the numbers of their rows."""
