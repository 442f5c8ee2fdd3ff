"""What is drawn beside a finding: messages between nodes, what clients did, and cycles of transactions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

import msgspec
from markupsafe import Markup

from nemesis.checkers.framework.model import Finding, Verdict
from nemesis.history.reader import History
from nemesis.reports.client_lanes import ClientLanes, client_lanes
from nemesis.reports.cycle_graph import cycle_graph
from nemesis.reports.diagram import message_diagram
from nemesis.reports.diagram.gather import ProofTimes
from nemesis.reports.values import Values

MAX_DRAWN: Final = 4
"""Findings that are drawn: each costs passes over the history."""
_OF_FOREIGN: Final = ("time", "process", "kind", "op", "seq")
"""Columns that mean the same in the findings of other systems' histories."""


@dataclass(frozen=True, slots=True)
class Numbered:
    """A finding with its anchor on the page."""

    anchor: str
    finding: Finding
    diagram: Markup | None = None
    """The messages around it; only the first findings of broken properties have pictures."""
    cycle: Markup | None = None
    clients: ClientLanes | None = None


@dataclass(frozen=True, slots=True)
class Pictures:
    """Draws what a history has about findings."""

    history: History
    values: Values
    is_foreign: bool
    is_timed: bool
    """Whether the history states times."""

    def given_to(self, numbered: Sequence[Numbered]) -> list[Numbered]:
        """Return the findings, the first of each broken property with its pictures, up to ``MAX_DRAWN``."""
        chosen = [entry.anchor for entry in _firsts(numbered)][:MAX_DRAWN]
        return [self._drawn(entry) if entry.anchor in chosen else entry for entry in numbered]

    def _drawn(self, entry: Numbered) -> Numbered:
        cycle = _markup(cycle_graph(entry.finding))
        if not self.is_timed:
            return replace(entry, cycle=cycle)
        finding = _common_columns(entry.finding) if self.is_foreign else entry.finding
        instants = ProofTimes.of(finding, self.values.clock, self.values.owners)
        origin_ns = self.values.origin_ns
        diagram = None if self.is_foreign else message_diagram(self.history, instants, origin_ns)
        lanes = client_lanes(self.history, instants, origin_ns)
        return replace(entry, cycle=cycle, diagram=_markup(diagram), clients=lanes)


def _firsts(numbered: Iterable[Numbered]) -> Iterable[Numbered]:
    """The first finding of each broken property."""
    firsts: dict[str, Numbered] = {}
    for entry in numbered:
        if entry.finding.verdict is Verdict.INVALID:
            firsts.setdefault(entry.finding.property, entry)
    return firsts.values()


def _common_columns(finding: Finding) -> Finding:
    events = tuple(
        {name: event[name] for name in _OF_FOREIGN if name in event} for event in finding.events
    )
    return msgspec.structs.replace(finding, events=events)


def _markup(svg: str | None) -> Markup | None:
    """Drawings escape every text that they take from the history."""
    return None if svg is None else Markup(svg)  # noqa: S704
