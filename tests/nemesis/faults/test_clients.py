"""Client processes are killed and paused: groups notice, zombies are refused, and the effects are measured."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from random import Random
from typing import Any, Final

import pytest

from nemesis.faults import FAULTS, client_selectors
from nemesis.faults import plan as plans
from nemesis.faults.base import DrawRange
from nemesis.faults.clients import OBSERVED_S, KillClient, PauseClient
from nemesis.faults.plan import PlanSettings
from nemesis.history.events import Event, Kind
from nemesis.history.vocabulary.faults import CLIENT_FAULTS, MEASURED, VERIFIED, measurements
from nemesis.interfaces.clients import ClientProcesses
from nemesis.interfaces.errors import FaultUnsupported
from nemesis.interfaces.unsupported import Unsupported
from nemesis.running import client_processes, preflight
from nemesis.running.preflight import RunOptions, prepare
from nemesis.scenarios import scenario as scenarios
from nemesis.support.errors import UsageError
from nemesis.support.node_names import node_of
from nemesis.testing import assert_valid, simulate_plan
from nemesis.testing.running import PlanRun

SESSION_NS: Final = 3_000_000_000
LEADER: Final = 'group-leader("group-0")'
PLAN: Final = plans.decode(
    [
        {"at_s": 8.0, "fault": "pause-client", "target": LEADER, "duration_s": 5.0},
        {"at_s": 16.0, "fault": "kill-client", "target": LEADER, "duration_s": 5.0},
        {"at_s": 24.0, "fault": "pause-client", "target": LEADER, "duration_s": 5.0},
        {"at_s": 31.0, "fault": "kill-client", "target": "producer-0", "duration_s": 3.0},
        {"at_s": 32.0, "fault": "kill-client", "target": "consumer-0", "duration_s": 3.0},
    ]
)


def run_of(seed: int) -> PlanRun:
    return simulate_plan(PLAN, "groups", seed=seed, time_limit_s=44)


@cache
def run() -> PlanRun:
    return run_of(3)


@cache
def events() -> list[Event]:
    return list(run().simulated.events)


def of_fault(number: int, kind: Kind) -> Event:
    [event] = [e for e in events() if e.fault_id == number and e.kind == kind]
    return event


def span_of(number: int) -> tuple[str, int, int]:
    """Return the victim of a fault of the plan, and from when to when the fault was in force."""
    healed = of_fault(number, Kind.FAULT_HEALED)
    assert healed.targets is not None
    return healed.targets[0], of_fault(number, Kind.FAULT_APPLIED).time, healed.time


def pause_of(number: int) -> tuple[str, int, int]:
    """Return the victim, when its pause had begun, and just before it ended."""
    victim, start, stop = span_of(number)
    return victim, start, stop - int(OBSERVED_S * 1e9) - 1


def recorded(process: str, start: int, stop: int) -> list[Event]:
    """What a client process recorded in this span, under all its names."""
    return [
        event
        for event in events()
        if event.process.split(".")[0] == process and start < event.time < stop
    ]


def test_the_reference_keeps_its_promises_and_every_effect_is_measured() -> None:
    assert_valid(run())
    for number in range(len(PLAN)):
        assert of_fault(number, Kind.FAULT_APPLIED).effect == MEASURED
        assert of_fault(number, Kind.FAULT_HEALED).effect == VERIFIED


def test_the_same_seed_gives_the_same_history() -> None:
    again = run_of(3).simulated.events
    assert [repr(event) for event in again] == [repr(event) for event in events()]


def test_a_paused_member_does_nothing_and_comes_back_as_a_zombie() -> None:
    process, start, resumed = pause_of(0)
    assert not recorded(process, start, resumed)
    measured = measurements(of_fault(0, Kind.FAULT_HEALED).detail)
    assert measured["during"] == {"steps": 0, "sent": 0}
    assert measured["since"]["sent"] > 0
    assert measured["paused"] is False
    back = recorded(process, resumed, resumed + SESSION_NS)
    refused = [event for event in back if event.kind == Kind.FAIL]
    assert refused[0].f in ("commit-offset", "sync-group", "heartbeat")
    assert refused[0].error in ("UNKNOWN_MEMBER_ID", "ILLEGAL_GENERATION", "FENCED_INSTANCE_ID")


def test_the_group_evicts_a_paused_member_after_its_session() -> None:
    process, start, resumed = pause_of(0)
    owned = [e for e in events() if e.process == process and e.kind == Kind.ASSIGNED]
    before = max(event.generation or 0 for event in owned if event.time < start)
    joins = [
        event
        for event in events()
        if event.f == "join-group"
        and event.kind == Kind.OK
        and event.group == "group-0"
        and start < event.time < resumed
    ]
    assert joins
    assert max(event.generation or 0 for event in joins) > before


def test_a_killed_leader_sends_no_leave_group_and_leads_before() -> None:
    process, applied, stop = span_of(1)
    killed = of_fault(1, Kind.FAULT_INVOKE).time
    led = [
        event
        for event in events()
        if event.f == "join-group"
        and event.kind == Kind.OK
        and event.group == "group-0"
        and event.count
        and event.time < killed
    ]
    assert led[-1].process == process
    assert not [event for event in recorded(process, applied, stop) if event.kind == Kind.INVOKE]
    ended = [e for e in recorded(process, killed - 1, stop) if e.f == "leave-group"]
    assert ended == []
    measured = measurements(of_fault(1, Kind.FAULT_APPLIED).detail)
    assert (measured["dead"], measured["connections"]) == (True, 0)
    assert measured["connections_before"] > 0


def test_processes_that_were_killed_work_again() -> None:
    for number, f in ((1, "join-group"), (3, "send"), (4, "poll")):
        process, _, stop = span_of(number)
        after = recorded(process, stop, stop + 3 * SESSION_NS)
        assert [event for event in after if event.f == f and event.kind == Kind.OK], process


def test_a_consumer_that_starts_again_reads_from_the_start_under_a_new_name() -> None:
    process, _, stop = span_of(4)
    polls = [event for event in recorded(process, stop, 2**62) if event.f == "poll"]
    assert {event.process for event in polls}.isdisjoint({process})
    assert polls[0].offset == 0


@pytest.mark.parametrize("kind", [KillClient, PauseClient])
@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("one", 'allowed are client, group-leader("g"), and client processes by name'),
        ("broker-1", 'allowed are client, group-leader("g"), and client processes by name'),
        ("member-6", "the workload has producer-0, "),
        ("group-leader('group-9')", "unknown group 'group-9': the workload has group-0, group-1"),
    ],
)
def test_wrong_names_are_refused_before_the_run(
    tmp_path: Path, kind: type[KillClient | PauseClient], target: str, words: str
) -> None:
    with pytest.raises(UsageError) as refused:
        prepare(planned(tmp_path, {"fault": kind.name, "target": target}))
    assert words in str(refused.value)


def test_a_workload_without_groups_names_that(tmp_path: Path) -> None:
    options = planned(tmp_path, {"fault": "kill-client", "target": LEADER}, "partition-controller")
    with pytest.raises(UsageError, match="the workload has no groups of consumers"):
        prepare(options)


def test_groups_from_which_faults_are_drawn_are_checked(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text("name: mine\nfaults: {kinds: [kill], groups: [group-0]}\n")
    options = RunOptions(scenario=str(file), store=tmp_path, runtime="simulation", seed=1)
    with pytest.raises(UsageError, match="unknown group 'group-0'"):
        prepare(options)


def test_a_workload_that_offers_no_processes_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lacking = Unsupported("the workload groups offers no client processes")
    assert client_processes.processes_of(object(), "groups") == lacking  # type: ignore[arg-type]
    monkeypatch.setattr(preflight, "processes_of", lambda *_: lacking)
    with pytest.raises(FaultUnsupported) as refused:
        prepare(planned(tmp_path, {"fault": "kill-client"}))
    assert f"cannot do kill-client ({lacking.reason}): it can " in str(refused.value)
    without = prepare(planned(tmp_path, {"fault": "kill"}))
    assert ClientProcesses in without.missing()


def planned(tmp_path: Path, fault: dict[str, Any], scenario: str = "groups") -> RunOptions:
    file = tmp_path / "plan.yaml"
    plans.write(file, ())
    file.write_text(
        f"- {{at_s: 6, duration_s: 5, {', '.join(f'{k}: {v!r}' for k, v in fault.items())}}}\n"
    )
    return RunOptions(
        scenario=scenario, store=tmp_path / "store", runtime="simulation", seed=1, plan=file
    )


def drawn(groups: tuple[str, ...], kinds: tuple[str, ...], seeds: int = 60) -> list[Any]:
    settings = PlanSettings(
        kinds=kinds,
        recipes=(),
        durations=DrawRange(5, 7),
        gaps=DrawRange(2, 3),
        nodes=frozenset({"broker-1", "broker-2", "broker-3", "zookeeper-1"}),
        groups=groups,
    )
    return [
        planned.fault
        for seed in range(seeds)
        for planned in plans.derive(Random(seed), settings, start_s=4, end_s=54)
    ]


def test_drawn_faults_strike_coordinators_and_leaders_of_groups() -> None:
    faults = drawn(("group-0",), ("kill", "pause", "partition", *sorted(CLIENT_FAULTS)))
    aimed = {(fault.name, fault.selector) for fault in faults}
    assert {(name, LEADER) for name in CLIENT_FAULTS} <= aimed
    assert {(name, client_selectors.CLIENT) for name in CLIENT_FAULTS} <= aimed
    assert {(name, 'coordinator("group-0")') for name in ("kill", "pause", "partition")} <= aimed
    assert all(
        fault.duration_s * 1e9 > SESSION_NS for fault in faults if fault.name in CLIENT_FAULTS
    )


def test_a_fault_that_names_its_victim_by_office_keeps_it() -> None:
    faults = drawn(("group-0",), ("kill-controller", "stall-follower", "kill-zookeeper"))
    assert not [fault for fault in faults if "group" in fault.selector]


def test_without_groups_plans_are_as_they_were() -> None:
    kinds = tuple(name for name in FAULTS if name not in CLIENT_FAULTS)
    assert not [fault for fault in drawn((), kinds, 5) if "group" in getattr(fault, "selector", "")]
    assert scenarios.load("partition-controller").plan_settings().groups == ()


def test_the_coordinator_is_a_broker_and_the_leader_a_client() -> None:
    assert client_selectors.parse(LEADER).group == "group-0"
    assert client_selectors.parse("topic-admin-1").name == "topic-admin-1"
    with pytest.raises(UsageError):
        client_selectors.parse(node_of(1))
