"""The list of known behaviour, and an outcome that is marked by it.

A finding that is known keeps its place and says so. If every finding of a property is known, they do not count: the
property is reported as broken and allowed, as after an unclean election that is permitted. If one is new, or if there
are more than the outcome lists and they are about other partitions, the property stays ``invalid``.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Final

import msgspec

from nemesis.checkers.framework.model import Finding, Outcome, Result, Verdict, combine
from nemesis.history.run_directory import RunDirectory
from nemesis.judging.known.behaviour import Evidence, KnownBehaviour
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
) -> Outcome:
    """Return the outcome with known findings marked, and without those in its verdict that are allowed."""
    if outcome.verdict is not Verdict.INVALID:
        return outcome
    evidence = Evidence(run)
    for behaviour in listed:
        if behaviour.holds_for(evidence.release) and _may_be_shown(outcome, behaviour):
            partitions = behaviour.partitions(evidence)
            is_allowed = allowed.covers(behaviour)
            results = [
                _result(result, behaviour, partitions, is_allowed=is_allowed)
                for result in outcome.results
            ]
            outcome = msgspec.structs.replace(outcome, results=tuple(results))
    verdicts = [result.verdict for result in outcome.results]
    verdicts += [Verdict.UNKNOWN] * len(outcome.problems)
    return msgspec.structs.replace(outcome, verdict=combine(verdicts))


def _may_be_shown(outcome: Outcome, behaviour: KnownBehaviour) -> bool:
    return any(
        result.property in behaviour.properties and result.verdict is Verdict.INVALID
        for result in outcome.results
    )


def _result(
    result: Result, behaviour: KnownBehaviour, partitions: frozenset[str], *, is_allowed: bool
) -> Result:
    if result.property not in behaviour.properties or result.verdict is not Verdict.INVALID:
        return result

    def is_known(finding: Finding) -> bool:
        return finding.key in partitions and behaviour.is_shown_by(finding)

    broken = [finding for finding in result.findings if finding.verdict is Verdict.INVALID]
    are_all_known = all(map(is_known, broken)) and set(result.broken_keys) <= partitions
    excused = is_allowed and are_all_known
    findings = [
        _mark(finding, behaviour, is_excused=excused)
        if finding.verdict is Verdict.INVALID and is_known(finding)
        else finding
        for finding in result.findings
    ]
    verdict = combine(finding.verdict for finding in findings) if excused else result.verdict
    return msgspec.structs.replace(result, findings=tuple(findings), verdict=verdict)


def _mark(finding: Finding, behaviour: KnownBehaviour, *, is_excused: bool) -> Finding:
    step = f"This is known ({behaviour.reference}): {behaviour.reason}."
    return msgspec.structs.replace(
        finding,
        known=behaviour.reference,
        steps=(*finding.steps, step),
        verdict=Verdict.VALID if is_excused else finding.verdict,
    )
