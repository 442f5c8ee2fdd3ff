"""Checking a history: run the checks, combine their verdicts, and explain each finding.

The engine returns findings that hold row numbers. ``check`` replaces the numbers by whole events and adds the faults
that were in force and the steps of the proof.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import msgspec

from nemesis.checkers.explain import explain
from nemesis.checkers.faults_in_force import FaultsInForce
from nemesis.checkers.framework.engine import Engine, run_checks
from nemesis.checkers.framework.fold import WORST_FIRST
from nemesis.checkers.framework.model import Finding, Outcome, Result, Verdict, combine
from nemesis.checkers.framework.property import Check, Property
from nemesis.checkers.framework.segment import PROOF_ROW
from nemesis.history.reader import History, open_history
from nemesis.history.spark import context


def check(
    history: Path | History,
    checkers: Sequence[Check],
    *,
    engine: Engine = "inline",
    spark_master: str | None = None,
) -> Outcome:
    """Return what the checks make of a history (``history/`` of a run, or one already opened).

    Raises HistoryError when the history cannot be used. Whatever is wrong with its sources, short
    of that, is in ``Outcome.problems`` and makes the verdict ``unknown`` unless it is ``invalid``.
    """
    started = time.monotonic()
    opened = history if isinstance(history, History) else open_history(history)
    spark = context(spark_master) if engine == "spark" else None
    decided = {declared.name: declared for checker in checkers for declared in checker.properties()}
    results = _explain(opened, run_checks(opened.row_groups, checkers, spark), decided)
    verdicts = [result.verdict for result in results]
    verdicts += [Verdict.UNKNOWN] * len(opened.problems)
    return Outcome(
        verdict=combine(verdicts),
        results=tuple(results),
        events=opened.events,
        engine=engine,
        seconds=time.monotonic() - started,
        problems=opened.problems,
    )


def _explain(
    history: History, results: list[Result], decided: Mapping[str, Property]
) -> list[Result]:
    """Replace row numbers by whole events, and add the faults in force and the steps of the proof."""
    rows = {
        event[PROOF_ROW]
        for result in results
        for finding in result.findings
        for event in finding.events
        if PROOF_ROW in event
    }
    if not any(result.findings for result in results):
        return results
    events = history.rows(rows)
    faults = FaultsInForce.of(history)

    def explained(finding: Finding) -> Finding:
        proof = tuple(events.get(event.get(PROOF_ROW, -1), event) for event in finding.events)
        in_force = finding.faults or faults.during(proof)
        complete = msgspec.structs.replace(finding, events=proof, faults=in_force)
        return msgspec.structs.replace(
            complete, steps=explain(complete, decided.get(finding.property))
        )

    return [
        msgspec.structs.replace(result, findings=_by_time(map(explained, result.findings)))
        for result in results
    ]


def _by_time(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Of each verdict the finding that was proved first comes first; one that only ZooKeeper proves has no time, and
    leads.
    """

    def proved(finding: Finding) -> tuple[int, int]:
        rank = WORST_FIRST.index(finding.verdict)
        return rank, max((event.get("time", -1) for event in finding.events), default=-1)

    return tuple(sorted(findings, key=proved))
