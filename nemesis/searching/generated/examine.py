"""One mutant: it runs under scenarios and seeds that reach the changed code until something finds it. Those that
execute most of the module come first.

``examine`` is a generator. It yields what has to be done and receives the result, so that the caller decides where and
when, and no process is needed to test it.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Final

from nemesis.mutants.generated.mutation import Mutation
from nemesis.searching.generated.children import Ended
from nemesis.searching.generated.results import MutantRecord, Status, TrialRecord
from nemesis.searching.generated.trial import BaselineReport, Flags, Pair, TrialReport
from nemesis.support.errors import HarnessError

ENOUGH_BAD_RUNS: Final = 3
"""After this many runs that crashed, a further one would say the same."""


@dataclass(frozen=True, slots=True)
class BaselineTask:
    """The unmodified reference is to be run, or looked up."""

    pair: Pair


@dataclass(frozen=True, slots=True, eq=False)
class TrialTask:
    """The mutant is to be run. ``flags`` tell what it had reached when its process had to be ended."""

    mutation: Mutation
    pair: Pair
    flags: Flags


Task = BaselineTask | TrialTask
Examination = Generator[Task, "BaselineReport | Ended[TrialReport]", MutantRecord]


def examine(
    mutation: Mutation, scenarios: Sequence[str], *, first_seed: int, runs: int
) -> Examination:
    """Yield tasks until enough is known, and return it. At most ``runs`` runs, on as many seeds as that takes.

    A round is one seed on every scenario whose unmodified run executes the changed code. Those come first that execute
    most of the mutated module: most runs of a draw are the first ones of a survivor, and few scenarios use all of it.
    """
    trials: list[TrialRecord] = []
    rounds = ceil(runs / len(scenarios))
    for seed in range(first_seed, first_seed + rounds):
        baselines: list[BaselineReport] = []
        for scenario in scenarios:
            baseline = yield BaselineTask(Pair(scenario, seed))
            assert isinstance(baseline, BaselineReport)
            if baseline.covers(mutation):
                baselines.append(baseline)
        for baseline in sorted(baselines, key=lambda b: b.rank(mutation)):
            flags = Flags()
            ended = yield TrialTask(mutation, baseline.pair, flags)
            assert isinstance(ended, Ended)
            trials.append(_judged(mutation, baseline, ended, flags))
            flags.close()
            if _is_enough(trials, runs):
                return _record(mutation, trials)
    return _record(mutation, trials)


def _judged(
    mutation: Mutation, baseline: BaselineReport, ended: Ended[TrialReport], flags: Flags
) -> TrialRecord:
    report = ended.result or TrialReport(
        reached=int(flags.is_reached),
        effective=int(flags.is_effective),
        trace_hash=None,
        properties=(),
        error=ended.error,
        has_failed=True,
    )
    outcome = outcome_of(report, baseline, is_hung=ended.is_hung)
    if outcome in {Status.NO_EFFECT, Status.NOT_REACHED} and report.properties:
        raise HarnessError(
            f"{mutation.name} on {baseline.pair}: expected no finding of a run that equals the reference's, got "
            f"{report.sentence}"
        )
    return TrialRecord(
        scenario=baseline.pair.scenario, seed=baseline.pair.seed, outcome=outcome, report=report
    )


def outcome_of(report: TrialReport, baseline: BaselineReport, *, is_hung: bool) -> Status:
    """Return what a run shows. A trace that differs from the reference's is an effect that the probe did not see."""
    if is_hung:
        return Status.HUNG
    if report.has_failed:
        return Status.FAILED
    if not report.effective and report.trace_hash == baseline.trace_hash:
        return Status.NO_EFFECT if report.reached else Status.NOT_REACHED
    if report.properties:
        return Status.KILLED
    return Status.CRASHED if report.node_errors else Status.SURVIVED


def _is_enough(trials: Sequence[TrialRecord], runs: int) -> bool:
    outcomes = [trial.outcome for trial in trials]
    bad = sum(outcome in {Status.CRASHED, Status.FAILED} for outcome in outcomes)
    return (
        Status.KILLED in outcomes
        or Status.HUNG in outcomes
        or bad >= ENOUGH_BAD_RUNS
        or len(outcomes) >= runs
    )


def _record(mutation: Mutation, trials: Sequence[TrialRecord]) -> MutantRecord:
    return MutantRecord(
        name=mutation.name,
        operator=mutation.operator,
        module=mutation.module,
        original=mutation.change.original,
        mutant=mutation.change.mutant,
        status=status_of([trial.outcome for trial in trials]),
        runs=tuple(trials),
    )


def status_of(outcomes: Sequence[Status]) -> Status:
    """Return what all runs of a mutant show together: a finding beats everything, a crash beats a quiet run."""
    sequence = (
        Status.KILLED, Status.HUNG, Status.FAILED, Status.CRASHED, Status.SURVIVED, Status.NO_EFFECT,
    )  # fmt: skip
    return next((status for status in sequence if status in outcomes), Status.NOT_REACHED)
