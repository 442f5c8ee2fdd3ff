"""Findings explained: the events that prove one, told in words in their order, and why they cannot all be.

``nemesis.checkers.checking`` calls ``explain`` for the few findings that are kept, once it has fetched their events. A
check that knows more of its contradiction than its events say gives the steps itself; they are left as they are.

* ``tell``          what an event says, as a clause; ``clauses`` has one for each kind
* ``foreign_operations``     what one of another system's history says
* ``producer_requests``      what transactional producers did
* ``words``         brokers, offsets, zxids, lengths of time
* ``sessions``      the broker of each ZooKeeper session
* ``controllers``, ``leaders``, ``replicas``, ``clients``, ``groups``, ``ends``,
  ``markers``   the reasons, a function for
  each property, which the property names (``Property.reason``)
* ``office``, ``vacancies``, ``broker_failures``, ``metadata``, ``elections_answered``, ``own_logs``, ``isr_joins``,
  ``isr_epochs``, ``isr_shrinks``, ``client_offsets``, ``control_effects``, ``notifications``, ``offsets_at_rest``,
  ``leader_balance``, ``log_dir_failures``, ``settings_in_force``, ``retention``, ``hw_sampled``,
  ``epoch_ends``, ``quorum``, ``log_files``, ``compaction``, ``checkpoints``,
  ``times_answered``, ``jobs``, ``requests_answered``, ``log_dir_moves``,
  ``segment_deletions``, ``isr_commits``, ``leader_epochs_fenced``,
  ``fetches_answered``, ``transactions``, ``clean_stops``, ``tombstones``   further reasons
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any, Final

from nemesis.checkers.explain.tell import since, tell
from nemesis.checkers.explain.words import sentence
from nemesis.checkers.framework.model import Finding, Verdict
from nemesis.checkers.framework.property import Property
from nemesis.checkers.framework.reason import Case
from nemesis.checkers.framework.segment import PROOF_ROW
from nemesis.history.events import Event

_UNCLEAN: Final = (
    "The topic permits unclean elections, which may lose records. So this does not count."
)


def explain(
    finding: Finding, decided: Property | None = None, cause: tuple[str, ...] = ()
) -> tuple[str, ...]:
    """Return the steps of a finding whose events are whole: its own if it has some.

    ``decided``: the finding's property. Without a property that has a reason the steps report the events alone.
    ``cause``: the sentences that name the cause; they stand between what the events say and the reason.
    """
    if finding.steps or not finding.events:
        return finding.steps
    case = case_of(finding)
    events = case.events
    if decided is None or decided.reason is None:
        return tuple(_narration(events))
    why = [decided.reason(case)]
    if finding.verdict is Verdict.VALID and not decided.reason_covers_excuses:
        why.append(_UNCLEAN)
    return (*_narration(events), *cause, *why)


def case_of(finding: Finding) -> Case:
    """Return what explanations start from; the events of the finding are whole."""
    return Case(finding, tuple(_event(row) for row in finding.events))


def _narration(events: tuple[Event, ...]) -> Iterator[str]:
    yield sentence(tell(events[0]))
    for earlier, later in pairwise(events):
        when = since(earlier, later)
        yield sentence(f"{when}, {tell(later)}" if when else tell(later))


def _event(row: Mapping[str, Any]) -> Event:
    return Event(**{name: value for name, value in row.items() if name != PROOF_ROW})
