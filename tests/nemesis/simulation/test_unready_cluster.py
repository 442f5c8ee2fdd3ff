"""A cluster that never gets ready for the workload is convicted, and its run is stored like any other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from nemesis.checkers.framework.model import Verdict
from nemesis.history.events import Kind
from nemesis.judging.judge import judge
from nemesis.mutants.base import Mutant, Replacement
from nemesis.running.simulated.specification import SimulationSpec
from nemesis.scenarios import scenario as scenarios
from nemesis.searching.explore.swarm import vary
from nemesis.searching.simulate import simulate, store_result
from nemesis.support.runtime_names import SIMULATION


async def _changes_nothing(_self: Any, *_arguments: Any, **_options: Any) -> dict[Any, Any]:
    return {}


STATES_STAND_STILL = Mutant(
    name="states-stand-still",
    property="convergence",
    summary="the controller takes no partition to another state, so none gets a leader",
    replacements=(
        Replacement(
            "nemesis.reference.controller.partition_state_machine",
            "PartitionStateMachine.handle_state_changes",
            lambda _correct: _changes_nothing,
        ),
    ),
)


def test_first_topics_without_leaders_are_a_finding_of_a_stored_run(tmp_path: Path) -> None:
    scenario = scenarios.override(scenarios.load("partition-controller"), runtime=SIMULATION)
    varied = vary(scenario, 1)
    spec = SimulationSpec(scenario=varied.scenario, seed=1, plan=varied.plan)
    with STATES_STAND_STILL.planted():
        simulated = simulate(spec)
    first, *others = simulated.outcome.broken()
    assert first.property == "convergence"
    assert first.sentence.startswith("Without any fault, the topics orders-0, orders-1 did not")
    assert any("it has no state" in finding.sentence for finding in others)
    assert Kind.FAULT_INVOKE not in {event.kind for event in simulated.events}
    assert simulated.phases[-1] == "end"
    stored = store_result(simulated, spec, tmp_path, ("nemesis", "explore"))
    assert judge(stored, engine="inline").verdict is Verdict.INVALID
