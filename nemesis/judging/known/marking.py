"""The list of known behaviour, and an outcome that is marked by it.

A finding that is known keeps its place and says so. If every finding of a property is known, they do not count: the
property is reported as broken and allowed, as after an unclean election that is permitted. Those that the outcome does
not list are tested, too. If one is new, or if there are more than were kept, the property stays ``invalid``.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Final

import msgspec
from msgspec import UNSET, UnsetType

from nemesis.checkers.framework.model import Finding, Outcome, Result, Verdict, combine
from nemesis.history.reader import History
from nemesis.history.run_directory import RunDirectory
from nemesis.judging.known.behaviour import Evidence, KnownBehaviour, Test
from nemesis.judging.known.last_replica import LAST_REPLICA
from nemesis.judging.known.lost_leader_and_isr import LOST_LEADER_AND_ISR
from nemesis.support.choices import one_of

LISTED: Final = (LAST_REPLICA, LOST_LEADER_AND_ISR)
"""Every known behaviour."""


class Allowed(StrEnum):
    """Which known behaviour does not count in the verdict."""

    DOCUMENTED = "documented"
    """What Kafka's project documents; bugs that we suspect count. The default."""
    SUSPECTED = "suspected"
    """Both."""
    NONE = "none"
    """Nothing: every violation counts."""

    def covers(self, behaviour: KnownBehaviour) -> bool:
        """Return whether this behaviour does not count."""
        return self is Allowed.SUSPECTED or (self is Allowed.DOCUMENTED and behaviour.is_documented)


def allowed_of(name: str) -> Allowed:
    """Return the choice of this name; raises ``UsageError``."""
    one_of("choice of --known", name, [choice.value for choice in Allowed])
    return Allowed(name)


def marked(
    run: RunDirectory,
    outcome: Outcome,
    allowed: Allowed = Allowed.DOCUMENTED,
    listed: Sequence[KnownBehaviour] = LISTED,
    history: History | None = None,
) -> Outcome:
    """Return the outcome with known findings marked, and without those in its verdict that are allowed.

    ``history``: of the run that was judged, if it is a repetition of the stored one.
    """
    if outcome.verdict is not Verdict.INVALID:
        return outcome
    evidence = Evidence(run, history)
    for behaviour in listed:
        if behaviour.holds_for(evidence.release) and _may_be_shown(outcome, behaviour):
            is_instance = behaviour.test(evidence)
            is_allowed = allowed.covers(behaviour)
            results = [
                _result(result, behaviour, is_instance, is_allowed=is_allowed)
                for result in outcome.results
            ]
            outcome = msgspec.structs.replace(outcome, results=tuple(results))
    verdicts = [result.verdict for result in outcome.results]
    verdicts += [Verdict.UNKNOWN] * len(outcome.problems)
    return msgspec.structs.replace(outcome, verdict=combine(verdicts))


def without_unlisted(outcome: Outcome) -> Outcome:
    """Return the outcome as it is stored: findings beyond the first of a property are only counted."""
    results = [msgspec.structs.replace(result, unlisted=UNSET) for result in outcome.results]
    return msgspec.structs.replace(outcome, results=tuple(results))


def _may_be_shown(outcome: Outcome, behaviour: KnownBehaviour) -> bool:
    return any(
        result.property in behaviour.properties and result.verdict is Verdict.INVALID
        for result in outcome.results
    )


def _result(
    result: Result, behaviour: KnownBehaviour, is_instance: Test, *, is_allowed: bool
) -> Result:
    if result.property not in behaviour.properties or result.verdict is not Verdict.INVALID:
        return result
    unlisted = () if isinstance(result.unlisted, UnsetType) else result.unlisted
    every = (*result.findings, *unlisted)
    broken = (finding for finding in every if finding.verdict is Verdict.INVALID)
    are_all_known = len(every) >= result.finding_count and all(map(is_instance, broken))
    is_excused = is_allowed and are_all_known
    findings = [
        _mark(finding, behaviour, is_excused=is_excused)
        if finding.verdict is Verdict.INVALID and is_instance(finding)
        else finding
        for finding in result.findings
    ]
    others = (finding.verdict for finding in every if finding.verdict is not Verdict.INVALID)
    verdict = combine([Verdict.VALID, *others]) if is_excused else result.verdict
    return msgspec.structs.replace(result, findings=tuple(findings), verdict=verdict)


def _mark(finding: Finding, behaviour: KnownBehaviour, *, is_excused: bool) -> Finding:
    step = f"This is known ({behaviour.reference}): {behaviour.reason}."
    return msgspec.structs.replace(
        finding,
        known=behaviour.reference,
        steps=(*finding.steps, step),
        verdict=Verdict.VALID if is_excused else finding.verdict,
    )
