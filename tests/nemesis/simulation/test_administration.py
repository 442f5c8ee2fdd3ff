"""The scenarios of administrators on virtual time: no property is broken, and what they are for has happened.

One seed of each by day, another at night, and there a thousand more of each (``tests/e2e/test_explore_sweep.py``).
"""

from __future__ import annotations

from collections import Counter

import pytest

from nemesis.checkers.deletion import CREATE, DELETE, GROW
from nemesis.checkers.framework.model import Verdict
from nemesis.checkers.reassignment import CANCEL, DESCRIBE, MOVE
from nemesis.history.events import Kind
from nemesis.running.simulated.specification import SimulationSpec
from nemesis.scenarios import scenario as scenarios
from nemesis.searching.explore.swarm import vary
from nemesis.searching.simulate import SimulationResult, simulate
from nemesis.support.runtime_names import SIMULATION

SEEDS = pytest.mark.parametrize("seed", [1, pytest.param(3, marks=pytest.mark.nightly)])


def run(name: str, seed: int) -> SimulationResult:
    scenario = scenarios.override(scenarios.load(name), runtime=SIMULATION)
    varied = vary(scenario, seed)
    return simulate(SimulationSpec(scenario=varied.scenario, seed=seed, plan=varied.plan))


def succeeded(simulated: SimulationResult) -> Counter[str | None]:
    """How many operations of each kind were answered with success."""
    return Counter(event.f for event in simulated.events if event.kind == Kind.OK)


def assert_nothing_is_wrong(simulated: SimulationResult) -> None:
    assert [finding.sentence for finding in simulated.outcome.broken()] == []
    assert simulated.outcome.verdict == Verdict.VALID
    assert simulated.node_errors == ()
    refused = [e for e in simulated.events if e.kind == Kind.TRANSITION and e.error is not None]
    assert refused == []


@SEEDS
def test_topics_come_and_go_and_keep_their_promises(seed: int) -> None:
    simulated = run("topics", seed)
    assert_nothing_is_wrong(simulated)
    done = succeeded(simulated)
    assert done[CREATE] > 10
    assert done[DELETE] > 5
    assert done[GROW] > 3
    used: dict[str, set[str]] = {}
    for event in simulated.events:
        if event.f == "poll" and event.kind == Kind.OK and event.values and event.topic_id:
            used.setdefault(event.topic or "", set()).add(event.topic_id)
    assert max(map(len, used.values())) > 2, "no name was read in several lives"


@SEEDS
def test_what_is_moved_keeps_its_promises(seed: int) -> None:
    simulated = run("reassignment", seed)
    assert_nothing_is_wrong(simulated)
    done = succeeded(simulated)
    assert done[DESCRIBE] >= 6
    assert done[MOVE] > 10
    assert done[CANCEL] > 0
    elections = {e.strategy for e in simulated.events if e.kind == Kind.LEADER_ELECTED}
    assert {"reassign", "no-op", "remove-from-isr"} <= elections
    stopped = [e.step for e in simulated.events if e.kind == Kind.REPLICA_STOPPED]
    assert stopped.count("delete") > 5
