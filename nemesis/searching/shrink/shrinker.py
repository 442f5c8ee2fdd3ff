"""The passes, in their order, until nothing gets smaller or the budget is spent.

A fault weighs more than an operation, an operation more than a second, a second more than a deviation; so each pass may
make what a later one counts larger, never what an earlier one counts: sizes are compared from left to right. The time
limit is lowered as soon as it can be, because every run after that costs less.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from nemesis.running.simulated.specification import SimulationSpec
from nemesis.searching.explore.pool import Pool
from nemesis.searching.shrink import passes
from nemesis.searching.shrink.signature import Signature, choose
from nemesis.searching.shrink.trials import (
    Answer,
    Bench,
    Budget,
    BudgetSpent,
    Evidence,
    InProcessBench,
    PoolBench,
    Size,
    Trial,
    Trials,
    attempt,
    evidence_of,
)
from nemesis.searching.simulate import SimulationResult, simulate
from nemesis.support.errors import HarnessError

MAX_ROUNDS: Final = 4
TRIAL_LIMIT_S: Final = 300.0
"""Of wall-clock time for one candidate."""
INTERRUPT: Final = "an interrupt"

PASSES: Final[tuple[tuple[str, Callable[[Trials], None]], ...]] = (
    ("no other faults", passes.no_other_faults),
    ("fewer faults", passes.fewer_faults),
    ("earlier faults", passes.earlier_faults),
    ("shorter time", passes.shorter_time),
    ("simpler faults", passes.simpler_faults),
    ("shorter time", passes.shorter_time),
    ("fewer operations", passes.fewer_operations),
    ("shorter time", passes.shorter_time),
    ("fewer deviations", passes.fewer_deviations),
)


@dataclass(frozen=True, kw_only=True)
class Shrunk:
    """What became of a run."""

    spec: SimulationSpec
    simulated: SimulationResult
    evidence: Evidence
    before: Size
    after: Size
    runs: int
    """How many candidates were run."""
    failures: tuple[str, ...]
    """Why some of them did not come to their end; they did not count."""
    seconds: float
    """Wall-clock."""
    stopped_by: str | None
    """What ended the search, a limit or ``INTERRUPT``; None: it was done."""
    is_smaller: bool
    """False: nothing could be left out or made plainer, and ``simulated`` is the run as it was."""


def shrink(
    spec: SimulationSpec,
    *,
    name: str | None = None,
    budget: Budget | None = None,
    jobs: int | None = None,
    show: Callable[[Trials], None] = lambda _: None,
) -> Shrunk:
    """Return the smallest run that was found to show the finding of ``spec``; blocks.

    ``name``: the property to keep broken; the first broken one otherwise. ``jobs``: how many workers try candidates,
    each for a bounded time and memory; without it they are tried in this process. Depends on ``spec`` and
    ``budget.runs`` alone, not on ``jobs``, unless time or memory runs out. Raises ``UsageError`` when the run
    shows nothing to shrink, ``HarnessError`` when the result does not replay.
    """
    begun = simulate(spec)
    finding = choose(begun.outcome, name)
    evidence = evidence_of(begun, Signature.of(finding))
    assert evidence is not None
    budget = budget or Budget()
    if jobs is None:
        return _search(spec, begun, evidence, InProcessBench(), budget, show)
    with Pool[Trial, Answer](attempt, jobs=jobs, limit_s=TRIAL_LIMIT_S) as pool:
        return _search(spec, begun, evidence, PoolBench(pool, jobs), budget, show)


def _search(
    spec: SimulationSpec,
    begun: SimulationResult,
    evidence: Evidence,
    bench: Bench,
    budget: Budget,
    show: Callable[[Trials], None],
) -> Shrunk:
    # Candidates are judged by the one property alone, which changes nothing but the time that it takes.
    alone = replace(spec, checkers=(evidence.finding.property,))
    trials = Trials(alone, evidence, bench=bench, budget=budget, show=show)
    before, stopped_by = trials.size, None
    try:
        minimise(trials)
    except BudgetSpent as spent:
        stopped_by = str(spent)
    except KeyboardInterrupt:
        stopped_by = INTERRUPT
    smallest = replace(trials.spec, checkers=spec.checkers)
    # That nothing takes the place of a skipped fault makes a run no smaller.
    is_smaller = replace(smallest, redraws=spec.redraws) != spec
    return Shrunk(
        spec=smallest if is_smaller else spec,
        simulated=_replayed(smallest, trials.evidence) if is_smaller else begun,
        evidence=trials.evidence,
        before=before,
        after=trials.size,
        runs=trials.runs,
        failures=tuple(trials.failures),
        seconds=trials.elapsed_s,
        stopped_by=stopped_by,
        is_smaller=is_smaller,
    )


def minimise(trials: Trials) -> None:
    """Make the passes until none betters anything; raises ``BudgetSpent``."""
    for _ in range(MAX_ROUNDS):
        begun = trials.spec
        for trials.step, better in PASSES:
            better(trials)
        if trials.spec is begun:
            return


def _replayed(spec: SimulationSpec, evidence: Evidence) -> SimulationResult:
    """Run the result once more, from its specification alone; raises ``HarnessError`` unless it is the same run."""
    simulated = simulate(spec)
    if simulated.trace_hash != evidence.trace_hash:
        raise HarnessError(
            f"the shrunk run does not replay: its hash was {evidence.trace_hash} "
            f"and is {simulated.trace_hash} now"
        )
    return simulated
