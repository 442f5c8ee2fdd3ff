"""Faults that strike when a broker traces an event."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from random import Random

import msgspec
import pytest

from nemesis.faults import plan as plans
from nemesis.faults import traced_trigger
from nemesis.faults.base import DrawRange
from nemesis.faults.pause import Pause
from nemesis.faults.plan import PlannedFault, PlanSettings
from nemesis.faults.session import ExpireSession
from nemesis.history.events import Event, Kind
from nemesis.history.vocabulary.faults import TRIGGER_MISSED
from nemesis.runtimes.local.traces import LocalTraces
from nemesis.support.errors import UsageError
from nemesis.testing import PlanRun, assert_valid, simulate_plan

FEW = {"producers": 2, "consumers": 1}
NODES = frozenset({"broker-1", "broker-2", "broker-3"})


def isr_change(kind: Kind, isr: list[int], *, topic: str = "t", node: int = 1) -> Event:
    return Event(
        time=1, process=f"broker-{node}", kind=kind, node=node, topic=topic, partition=0, isr=isr
    )


def recognised(text: str, *events: Event) -> list[bool]:
    matches = traced_trigger.parse(text).matcher()
    return [matches(event) for event in events]


def test_an_isr_join_is_a_commit_that_adds_a_member() -> None:
    growth = [
        isr_change(Kind.ISR_CHANGE_PROPOSED, [1]),
        isr_change(Kind.ISR_CHANGE_COMMITTED, [1, 2]),
        isr_change(Kind.ISR_CHANGE_PROPOSED, [1, 2]),
        isr_change(Kind.ISR_CHANGE_COMMITTED, [1]),
    ]
    assert recognised("isr-join", *growth) == [False, True, False, False]
    assert recognised("isr-leave of t-0 on broker-1", *growth) == [False, False, False, True]
    assert not any(recognised("isr-join of t-1", *growth))
    assert not any(recognised("isr-join on broker-2", *growth))


def test_a_kind_is_recognised_by_its_name() -> None:
    events = [Event(time=1, process="broker-1", kind=kind, node=1) for kind in Kind]
    assert sum(recognised("become-leader", *events)) == 1


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "isr-joins of t-0",
            "unknown kind of trigger 'isr-joins' \\(did you mean 'isr-join'\\?\\): allowed are alter-partition-",
        ),
        ("isr-join of t", "unknown trigger 'isr-join of t': expected KIND, "),
        ("send", "unknown kind of trigger 'send'"),
        ("", "unknown trigger ''"),
    ],
)
def test_what_is_not_a_trigger_is_one_sentence(text: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        plans.decode([{"at_s": 1, "fault": "kill", "after": text}])


def test_a_trigger_names_a_broker_that_exists_and_a_tracer_needs_a_trigger() -> None:
    absent = plans.decode([{"at_s": 1, "fault": "kill", "after": "append on broker-9"}])
    with pytest.raises(UsageError, match="got broker-9"):
        plans.check(absent, nodes=NODES, end_s=10.0)
    lonely = plans.decode([{"at_s": 1, "fault": "kill", "target": "tracer"}])
    with pytest.raises(UsageError, match="expected a trigger, got none; add after"):
        plans.check(lonely, nodes=NODES, end_s=10.0)


def test_a_plan_with_triggers_survives_being_written_and_read(tmp_path: Path) -> None:
    fault = Pause(selector="tracer", duration_s=2.0)
    plan = (
        PlannedFault(1.0, fault, "isr-join of t-0"),
        PlannedFault(2.0, fault, "isr-join of t-0", may_miss=True),
    )
    plans.write(tmp_path / "plan.yaml", plan)
    assert plans.read(tmp_path / "plan.yaml") == plan


def test_half_of_the_drawn_faults_wait_where_a_scenario_has_triggers() -> None:
    settings = PlanSettings(
        kinds=("pause", "kill", "delete-controller"),
        recipes=(),
        durations=DrawRange(1.0, 2.0),
        gaps=DrawRange(0.0, 1.0),
        nodes=NODES,
        triggers=("isr-join", "become-leader"),
    )
    plan = plans.derive(Random(1), settings, start_s=0.0, end_s=400.0)
    plans.check(plan, nodes=NODES, end_s=400.0)
    waiting = [planned for planned in plan if planned.after is not None]
    assert 0.3 < len(waiting) / len(plan) < 0.7
    assert {planned.after for planned in waiting} == {"isr-join", "become-leader"}
    assert any(getattr(planned.fault, "selector", "") == "tracer" for planned in waiting)


def events(run: PlanRun, kind: Kind) -> list[Event]:
    return [event for event in run.simulated.events if event.kind == kind]


def test_the_fault_follows_its_event_within_milliseconds() -> None:
    plan = (
        PlannedFault(5.0, ExpireSession(selector="leader")),
        PlannedFault(5.0, Pause(selector="tracer", duration_s=1.0), "become-leader"),
        PlannedFault(5.0, ExpireSession(selector="follower"), "isr-join"),
    )
    run = simulate_plan(plan, options=FEW)
    assert_valid(run)
    [paused] = [e for e in events(run, Kind.FAULT_INVOKE) if e.fault == "pause"]
    triggers = [e for e in events(run, Kind.BECOME_LEADER) if e.time <= paused.time]
    assert 0 <= paused.time - triggers[-1].time < 10_000_000
    assert json.loads(paused.detail or "{}")["after"] == "become-leader"
    assert paused.targets == [triggers[-1].process]
    expired = [e for e in events(run, Kind.FAULT_INVOKE) if e.fault == "expire-session"]
    assert len(expired) == 2
    joins = [e for e in events(run, Kind.ISR_CHANGE_COMMITTED) if e.time <= expired[-1].time]
    assert expired[-1].time - joins[-1].time < 10_000_000


def test_a_drawn_fault_whose_event_does_not_come_strikes_without_it_and_says_so() -> None:
    fault = Pause(selector="tracer", duration_s=1.0)
    plan = (PlannedFault(5.0, fault, "log-cleaned", may_miss=True),)
    run = simulate_plan(plan, options=FEW, time_limit_s=25.0)
    assert_valid(run)
    [struck] = events(run, Kind.FAULT_INVOKE)
    assert json.loads(struck.detail or "{}")["missed"] == "log-cleaned"
    assert not events(run, Kind.FAULT_SKIPPED)


@pytest.mark.parametrize("at_s", [5.0, 13.0])
def test_a_given_plan_whose_event_does_not_come_is_in_doubt(at_s: float) -> None:
    """Whether the wait or the faults' time ends first."""
    paused = Pause(selector="one", duration_s=1.0)
    plan = (
        *(PlannedFault(1.0 + number, paused) for number in range(0, 10, 2)),
        PlannedFault(at_s, paused, "log-cleaned"),
    )
    run = simulate_plan(plan, options=FEW, time_limit_s=25.0)
    [skipped] = events(run, Kind.FAULT_SKIPPED)
    assert skipped.error == TRIGGER_MISSED
    with pytest.raises(AssertionError, match="the trigger of its plan did not come"):
        assert_valid(run)


def test_the_local_runtime_reads_the_ends_of_the_traces(tmp_path: Path) -> None:
    """A line counts when it is whole; what was traced before is not an event from now on."""
    (tmp_path / "raw").mkdir()
    trace = tmp_path / "raw" / "broker-1.jsonl"
    joined = msgspec.json.encode(isr_change(Kind.ISR_CHANGE_COMMITTED, [1, 2]))
    trace.write_bytes(joined + b"\n")

    async def scene() -> tuple[Event | None, Event | None]:
        traces = LocalTraces(tmp_path)
        matches = traced_trigger.parse("isr-change-committed").matcher()
        old = await traces.first(matches, timeout_s=0.02)
        waiting = asyncio.create_task(traces.first(matches, timeout_s=10.0))
        await asyncio.sleep(0.02)
        with trace.open("ab") as file:
            file.write(b'{"torn": \n' + joined[:20])
            file.flush()
            await asyncio.sleep(0.02)
            assert not waiting.done()
            file.write(joined[20:] + b"\n")
        return old, await waiting

    old, new = asyncio.run(scene())
    assert old is None
    assert new is not None
    assert new.isr == [1, 2]
