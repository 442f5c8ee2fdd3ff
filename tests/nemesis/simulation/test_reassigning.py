"""Replicas are moved about while faults strike: no property is broken, and in the end every ISR is full."""

from __future__ import annotations

import msgspec
import pytest

from history.events import Kind
from nemesis import scenario as scenarios
from nemesis.explore.swarm import vary
from nemesis.simulation.order import SimulationOrder
from nemesis.simulation.run import simulate
from tests.nemesis.simulation.reassigning import NAME, reassigning


@pytest.mark.parametrize("seed", [1, 3])
def test_what_is_moved_keeps_its_promises(seed: int) -> None:
    with reassigning() as workload:
        scenario = scenarios.load("partition-controller")
        scenario = scenarios.override(scenario, runtime=scenarios.SIMULATION)
        named = msgspec.structs.replace(scenario.workload, name=NAME)
        varied = vary(msgspec.structs.replace(scenario, brokers=4, workload=named), seed)
        simulated = simulate(SimulationOrder(scenario=varied.scenario, seed=seed, plan=varied.plan))
        begun, cancelled = workload.begun, workload.cancelled
    assert [finding.sentence for finding in simulated.outcome.broken()] == []
    assert simulated.node_errors == ()
    assert begun > 10
    assert cancelled > 0
    elections = {e.detail for e in simulated.events if e.kind == Kind.LEADER_ELECTED}
    assert {"reassign", "no-op", "remove-from-isr"} <= elections
    stopped = [e.detail for e in simulated.events if e.kind == Kind.REPLICA_STOPPED]
    assert stopped.count("delete") > 5
    refused = [e for e in simulated.events if e.kind == Kind.TRANSITION and e.error is not None]
    assert refused == []
