"""A bench on which a predicate decides what counts, instead of a simulation: for tests of the search alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from nemesis.checkers.framework.model import Finding, Verdict
from nemesis.faults.base import Fault
from nemesis.faults.plan import PlannedFault
from nemesis.running.simulated.specification import SimulationSpec
from nemesis.scenarios import scenario
from nemesis.searching.shrink.trials import Answer, Budget, Evidence, Failure, Trial, Trials

FINDING = Finding(
    property="hw-bounded",
    verdict=Verdict.INVALID,
    key="orders-0",
    sentence="…",
    events=({"kind": "high-watermark", "time": 9},),
)
OPERATIONS = tuple(f"producer-{index % 4}/{index // 4}" for index in range(100))


def spec(*faults: tuple[float, Fault], seed: int = 7, time_limit_s: float = 60.0) -> SimulationSpec:
    chosen = scenario.override(
        scenario.load("partition-controller"), runtime="simulation", time_limit_s=time_limit_s
    )
    plan = tuple(PlannedFault(at_s, fault) for at_s, fault in faults)
    return SimulationSpec(scenario=chosen, seed=seed, plan=plan)


def evidence(of: SimulationSpec, late: frozenset[int] = frozenset()) -> Evidence:
    issued = tuple(item for item in OPERATIONS if of.operations is None or item in of.operations)
    until_s = min(of.deviate_until_s, of.scenario.time_limit_s)
    return Evidence(
        finding=FINDING,
        trace_hash="…",
        issued=issued,
        deviations=round(until_s * of.deviation_rate * 100),
        late=late,
        virtual_s=of.scenario.time_limit_s,
    )


class SyntheticBench:
    """Counts what it runs."""

    def __init__(
        self,
        counts: Callable[[SimulationSpec], bool],
        width: int = 1,
        fails: Callable[[SimulationSpec], bool] = lambda _: False,
    ) -> None:
        self.width = width
        self.tried: list[SimulationSpec] = []
        self._counts = counts
        self._fails = fails

    def run(self, trials: Sequence[Trial]) -> list[Answer]:
        assert len(trials) <= self.width
        self.tried += [trial.spec for trial in trials]
        return [self._answer(trial.spec) for trial in trials]

    def _answer(self, simulation_spec: SimulationSpec) -> Answer:
        if self._fails(simulation_spec):
            return Failure("DeadlockError: nothing can run")
        return evidence(simulation_spec) if self._counts(simulation_spec) else None


def trials(
    begun: SimulationSpec,
    counts: Callable[[SimulationSpec], bool],
    *,
    width: int = 1,
    fails: Callable[[SimulationSpec], bool] = lambda _: False,
    budget: Budget | None = None,
    late: frozenset[int] = frozenset(),
    clock: Callable[[], float] = lambda: 0.0,
) -> tuple[Trials, SyntheticBench]:
    bench = SyntheticBench(counts, width, fails)
    budget = budget or Budget(runs=10_000)
    return Trials(begun, evidence(begun, late), bench=bench, budget=budget, clock=clock), bench
