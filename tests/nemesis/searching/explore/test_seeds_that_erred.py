"""Seeds of the unmodified reference that were in doubt or convicted once, by a fault of the harness or of a checker.

A change of the code changes what a seed runs; the cause has a test of its own, named here.
"""

from __future__ import annotations

import pytest

from nemesis.checkers.framework.model import Verdict
from nemesis.running.simulated.specification import SimulationSpec
from nemesis.scenarios import scenario
from nemesis.searching.explore.seed import doubts
from nemesis.searching.explore.swarm import vary
from nemesis.searching.simulate import simulate


@pytest.mark.parametrize(
    ("name", "seed"),
    [
        # A broker was back under a new session within 2 ms, before the harness looked (test_moment).
        ("partition-controller", 5080),
        # Connections were to be reset where none was there for four seconds (test_connections).
        ("machine-faults", 552),
    ],
)
def test_a_seed_that_erred_is_valid(name: str, seed: int) -> None:
    varied = vary(scenario.override(scenario.load(name), runtime="simulation"), seed)
    simulated = simulate(
        SimulationSpec(
            scenario=varied.scenario,
            seed=seed,
            plan=varied.plan,
            deviation_rate=varied.deviation_rate,
        )
    )
    assert doubts(simulated.outcome) == ()
    assert simulated.outcome.verdict is Verdict.VALID
