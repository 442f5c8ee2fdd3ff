"""The conductor with faults that touch nothing: order of events, skips, overlaps, heals."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from random import Random
from types import SimpleNamespace
from typing import Any, ClassVar, Self, cast

import pytest

from nemesis.faults import conductor as conductor_module
from nemesis.faults.base import (
    DrawRange,
    Fault,
    FaultContext,
    Measured,
    SelectorUnresolved,
    Strike,
)
from nemesis.faults.conductor import Conductor
from nemesis.faults.link_rules import Cut, LinkRules
from nemesis.faults.plan import PlannedFault, PlanSettings
from nemesis.history.recorder import Recorder
from nemesis.interfaces.errors import FaultLost, NodeExited
from nemesis.interfaces.links import Link
from nemesis.interfaces.network import Network
from nemesis.interfaces.runtime import Runtime
from nemesis.interfaces.unsupported import Unsupported
from nemesis.support.errors import HarnessError

SETTINGS = PlanSettings(
    kinds=("power-cut", "clock-skew"),
    recipes=(),
    durations=DrawRange(0.0, 0.0),
    gaps=DrawRange(0.0, 0.0),
)


NOTHING_ELSE = Unsupported("it only records")


class RecordingNetwork:
    """Of a network only what cuts need."""

    requests = delays = connections = bandwidth = NOTHING_ELSE

    def __init__(self) -> None:
        self.calls: list[tuple[str, frozenset[Link]]] = []

    async def cut(self, links: frozenset[Link]) -> None:
        self.calls.append(("cut", links))

    async def restore(self, links: frozenset[Link]) -> None:
        self.calls.append(("restore", links))


class RecordingRuntime:
    """A runtime of one part: a network that records."""

    cluster = SimpleNamespace(zookeepers=["zookeeper-1"])
    processes = disks = clocks = ensemble = packets = NOTHING_ELSE

    def __init__(self) -> None:
        self.network = RecordingNetwork()


class Touch(Fault, frozen=True, kw_only=True):
    """Strikes a node by name; ``verify`` says yes at the second time of asking."""

    name: ClassVar[str] = "touch"
    summary: ClassVar[str] = "nothing happens"
    needs: ClassVar[frozenset[type]] = frozenset({Network})

    node: str
    is_effective: bool = True
    is_broken: bool = False
    is_lost: bool = False
    """Its node exits at the restart."""
    fails_in: str = ""
    """The step in which what carries it out fails."""
    undo_s: float = 0.0
    """How long it takes to undo."""
    is_blind: bool = False
    """Aims at nodes that another fault has touched, as one that waits for a moment may."""

    @classmethod
    def draw(cls, rng: Random, durations: DrawRange) -> Self:
        return cls(node="broker-1")

    async def aim(self, context: FaultContext, rng: Random) -> Strike:
        if self.node == "nobody" or (context.touched[self.node] and not self.is_blind):
            raise SelectorUnresolved(f"{self.node} is not to be had")
        return TouchStrike(self)


class TouchStrike:
    def __init__(self, fault: Touch) -> None:
        self._fault = fault
        self._asked = 0
        self.victims = [fault.node]
        self.intent: dict[str, Any] = {"node": fault.node}

    async def apply(self) -> Measured:
        if self._fault.is_broken:
            raise HarnessError("the place broke")
        self._fail_in("apply")
        return Measured(self._fault.is_effective, {"seen": 1})

    def _fail_in(self, step: str) -> None:
        if self._fault.fails_in == step:
            raise FaultLost("the helper died")

    async def undo(self) -> None:
        self._fail_in("undo")
        await asyncio.sleep(self._fault.undo_s)
        if self._fault.is_lost:
            raise NodeExited("broker-1 exited with code 1")

    async def verify(self) -> Measured:
        self._asked += 1
        return Measured(self._asked > 1)


def conduct(plan: Sequence[PlannedFault], *, end_s: float = 0.3) -> list[dict[str, Any]]:
    lines: list[dict[str, Any]] = []
    recorder = Recorder(
        lambda line: lines.append(json.loads(line)), process="nemesis", clock=lambda: 0
    )

    async def run() -> None:
        runtime = cast("Runtime", RecordingRuntime())
        context = FaultContext.of(runtime, cast("Any", None))
        chief = Conductor(context, recorder, plan=plan, settings=SETTINGS, seed=1)
        start = asyncio.get_running_loop().time()
        await chief.conduct(start=start, end_s=end_s, undo_timeout_s=0.1)
        assert chief.in_force == []
        assert not any(context.touched.values())

    asyncio.run(run())
    return lines


@pytest.fixture(autouse=True)
def _short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conductor_module, "RESOLVE_TIMEOUT_S", 0.05)
    monkeypatch.setattr(conductor_module, "RESOLVE_INTERVAL_S", 0.005)
    monkeypatch.setattr(conductor_module, "VERIFY_INTERVAL_S", 0.005)


def test_intent_comes_before_the_effect_and_the_heal_is_verified() -> None:
    events = conduct([PlannedFault(0.0, Touch(node="broker-1", duration_s=0.02))])
    assert [event["kind"] for event in events] == ["fault-invoke", "fault-applied", "fault-healed"]
    invoke, applied, healed = events
    assert invoke["targets"] == applied["targets"] == healed["targets"] == ["broker-1"]
    assert json.loads(invoke["detail"]) == {"node": "broker-1"}
    assert (applied["effect"], healed["effect"]) == ("measured", "verified")


def test_an_effect_that_is_not_seen_is_recorded_as_none() -> None:
    events = conduct([PlannedFault(0.0, Touch(node="broker-1", is_effective=False))])
    assert events[1]["effect"] == "none"


def test_a_target_that_cannot_be_resolved_is_skipped() -> None:
    """None is drawn in its place: this runtime can do none of the kinds."""
    events = conduct([PlannedFault(0.0, Touch(node="nobody"))])
    assert [event["kind"] for event in events] == ["fault-skipped"]
    assert events[0]["error"] == "nobody is not to be had"


def test_a_second_fault_waits_until_its_node_is_free() -> None:
    events = conduct(
        [
            PlannedFault(0.0, Touch(node="broker-1", duration_s=0.02)),
            PlannedFault(0.0, Touch(node="broker-1", duration_s=0.0)),
        ]
    )
    invokes = [index for index, event in enumerate(events) if event["kind"] == "fault-invoke"]
    first_id = events[invokes[0]]["fault_id"]
    between = [event["kind"] for event in events[invokes[0] : invokes[1]]]
    assert between[:2] == ["fault-invoke", "fault-applied"]
    assert events[invokes[1]]["fault_id"] != first_id


class Share(Touch, frozen=True, kw_only=True):
    """Ends its node's session, say: the node is healthy for all others."""

    shares_victim: ClassVar[bool] = True


