"""A simulated run with a planted bug, to be shrunk."""

from __future__ import annotations

from functools import cache

from nemesis.faults.partition import Partition
from nemesis.faults.plan import PlannedFault
from nemesis.faults.session import ExpireSession
from nemesis.mutants.chosen import ChosenMutant
from nemesis.running.simulated.specification import SimulationSpec
from nemesis.scenarios import scenario
from nemesis.searching.simulate import SimulationResult, simulate

MUTANT = "no-controller-epoch-check"


PLAN = (
    PlannedFault(0.0, Partition(shape="one-way", selector="controller", duration_s=2.5)),
    PlannedFault(2.0, ExpireSession(selector="controller")),
    PlannedFault(7.0, ExpireSession(selector="bystander")),
)
"""The requests that were held during the partition arrive after its end; the last fault has nothing to do with it."""


def spec(mutant: str | None) -> SimulationSpec:
    chosen = scenario.override(
        scenario.load("partition-controller"), runtime="simulation", time_limit_s=15.0
    )
    planted = None if mutant is None else ChosenMutant(mutant)
    return SimulationSpec(scenario=chosen, seed=1, plan=PLAN, mutant=planted)


@cache
def begun() -> SimulationResult:
    """The run that is made smaller."""
    return simulate(spec(MUTANT))
