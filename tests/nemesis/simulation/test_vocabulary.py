"""Every event of a simulated run has the columns that its kind declares, ZooKeeper's included."""

from __future__ import annotations

from random import Random

import msgspec
import pytest

from nemesis.faults import plan as plans
from nemesis.history.vocabulary.checking import Vocabulary
from nemesis.running.simulated.specification import SimulationSpec
from nemesis.scenarios import scenario
from nemesis.searching.simulate import simulate

TIME_LIMIT_S = 15.0


@pytest.mark.parametrize("name", scenario.names_for("reference"))
def test_every_event_is_as_its_kind_declares(name: str) -> None:
    """The recorders check what processes record; this checks the kinds that are made afterwards, too."""
    chosen = scenario.override(scenario.load(name), runtime="simulation", time_limit_s=TIME_LIMIT_S)
    plan = plans.derive(
        Random("3/plan"),
        chosen.plan_settings(),
        start_s=chosen.phases.warm_up_s,
        end_s=chosen.faults_end_s,
    )
    events = simulate(SimulationSpec(scenario=chosen, seed=3, plan=plan)).events
    vocabulary = Vocabulary()
    for event in events:
        vocabulary.check(msgspec.to_builtins(event))
    assert {"znode", "phase", "append", "stored-log"} <= {event.kind for event in events}
