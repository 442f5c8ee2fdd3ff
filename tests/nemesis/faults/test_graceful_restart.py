"""Brokers that stop in order, in simulation: leaders move first, whatever becomes of the controller meanwhile."""

from __future__ import annotations

import json
from typing import Any

import pytest

from nemesis.faults.graceful_restart import GracefulRestart
from nemesis.faults.kill import KillController
from nemesis.faults.plan import PlannedFault
from nemesis.faults.session import ExpireSession
from nemesis.history.events import Event, Kind
from nemesis.runtimes.simulation import SimulationRuntime, SimulationRuntimeConfig
from nemesis.simulation.loop import SimulationLoop
from nemesis.simulation.memory_record import MemoryRecord
from nemesis.testing import PlanRun, assert_valid, simulate_plan

FEW = {"producers": 2, "consumers": 1}


def events(run: PlanRun, kind: Kind) -> list[Event]:
    return [event for event in run.simulated.events if event.kind == kind]


def ended_by(run: PlanRun) -> list[str]:
    applied = (e for e in events(run, Kind.FAULT_APPLIED) if e.fault == "graceful-restart")
    details: list[dict[str, Any]] = [json.loads(event.detail or "{}") for event in applied]
    return [item["killed"]["ended_by"] for detail in details for item in detail.values()]


@pytest.mark.parametrize("target", ["leader", "controller"])
def test_the_leaders_of_a_broker_move_before_it_goes(target: str) -> None:
    run = simulate_plan((PlannedFault(5.0, GracefulRestart(selector=target)),), options=FEW)
    assert_valid(run)
    assert ended_by(run) == ["SIGTERM"]
    moved = [e for e in events(run, Kind.LEADER_ELECTED) if e.strategy == "controlled-shutdown"]
    (applied,) = events(run, Kind.FAULT_APPLIED)
    (leaving,) = applied.targets or []
    assert run.simulated.node_errors == ()
    assert moved
    assert all(f"broker-{event.leader}" != leaving for event in moved)
    # Nobody was left without a leader: what was offline would have been elected for as such.
    assert not [e for e in events(run, Kind.LEADER_ELECTED) if e.strategy == "offline"]


@pytest.mark.parametrize("after_s", [0.0, 0.01, 0.05])
@pytest.mark.parametrize(
    "blow", [KillController(duration_s=3.0), ExpireSession(selector="controller")]
)
def test_a_controller_that_is_lost_meanwhile_breaks_nothing(
    blow: KillController | ExpireSession, after_s: float
) -> None:
    plan = (
        PlannedFault(5.0, GracefulRestart(selector="follower", grace_s=10.0)),
        PlannedFault(5.0 + after_s, blow),
    )
    assert_valid(simulate_plan(plan, options=FEW, seed=int(after_s * 100)))


def test_a_broker_that_does_not_go_in_time_is_killed() -> None:
    loop = SimulationLoop()
    record = MemoryRecord(loop.clock_ns)
    runtime = SimulationRuntime(
        SimulationRuntimeConfig(broker_count=1, client_count=0, zookeeper_count=1), loop, record
    )

    async def scene() -> None:
        await runtime.lifecycle.start()
        await runtime.processes.pause("broker-1")
        paused_at = loop.time()
        ended = await runtime.processes.terminate("broker-1", grace_s=2.0)
        assert ended == {"pid": 1, "dead": True, "ended_by": "SIGKILL"}
        assert 2.0 <= loop.time() - paused_at < 3.0
        await runtime.processes.restart("broker-1")
        ended = await runtime.processes.terminate("broker-1", grace_s=2.0)
        assert ended == {"pid": 2, "dead": True, "ended_by": "SIGTERM"}
        await runtime.lifecycle.stop()

    try:
        loop.run_until_complete(scene())
    finally:
        loop.close()
