"""A plan in simulation, and what a property test asserts of it.

``assert_valid`` fails when a property is broken. That a property observed nothing is no failure (a run of seconds often
truncates no log); it is told to Hypothesis as an event, so that ``--hypothesis-show-statistics`` shows how often. A run
that decides less than it should, because a fault had no effect or the history is not whole, is neither: inside a
Hypothesis test the example is rejected, elsewhere the assertion fails.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import hypothesis
import msgspec
import yaml
from hypothesis import HealthCheck, Phase, settings

from nemesis.checkers.framework.model import Outcome, Verdict
from nemesis.faults import plan as plans
from nemesis.faults.plan import Plan
from nemesis.history.run_directory import RunDirectory
from nemesis.running.mutant_choice import mutant_of_argument
from nemesis.running.simulated.specification import SimulationSpec
from nemesis.scenarios import scenario as scenarios
from nemesis.scenarios.scenario import Scenario
from nemesis.searching.explore.seed import doubts
from nemesis.searching.shrink.passes import shortest_s
from nemesis.searching.simulate import SimulationResult, simulate, store_result
from nemesis.support.runtime_names import SIMULATION
from nemesis.testing.strategies import Turns

MAX_FINDINGS: Final = 5


@dataclass(frozen=True, slots=True, repr=False)
class PlanRun:
    """A run, and what decided it."""

    spec: SimulationSpec
    simulated: SimulationResult

    def __repr__(self) -> str:
        spec = self.spec
        return f"<{self.outcome.verdict.value} run of {len(spec.plan)} faults, seed {spec.seed}>"

    @property
    def outcome(self) -> Outcome:
        return self.simulated.outcome

    def store(self, directory: Path) -> RunDirectory:
        """Make a run directory below ``directory``, for ``nemesis replay`` and ``nemesis shrink``; raises OSError."""
        return store_result(self.simulated, self.spec, directory, ["nemesis.testing"])


def simulate_plan(
    plan: Plan,
    scenario: str | Scenario = "partition-controller",
    *,
    seed: int = 0,
    time_limit_s: float | None = None,
    turns: Turns | None = None,
    max_operations: int | None = None,
    options: Mapping[str, Any] | None = None,
    mutant: str | None = None,
    checkers: Sequence[str] | None = None,
) -> PlanRun:
    """Run a plan on virtual time, and check it; blocks, some seconds at most.

    ``mutant`` is the name of a planted bug, or a file ``FILE.py`` that holds one.
    ``time_limit_s``: as short as the plan allows by default. ``options`` are laid over those of the scenario's
    workload. Raises ``UsageError`` for what cannot be, ``HarnessError`` when the harness fails.
    """
    chosen = scenarios.load(scenario) if isinstance(scenario, str) else scenario
    chosen = _with_options(chosen, options or {})
    chosen = scenarios.override(
        chosen,
        runtime=SIMULATION,
        time_limit_s=math.ceil(shortest_s(chosen, plan)) if time_limit_s is None else time_limit_s,
    )
    plans.check(plan, nodes=chosen.nodes, end_s=chosen.faults_end_s)
    turns = turns or Turns()
    spec = SimulationSpec(
        scenario=chosen,
        seed=seed,
        plan=plan,
        mutant=mutant_of_argument(mutant),
        checkers=None if checkers is None else tuple(checkers),
        deviation_rate=turns.deviation_rate,
        deviate_until_s=turns.deviate_until_s,
        max_operations=max_operations,
        redraws=False,
    )
    return PlanRun(spec, simulate(spec))


def assert_valid(run: PlanRun) -> None:
    """Raise AssertionError, with the findings and the plan, when a property is broken. See the module."""
    __tracebackhide__ = True  # pytest shows the test instead
    findings = run.outcome.broken()
    if findings:
        said = [
            f"{finding.property}: {finding.key}: {finding.sentence}"
            for finding in findings[:MAX_FINDINGS]
        ]
        raise AssertionError("\n".join([*said, *_about(run)]))
    inside = hypothesis.currently_in_test_context()
    if inside:
        for result in run.outcome.results:
            if result.verdict is Verdict.UNKNOWN and not result.checked:
                hypothesis.event(f"observed nothing: {result.property}")
    if doubted := doubts(run.outcome):
        if inside:
            hypothesis.event(f"undecided: {doubted[0]}")
            hypothesis.reject()
        raise AssertionError("\n".join(["the run decides nothing:", *doubted, *_about(run)]))


def simulation_settings(max_examples: int = 20, **others: Any) -> settings:
    """Return Hypothesis settings for tests whose examples take seconds: no deadline, few examples, no explanation.

    Hypothesis's explanations (which lines only failing examples run) cost many runs and say nothing about a cluster.
    """
    chosen = {
        "deadline": None,
        "suppress_health_check": [HealthCheck.too_slow, HealthCheck.data_too_large],
        "phases": [phase for phase in Phase if phase is not Phase.explain],
        **others,
    }
    return settings(max_examples=max_examples, **chosen)


def _with_options(scenario: Scenario, options: Mapping[str, Any]) -> Scenario:
    workload = scenario.workload
    both = msgspec.structs.replace(workload, options={**workload.options, **options})
    return msgspec.structs.replace(scenario, workload=both)


def _about(run: PlanRun) -> list[str]:
    """The run as a person would write it down."""
    spec = run.spec
    plan = yaml.safe_dump(plans.encode(spec.plan), sort_keys=False).rstrip()
    return [f"seed {spec.seed}, {spec.scenario.time_limit_s:g} s, with the plan:", plan]
