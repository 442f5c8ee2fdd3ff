"""What findings are explained with: whole events, the faults in force, the cause, and the steps of the proof."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from nemesis.checkers import znodes
from nemesis.checkers.causes.surroundings import Wanted, surroundings
from nemesis.checkers.explain import case_of, explain
from nemesis.checkers.explain.sessions import names_session, with_brokers
from nemesis.checkers.faults_in_force import FaultsInForce
from nemesis.checkers.framework.fold import WORST_FIRST
from nemesis.checkers.framework.model import Finding, Result, Verdict
from nemesis.checkers.framework.property import Property
from nemesis.checkers.framework.segment import PROOF_ROW, Segment
from nemesis.history.reader import History

if TYPE_CHECKING:
    from pyspark import SparkContext


class NamedCause(NamedTuple):
    """The sentences that name the cause of a finding, and the whole events that they are about."""

    sentences: tuple[str, ...] = ()
    events: tuple[dict[str, Any], ...] = ()


_NO_CAUSE: Final = NamedCause()


def explained(
    history: History,
    results: list[Result],
    decided: Mapping[str, Property],
    spark: SparkContext | None,
) -> list[Result]:
    """Replace row numbers by whole events, and add the faults in force and the steps of the proof."""
    findings = [finding for result in results for finding in (*result.findings, *_unlisted(result))]
    events = history.rows(_rows_of(event for finding in findings for event in finding.events))
    faults = FaultsInForce.of(history)

    def completed(finding: Finding) -> Finding:
        proof = tuple(events.get(event.get(PROOF_ROW, -1), event) for event in finding.events)
        in_force = finding.faults or faults.during(proof)
        return msgspec.structs.replace(finding, events=proof, faults=in_force)

    complete = [tuple(map(completed, result.findings)) for result in results]
    causes = _causes(history, [finding for each in complete for finding in each], decided, spark)

    def completed_with_steps(finding: Finding) -> Finding:
        property_of_finding = decided.get(finding.property)
        cause = causes.get(id(finding), _NO_CAUSE)
        steps = explain(finding, property_of_finding, cause.sentences)
        return msgspec.structs.replace(finding, causes=cause.events, steps=steps)

    return [
        msgspec.structs.replace(
            result,
            findings=_by_time(each),
            unlisted=tuple(map(completed, _unlisted(result))) or msgspec.UNSET,
        )
        for result, each in zip(
            results,
            _name_owners(history, [list(map(completed_with_steps, each)) for each in complete]),
            strict=True,
        )
    ]


def _name_owners(history: History, results: list[list[Finding]]) -> list[list[Finding]]:
    """Return the findings with the brokers of the sessions in their steps."""
    if not any(names_session(finding.steps) for findings in results for finding in findings):
        return results
    owners = znodes.session_owners(
        row
        for group in history.row_groups
        for row in Segment.of(group, znodes.OWNER_COLUMNS).only(znodes.OWNER_KINDS).events()
    )
    return [
        [
            msgspec.structs.replace(finding, steps=with_brokers(finding.steps, owners))
            for finding in findings
        ]
        for findings in results
    ]


def _unlisted(result: Result) -> tuple[Finding, ...]:
    return () if isinstance(result.unlisted, msgspec.UnsetType) else result.unlisted


def _causes(
    history: History,
    findings: Sequence[Finding],
    decided: Mapping[str, Property],
    spark: SparkContext | None,
) -> dict[int, NamedCause]:
    """Return the causes by the identity of their findings; only violations of properties that name one have one."""
    sought = [
        (finding, seek)
        for finding in findings
        if finding.verdict is Verdict.INVALID
        and finding.property in decided
        and (seek := decided[finding.property].cause) is not None
    ]
    if not sought:
        return {}
    cases = [(case_of(finding), seek) for finding, seek in sought]
    rows = surroundings(history.row_groups, Wanted.of(case for case, _ in cases), spark)
    causes = [seek(case, rows) for case, seek in cases]
    events = history.rows({row for cause in causes for row in cause.rows})
    return {
        id(finding): NamedCause(cause.sentences, tuple(events[row] for row in cause.rows))
        for (finding, _), cause in zip(sought, causes, strict=True)
    }


def _rows_of(events: Iterable[Mapping[str, Any]]) -> set[int]:
    return {event[PROOF_ROW] for event in events if PROOF_ROW in event}


def _by_time(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Of each verdict the finding that was proved first comes first; one that only ZooKeeper proves has no time, and
    leads.
    """

    def proved(finding: Finding) -> tuple[int, int]:
        rank = WORST_FIRST.index(finding.verdict)
        return rank, max((event.get("time", -1) for event in finding.events), default=-1)

    return tuple(sorted(findings, key=proved))
