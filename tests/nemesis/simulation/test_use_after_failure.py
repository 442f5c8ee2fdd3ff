"""A partition that never converges leaves the verdict on the others as it is."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from nemesis.faults import plan as plans
from nemesis.history.events import NO_ERROR, Event, Kind
from nemesis.scenarios import scenario as scenarios
from nemesis.testing import simulate_plan

BUG = "refused-isr-left-pending"
PLAN = Path(__file__).parents[2] / "plans" / f"{BUG}.yaml"
SEEDS = range(5)
"""A change of the reference moves the moment that a fault meets."""
CONVERGENCE_S = 8.0


def failed_checks(seed: int) -> dict[str | None, list[Event]]:
    """Return the failed convergence checks of a run with the planted bug, by check."""
    scenario = scenarios.load("partition-controller")
    phases = msgspec.structs.replace(scenario.phases, convergence_s=CONVERGENCE_S)
    run = simulate_plan(
        plans.read(PLAN),
        msgspec.structs.replace(scenario, phases=phases),
        seed=seed,
        options={"producers": 1, "consumers": 1},
        mutant=BUG,
    )
    failed: dict[str | None, list[Event]] = {}
    for event in run.simulated.events:
        if event.kind == Kind.CONVERGENCE and event.error != NO_ERROR:
            failed.setdefault(event.check, []).append(event)
    return failed


def test_a_partition_with_a_leader_accepts_a_produce_after_another_check_has_failed() -> None:
    for seed in SEEDS:
        failed = failed_checks(seed)
        if "isr" in failed:
            # All leaders are alive: each accepts a produce, however long the ISRs were waited for.
            assert failed.keys() & {"leaders", "produce", "fetch"} == set()
            return
    pytest.fail("no seed left an ISR incomplete")
