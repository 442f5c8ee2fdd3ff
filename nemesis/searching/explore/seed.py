"""One seed: simulate it, look at what came of it, keep the run when it shows something.

``run_seed`` is the work of a pool's worker. It returns a small report; the events stay in the worker, and go to the
store only when a property was broken, or the run is in doubt, and not enough such runs are kept yet.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import msgspec

from nemesis.checkers.faults import FAULT_EFFECT
from nemesis.checkers.framework.model import Finding, Outcome, Verdict
from nemesis.history.errors import HistoryError
from nemesis.history.events import Event, Kind
from nemesis.mutants.reach import ReachCounts
from nemesis.running.simulated.specification import SimulationSpec
from nemesis.searching.explore.coverage import measure
from nemesis.searching.explore.coverage_counts import Coverage
from nemesis.searching.explore.features import with_features
from nemesis.searching.simulate import simulate, store_result

NONE_KEPT = "it is broken, but its first findings are all of what is allowed"
MAX_NODE_ERRORS = 3


@dataclass(frozen=True, slots=True)
class SeedTask:
    """What a worker is told. Pickled to it."""

    spec: SimulationSpec
    store: Path
    command_line: tuple[str, ...]
    satisfied: frozenset[str] = frozenset()
    """Properties of which enough runs are kept already."""
    keeps_doubtful: bool = False
    """Whether to keep the run when nothing was broken but it is in doubt."""
    kinds: tuple[str, ...] = ()
    """The scenario's kinds of faults; the seed may have left some out."""
    guided_number: int | None = None
    """The number of the run in a guided exploration, where several runs may have one seed; None: it is not guided."""

    @property
    def seed(self) -> int:
        """What reports call the run."""
        return self.spec.seed if self.guided_number is None else self.guided_number


class SeedFinding(msgspec.Struct, frozen=True, kw_only=True):
    """The first finding of a broken property."""

    property: str
    key: str
    sentence: str


class FaultCount(msgspec.Struct, frozen=True, kw_only=True):
    """How many faults of one kind were due, and how many of them were skipped."""

    due: int
    skipped: int

    def __add__(self, other: FaultCount) -> FaultCount:
        return FaultCount(due=self.due + other.due, skipped=self.skipped + other.skipped)


class SeedReport(msgspec.Struct, frozen=True, kw_only=True):
    """What came of a seed."""

    seed: int
    verdict: Verdict
    checked: dict[str, int]
    """On how much each property was evaluated; 0: it observed nothing."""
    findings: tuple[SeedFinding, ...]
    """One for each broken property, in the order of reports."""
    doubts: tuple[str, ...]
    """Why the run decides less than it should. Properties that observed nothing and skipped faults are not among them:
    other seeds observe the property and carry the kind of fault out."""
    faults: dict[str, FaultCount] = {}
    """By kind of fault."""
    trace_hash: str
    events: int
    deviations: int
    virtual_s: float
    real_s: float
    coverage: Coverage
    reach: ReachCounts | None = None
    """Of the planted bug; None: there was none."""
    run: str | None = None
    """Where the run is kept."""
    not_kept: str | None = None
    """Why it could not be kept though it shows something."""


def run_seed(task: SeedTask) -> SeedReport:
    """Simulate, judge, and keep what is worth it. Whatever it raises is a crash of the harness."""
    simulated = simulate(task.spec)
    findings = broken(simulated.outcome)
    run, not_kept = None, None
    outcome = simulated.outcome
    coverage = measure(simulated.events, task.kinds)
    if task.guided_number is not None:
        coverage = with_features(coverage, simulated.events)
    doubtful = (*doubts(outcome, are_skips_doubts=False), *simulated.node_errors[:MAX_NODE_ERRORS])
    shows_something = any(finding.property not in task.satisfied for finding in findings)
    if shows_something or (doubtful and task.keeps_doubtful):
        try:
            run = str(store_result(simulated, task.spec, task.store, task.command_line).path)
        except (OSError, HistoryError) as error:
            not_kept = str(error)  # a finding is worth more than its files
    return SeedReport(
        seed=task.seed,
        verdict=outcome.verdict,
        checked={result.property: result.checked for result in outcome.results},
        findings=findings,
        doubts=doubtful,
        faults=count_faults(simulated.events),
        trace_hash=simulated.trace_hash,
        events=len(simulated.events),
        deviations=simulated.deviations,
        virtual_s=simulated.virtual_s,
        real_s=simulated.real_s,
        coverage=coverage,
        reach=simulated.reach,
        run=run,
        not_kept=not_kept,
    )


def broken(outcome: Outcome) -> tuple[SeedFinding, ...]:
    """Return the first finding of each property that is ``invalid``."""
    firsts = {finding.property: finding for finding in reversed(outcome.broken())}
    findings = []
    for result in outcome.results:
        name, first = result.property, firsts.get(result.property)
        if first is not None:
            findings.append(SeedFinding(property=name, key=first.key, sentence=first.sentence))
        elif result.verdict is Verdict.INVALID:
            findings.append(SeedFinding(property=name, key="?", sentence=NONE_KEPT))
    return tuple(findings)


def doubts(outcome: Outcome, *, are_skips_doubts: bool = True) -> tuple[str, ...]:
    """Return what is wrong with the history, and what kept a property from being decided.

    ``are_skips_doubts``: whether skipped faults are among the reasons.
    """
    undecided = [
        finding
        for result in outcome.results
        for finding in result.findings
        if finding.verdict is Verdict.UNKNOWN
    ]
    counted = [finding for finding in undecided if are_skips_doubts or not _is_skip(finding)]
    reasons = (
        *outcome.problems,
        *(f"{finding.property}: {finding.key}: {finding.sentence}" for finding in counted),
    )
    is_blind = any(not result.checked for result in outcome.results)
    if reasons or undecided or is_blind or outcome.verdict is not Verdict.UNKNOWN:
        return reasons
    return ("the verdict is unknown, and no finding says why",)


def _is_skip(finding: Finding) -> bool:
    """Whether the finding is about faults that were skipped: nothing was broken, so less was tested."""
    kinds = {event["kind"] for event in finding.events}
    return finding.property == FAULT_EFFECT.name and kinds == {Kind.FAULT_SKIPPED}


def count_faults(events: Iterable[Event]) -> dict[str, FaultCount]:
    """Count the faults that were applied or skipped, by kind."""
    counts: dict[str, FaultCount] = {}
    for event in events:
        if event.kind in (Kind.FAULT_APPLIED, Kind.FAULT_SKIPPED) and event.fault is not None:
            count = FaultCount(due=1, skipped=int(event.kind == Kind.FAULT_SKIPPED))
            counts[event.fault] = counts.get(event.fault, FaultCount(due=0, skipped=0)) + count
    return counts
