"""Findings explained: the events that prove one, told in words in their order, and why they cannot all be.

The engine calls ``explain`` for the few findings that it keeps, once it has fetched their events. A check that knows
more of its contradiction than its events say gives the steps itself; they are left as they are.

* ``tell``          what an event says, as a clause
* ``elsewhere``     what one of another system's history says
* ``words``         brokers, offsets, zxids, lengths of time
* ``case``          what a reason is given
* ``controllers``, ``leaders``, ``replicas``, ``clients``, ``ends``   the reasons, a function for each property
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from types import MappingProxyType
from typing import Any, Final

from nemesis.checkers.explain import clients, controllers, ends, leaders, replicas
from nemesis.checkers.explain.case import Case, Reason
from nemesis.checkers.explain.tell import since, tell
from nemesis.checkers.explain.words import sentence
from nemesis.checkers.framework.model import Finding, Verdict
from nemesis.checkers.framework.segment import PROOF_ROW
from nemesis.history.events import Event

__all__ = ["REASONS", "explain"]

REASONS: Final[Mapping[str, Reason]] = MappingProxyType(
    {
        **controllers.REASONS,
        **leaders.REASONS,
        **replicas.REASONS,
        **clients.REASONS,
        **ends.REASONS,
    }
)
"""By property."""


_UNCLEAN: Final = (
    "The topic allows unclean elections, which elect leaders that may lack records: it is reported, and held "
    "against nobody."
)
_ALLOWED_OTHERWISE: Final = frozenset({"duplicate", "reassignment"})
"""Their reasons say why it is allowed."""


def explain(finding: Finding) -> tuple[str, ...]:
    """Return the steps of a finding whose events are whole: its own if it has some.

    A property without a reason here has its events told, and nothing else.
    """
    if finding.steps or not finding.events:
        return finding.steps
    events = tuple(_event(row) for row in finding.events)
    reason = REASONS.get(finding.property)
    if reason is None:
        return tuple(_told(events))
    why = [reason(Case(finding, events))]
    if finding.verdict is Verdict.VALID and finding.property not in _ALLOWED_OTHERWISE:
        why.append(_UNCLEAN)
    return (*_told(events), *why)


def _told(events: tuple[Event, ...]) -> Iterator[str]:
    yield sentence(tell(events[0]))
    for earlier, later in pairwise(events):
        when = since(earlier, later)
        yield sentence(f"{when}, {tell(later)}" if when else tell(later))


def _event(row: Mapping[str, Any]) -> Event:
    return Event(**{name: value for name, value in row.items() if name != PROOF_ROW})
