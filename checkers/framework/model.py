"""What a checker says: verdicts, findings, results.

Verdicts combine so that ``invalid`` beats ``unknown`` beats ``valid``; a property that observed nothing is
``unknown``, because a check that saw nothing proves nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import Any

import msgspec

from nemesis.history.sources import EventSource


class Verdict(StrEnum):
    VALID = "valid"
    UNKNOWN = "unknown"
    INVALID = "invalid"

    @property
    def exit_code(self) -> int:
        return {Verdict.VALID: 0, Verdict.INVALID: 1, Verdict.UNKNOWN: 2}[self]


def combine(verdicts: Iterable[Verdict]) -> Verdict:
    """Return the worst verdict; ``unknown`` when there is none."""
    severity = (Verdict.VALID, Verdict.UNKNOWN, Verdict.INVALID)
    ranks = [severity.index(verdict) for verdict in verdicts]
    return severity[max(ranks)] if ranks else Verdict.UNKNOWN


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that a checker found. Findings are data; ``reports`` renders them."""

    property: str
    """The property that is broken or could not be decided, e.g. ``hw-bounded``."""
    verdict: Verdict
    """``invalid``, ``unknown``, or ``valid`` for what is reported but allowed (see ``Result.findings``)."""
    key: str
    """What it is about: ``orders-0``, ``/controller_epoch``, ``broker-2``."""
    sentence: str
    """One sentence in plain words."""
    steps: tuple[str, ...] = ()
    """The contradiction spelled out, a sentence each: what was so, what came then, why both cannot be."""
    events: tuple[dict[str, Any], ...] = ()
    """The few events that prove it, as they stand in the history, unset columns left out."""
    causes: tuple[dict[str, Any], ...] = ()
    """The events that name the cause, in the order of the steps; empty if no cause is named."""
    faults: tuple[str, ...] = ()
    """The faults in force at the time of the proving events; filled in by the engine."""
    known: str = ""
    """The reference of the known behaviour of which it is an instance (``nemesis.judging.known``); empty: it is new."""


class Stretch(msgspec.Struct, frozen=True, kw_only=True, rename={"label": "what"}):
    """For so long something was missing."""

    label: str
    """What it is a stretch of: ``without-leader``."""
    key: str
    """What it is about: ``orders-0``, ``the cluster``."""
    start_ns: int
    stop_ns: int
    fault: str
    """The kind of fault to which it is put down, or ``none``."""
    is_over: bool
    """False if it lasted to the end of what was observed."""


class Distribution(msgspec.Struct, frozen=True, kw_only=True, rename={"label": "what"}):
    """How long stretches lasted."""

    label: str
    fault: str
    """The kind of fault to which they are put down, ``none``, or ``all`` of them."""
    count: int
    total_ms: float
    median_ms: float
    p90_ms: float
    max_ms: float


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """What one property came to."""

    property: str
    verdict: Verdict
    checked: int
    """How many events (or keys, see ``unit``) the property was evaluated on; 0 means ``unknown``."""
    unit: str = "events"
    findings: tuple[Finding, ...] = ()
    """The first findings in time order; all of them are counted in ``finding_count``."""
    finding_count: int = 0
    unlisted: tuple[Finding, ...] | msgspec.UnsetType = msgspec.UNSET
    """Findings beyond the first, with their events but without steps: known behaviour is tested finding by finding.
    Unset in files: there they are only counted."""
    numbers: dict[str, float] = {}
    """Measured quantities (the slowest check of convergence, ...), with their unit last in the name."""
    distributions: tuple[Distribution, ...] = ()
    """Of all stretches of a property that measures."""
    stretches: tuple[Stretch, ...] = ()
    """The longest of them, by their beginnings."""
    in_part_without: tuple[EventSource, ...] = ()
    """The sources that the run lacks and that would decide the rest of the promise. A violation is certain without
    them; its absence is not. Empty: the whole promise was judged."""


class NotObserved(msgspec.Struct, frozen=True, kw_only=True):
    """A property that the run's target does not show."""

    property: str
    without: tuple[EventSource, ...]
    """The sources that the property needs and the run lacks."""


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """All results of one history."""

    verdict: Verdict
    results: tuple[Result, ...]
    events: int
    engine: str
    seconds: float
    problems: tuple[str, ...] = ()
    """What is wrong with the history itself (torn files, missing sources); each makes the verdict ``unknown``
    unless it is ``invalid`` already."""

    not_recorded: tuple[str, ...] = ()
    """Properties that do not judge this run, because its version of nemesis did not record what they need."""

    not_observed: tuple[NotObserved, ...] = ()
    """Properties that do not judge this run, because its target lacks a source; they do not count in ``verdict``."""

    def broken(self) -> list[Finding]:
        """Return the findings that make it ``invalid``, in the order of reports."""
        return [
            finding
            for result in self.results
            for finding in result.findings
            if finding.verdict is Verdict.INVALID
        ]
