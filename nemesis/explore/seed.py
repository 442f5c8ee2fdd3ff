"""One seed: simulate it, look at what came of it, keep the run when it shows something.

``run_seed`` is the work of a pool's worker. It returns a small report; the events stay in the worker, and go to the
store only when a property was broken of which not enough runs are kept yet.

A seed can be run a second time with the real codec. Schedules do not depend on the codec, so both must give the
same trace and the same verdict; a difference is a fault of the simulator, and makes everything else that it said
doubtful.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from checkers.model import Outcome, Verdict
from history.errors import HistoryError
from nemesis.explore.coverage import Coverage, measure
from nemesis.simulation.order import SimulationOrder
from nemesis.simulation.run import Simulated, simulate, store, trace_hash
from nemesis.simulation.trace_hash import first_difference

MAX_NODE_ERRORS = 3


@dataclass(frozen=True, slots=True)
class SeedTask:
    """What a worker is told. Pickled to it."""

    order: SimulationOrder
    store: Path
    command_line: tuple[str, ...]
    satisfied: frozenset[str] = frozenset()
    """Properties of which enough runs are kept already."""
    compares_codecs: bool = False

    @property
    def seed(self) -> int:
        return self.order.seed


class SeedFinding(msgspec.Struct, frozen=True, kw_only=True):
    """The first finding of a broken property."""

    property: str
    key: str
    sentence: str


class SeedReport(msgspec.Struct, frozen=True, kw_only=True):
    """What came of a seed."""

    seed: int
    verdict: Verdict
    checked: dict[str, int]
    """On how much each property was evaluated; 0: it observed nothing."""
    findings: tuple[SeedFinding, ...]
    """One for each broken property, in the order of reports."""
    doubts: tuple[str, ...]
    """Why the run decides less than it should. That a property observed nothing is not among them: other seeds do."""
    trace_hash: str
    events: int
    deviations: int
    virtual_s: float
    real_s: float
    coverage: Coverage
    run: str | None = None
    """Where the run is kept."""
    not_kept: str | None = None
    """Why it could not be kept though it shows something."""
    codec_mismatch: str | None = None
    """How the run with the real codec differed."""
    compared_codecs: bool = False


def run_seed(task: SeedTask) -> SeedReport:
    """Simulate, judge, and keep what is worth it. Whatever it raises is a crash of the harness."""
    simulated = simulate(task.order)
    findings = broken(simulated.outcome)
    run, not_kept = None, None
    if any(finding.property not in task.satisfied for finding in findings):
        try:
            run = str(store(simulated, task.order, task.store, task.command_line).path)
        except (OSError, HistoryError) as error:
            not_kept = str(error)  # a finding is worth more than its files
    mismatch = _compare_codecs(task.order, simulated) if task.compares_codecs else None
    outcome = simulated.outcome
    return SeedReport(
        seed=task.seed,
        verdict=outcome.verdict,
        checked={result.property: result.checked for result in outcome.results},
        findings=findings,
        doubts=(*doubts(outcome), *simulated.node_errors[:MAX_NODE_ERRORS]),
        trace_hash=simulated.trace_hash,
        events=len(simulated.events),
        deviations=simulated.deviations,
        virtual_s=simulated.virtual_s,
        real_s=simulated.real_s,
        coverage=measure(simulated.events),
        run=run,
        not_kept=not_kept,
        codec_mismatch=mismatch,
        compared_codecs=task.compares_codecs,
    )


def broken(outcome: Outcome) -> tuple[SeedFinding, ...]:
    """Return the first finding of each property that is ``invalid``."""
    firsts = [
        next(finding for finding in result.findings if finding.verdict is Verdict.INVALID)
        for result in outcome.results
        if result.verdict is Verdict.INVALID
    ]
    return tuple(
        SeedFinding(property=first.property, key=first.key, sentence=first.sentence)
        for first in firsts
    )


def doubts(outcome: Outcome) -> tuple[str, ...]:
    """Return what is wrong with the history, and what kept a property from being decided."""
    undecided = [
        f"{result.property}: {finding.key}: {finding.sentence}"
        for result in outcome.results
        for finding in result.findings
        if finding.verdict is Verdict.UNKNOWN
    ]
    return (*outcome.problems, *undecided)


def _compare_codecs(order: SimulationOrder, by_reference: Simulated) -> str | None:
    """Return how the run with the real codec differs; how many bytes a fault held does depend on the codec."""
    real = simulate(replace(order, real_codec=True))
    hashes = [trace_hash(run.entries, with_sizes=False) for run in (by_reference, real)]
    if hashes[0] != hashes[1]:
        where = " ".join(str(first_difference(by_reference.events, real.events)).split())
        return f"the trace has another hash than by reference: {where}"
    verdicts = [run.outcome.verdict.value for run in (by_reference, real)]
    if verdicts[0] != verdicts[1]:
        return f"the verdict is {verdicts[1]}, by reference it is {verdicts[0]}"
    return None