def test_a_node_may_be_struck_while_a_fault_that_shares_it_is_in_force() -> None:
    events = conduct(
        [
            PlannedFault(0.0, Share(node="broker-1", duration_s=3600.0)),
            PlannedFault(0.0, Touch(node="broker-1", duration_s=3600.0)),
            PlannedFault(0.01, Share(node="broker-1", is_blind=True)),
        ]
    )
    kinds = [event["kind"] for event in events]
    assert kinds.count("fault-invoke") == 3
    assert kinds.index("fault-healed") > 5


def test_a_node_that_stays_touched_is_given_up_like_one_that_is_not_there() -> None:
    events = conduct(
        [
            PlannedFault(0.0, Touch(node="broker-1", duration_s=3600.0)),
            PlannedFault(0.0, Touch(node="broker-1", is_blind=True)),
        ]
    )
    (skipped,) = [event for event in events if event["kind"] == "fault-skipped"]
    assert skipped["error"] == "another fault has touched broker-1"


def test_a_fault_waits_for_one_that_takes_longer_than_planned_to_undo() -> None:
    """A broker of a slow machine, or a slow kind, starts for longer than a fault waits for its target."""
    slow = Touch(node="broker-1", undo_s=3 * conductor_module.RESOLVE_TIMEOUT_S)
    events = conduct([PlannedFault(0.0, slow), PlannedFault(0.01, Touch(node="broker-1"))])
    kinds = [event["kind"] for event in events]
    assert kinds.count("fault-invoke") == 2
    assert "fault-skipped" not in kinds


def test_when_the_time_is_over_everything_is_undone_at_once() -> None:
    events = conduct(
        [
            PlannedFault(0.0, Touch(node="broker-1", duration_s=3600.0)),
            PlannedFault(3000.0, Touch(node="broker-2")),
        ],
        end_s=0.05,
    )
    assert [event["kind"] for event in events] == ["fault-invoke", "fault-applied", "fault-healed"]


def test_a_broker_that_exits_at_its_restart_does_not_end_the_run() -> None:
    events = conduct(
        [
            PlannedFault(0.0, Touch(node="broker-1", is_lost=True)),
            PlannedFault(0.01, Touch(node="broker-2")),
        ]
    )
    healed = {e["targets"][0]: e for e in events if e["kind"] == "fault-healed"}
    assert healed["broker-1"]["effect"] == "none"
    assert "exited with code 1" in healed["broker-1"]["detail"]
    assert healed["broker-2"]["effect"] == "verified"


@pytest.mark.parametrize(("step", "event"), [("apply", "fault-applied"), ("undo", "fault-healed")])
def test_a_fault_that_fails_by_itself_does_not_end_the_run_and_says_why(
    step: str, event: str
) -> None:
    events = conduct([PlannedFault(0.0, Touch(node="broker-1", fails_in=step))])
    [reported] = [e for e in events if e["kind"] == event]
    assert (reported["effect"], json.loads(reported["detail"])) == (
        "none",
        {"lost": "the helper died"},
    )
    assert events[-1]["kind"] == "fault-healed"


def test_a_harness_failure_comes_out_as_itself() -> None:
    with pytest.raises(HarnessError, match="the place broke"):
        conduct([PlannedFault(0.0, Touch(node="broker-1", is_broken=True))])


def test_a_link_flows_again_when_the_last_fault_lets_go() -> None:
    runtime = RecordingRuntime()
    rules = LinkRules(cast("Runtime", runtime))
    shared, other = Link("broker-1", "broker-2"), Link("broker-3", "broker-2")

    async def overlap() -> None:
        one = rules.guard(Cut(frozenset({shared})))
        await one.put()
        async with rules.guard(Cut(frozenset({shared, other}))):
            assert not rules.is_pair_open("broker-2", "broker-1")
            await one.remove()
            assert not rules.is_pair_open("broker-2", "broker-1")
        assert rules.is_pair_open("broker-2", "broker-1")
        await one.remove()

    asyncio.run(overlap())
    assert runtime.network.calls == [
        ("cut", frozenset({shared})),
        ("cut", frozenset({other})),
        ("restore", frozenset({shared, other})),
    ]
