"""What decides a simulated run: the same specification gives the same events in the same order, in any process."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from nemesis.faults.plan import Plan
from nemesis.mutants.chosen import ChosenMutant
from nemesis.scenarios.scenario import Scenario

DEVIATION_RATE: Final = 0.02
"""Of a process's turns, how many are late (``nemesis.simulation.loop``). At 0 signals too meet processes that wait."""


@dataclass(frozen=True, kw_only=True)
class SimulationSpec:
    """Everything that decides a simulated run; can be sent to another process."""

    scenario: Scenario
    seed: int
    plan: Plan
    mutant: ChosenMutant | None = None
    checkers: tuple[str, ...] | None = None
    deviation_rate: float = DEVIATION_RATE
    deviate_until_s: float = math.inf
    """Virtual seconds from the start of the run; later turns are first in, first out."""
    max_operations: int | None = None
    """Of the workload's client processes, in the order in which they are due."""
    operations: frozenset[str] | None = None
    """Those steps of client processes that issue an operation, as ``producer-1/17``; all when None."""
    redraws: bool = True
    """Whether another fault takes the place of one whose target was not there; without, only the plan's strike."""
    real_codec: bool = False
