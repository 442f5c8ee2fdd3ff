"""A partition that never converges leaves the verdict on the others as it is."""

from __future__ import annotations

import pytest

from nemesis.history.events import NO_ERROR, Event, Kind
from nemesis.running.simulated.specification import SimulationSpec
from nemesis.scenarios import scenario as scenarios
from nemesis.searching.explore.swarm import vary
from nemesis.searching.simulate import simulate
from nemesis.support.runtime_names import SIMULATION

SEEDS = range(1, 5)
"""A change of the reference moves the moment that a fault meets."""


def outcomes(seed: int) -> dict[str | None, list[Event]]:
    """Return the failed convergence checks of a run whose ISRs never become full, by check."""
    scenario = scenarios.override(scenarios.load("partition-controller"), runtime=SIMULATION)
    varied = vary(scenario, seed)
    simulated = simulate(
        SimulationSpec(
            scenario=varied.scenario,
            seed=seed,
            plan=varied.plan,
            mutant="refused-isr-left-pending",
            checkers=("convergence",),
        )
    )
    failed: dict[str | None, list[Event]] = {}
    for event in simulated.events:
        if event.kind == Kind.CONVERGENCE and event.error != NO_ERROR:
            failed.setdefault(event.check, []).append(event)
    return failed


def test_a_partition_whose_isr_is_full_accepts_a_produce_after_another_check_has_failed() -> None:
    for seed in SEEDS:
        failed = outcomes(seed)
        if "isr" in failed:
            # All leaders are alive: each accepts a produce, however long the ISRs were waited for.
            assert failed.keys() & {"leaders", "produce", "fetch"} == set()
            return
    pytest.fail("no seed left an ISR incomplete")
