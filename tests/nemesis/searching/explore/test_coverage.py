"""Everything that a run reached is counted, and what no run reached is told."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec
import pytest

from nemesis.faults import DEFAULT_KINDS
from nemesis.history.events import Event
from nemesis.searching.explore.coverage import EXPECTED, measure
from nemesis.searching.explore.coverage_counts import Coverage, Reach


def event(kind: str, process: str = "broker-1", **columns: Any) -> Event:
    return Event(time=1, process=process, kind=kind, **columns)


def reached(*events: Event) -> dict[tuple[str, str], int]:
    """What was reached at all: (group, what) → events."""
    return {
        (group, label): reach.events
        for group, counts in measure(events).reached.items()
        for label, reach in counts.items()
        if reach.events
    }


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (event("controller-elected"), {("controller", "elected"): 1}),
        (event("controller-failover"), {("controller", "failover"): 1}),
        (
            event("controller-resigned", reason="/controller names broker 12"),
            {("controller", "resigned"): 1, ("resignations", "/controller names broker N"): 1},
        ),
        (event("leader-elected", strategy="offline"), {("leader elections", "offline"): 1}),
        (event("leader-elected", strategy="preferred"), {("leader elections", "preferred"): 1}),
        (
            event("transition", from_state="Online", to_state="Offline"),
            {("partition states", "Online->Offline"): 1},
        ),
        (
            event("transition", replica=2, from_state="Online", to_state="Offline"),
            {("replica states", "Online->Offline"): 1},
        ),
        (
            event(
                "transition",
                replica=2,
                from_state="New",
                to_state="DeletionStarted",
                error="ILLEGAL",
            ),
            {("transitions that failed", "replica New->DeletionStarted"): 1},
        ),
        (event("session-closed", "zookeeper", reason="expired"), {("sessions", "expired"): 1}),
        (event("session-state", session_state="suspended"), {("sessions", "seen suspended"): 1}),
        (event("session-state", session_state="connected"), {}),
        (event("truncate"), {("replicas", "truncated"): 1}),
        (event("replica-stopped", step="delete"), {("replicas", "deleted"): 1}),
        (
            event("control-request-handled", api="StopReplica", error="STALE_BROKER_EPOCH"),
            {("control requests", "StopReplica STALE_BROKER_EPOCH"): 1},
        ),
        (
            event("control-request-handled", api="LeaderAndIsr", error="NONE"),
            {("control requests", "LeaderAndIsr accepted"): 1},
        ),
        (
            event("znode-outcome", error="CONTROLLER_MOVED"),
            {
                ("ZooKeeper writes", "refused"): 1,
                ("ZooKeeper writes", "refused CONTROLLER_MOVED"): 1,
            },
        ),
        (event("znode-outcome", error="NONE"), {("ZooKeeper writes", "committed"): 1}),
        (event("ok", "producer-0", f="send"), {("operations", "send ok"): 1}),
        (
            event("info", "consumer-0", f="poll", error="DISCONNECTED (ConnectionResetError)"),
            {("operations", "poll info"): 1, ("operations", "poll info DISCONNECTED"): 1},
        ),
        (
            event("fault-applied", "nemesis", fault="kill", effect="measured"),
            {("faults", "kill measured"): 1},
        ),
        (
            event("fault-applied", "nemesis", fault="kill", effect="none"),
            {("faults", "kill without effect"): 1},
        ),
        (event("fault-skipped", "nemesis", fault="pause"), {("faults", "pause skipped"): 1}),
        (
            event("fault-healed", "nemesis", detail='{"moved_sessions": 2}'),
            {("ZooKeeper's members", "sessions moved"): 2},
        ),
        (event("fault-healed", "nemesis", detail="{}"), {}),
        (event("append"), {}),
    ],
)
def test_an_event_counts_as_what_it_says(said: Event, expected: dict[tuple[str, str], int]) -> None:
    assert reached(said) == expected
    assert reached(said, said) == {label: 2 * count for label, count in expected.items()}


def test_a_committed_isr_is_what_its_leader_had_proposed() -> None:
    where: dict[str, Any] = {"topic": "t", "partition": 0}
    result = reached(
        event("isr-change-proposed", change="shrink", **where),
        event("isr-change-proposed", "broker-2", change="expand", **where),
        event("isr-change-committed", **where),
        event("isr-change-committed", "broker-2", **where),
    )
    assert result == {
        ("ISR changes", f"{change} {step}"): 1
        for change in ("shrink", "expand")
        for step in ("proposed", "committed")
    }


def test_runs_are_counted_beside_events() -> None:
    elected = event("controller-elected")
    three = measure([elected, elected]).combine(measure([])).combine(measure([elected]))
    assert three.runs == 3
    assert three.reached["controller"]["elected"] == Reach(events=3, runs=2)
    assert three.reached["controller"]["failover"] == Reach(events=0, runs=0)
    assert "controller: elected 3 (2)" in list(three.lines())


def never(coverage: Coverage) -> Iterable[str]:
    return list(coverage.missed())


def test_what_was_never_reached_is_told() -> None:
    hundred = Coverage()
    for _ in range(100):
        hundred = hundred.combine(measure([event("controller-elected")]))
    assert "NEVER in 100 runs: controller: failover, resigned" in never(hundred)
    assert hundred.never()["faults"] == [f"{kind} measured" for kind in DEFAULT_KINDS]
    met = hundred.combine(measure([event("controller-failover"), event("controller-resigned")]))
    assert "controller" not in met.never()
    assert not any(line.startswith("NEVER in 101 runs: controller:") for line in never(met))


def test_the_kinds_of_the_scenario_are_expected_and_with_them_what_only_they_reach() -> None:
    machines = measure([], ("clock-skew", "kill-zookeeper"))
    assert machines.never()["faults"] == ["clock-skew measured", "kill-zookeeper measured"]
    assert machines.never()["ZooKeeper's members"] == ["another leader", "sessions moved"]
    assert "ZooKeeper's members" not in measure([], ("clock-skew",)).never()


def test_leaders_of_the_ensemble_are_told_by_their_epoch_in_the_zxids() -> None:
    zxids = [(1 << 32) + 1, (1 << 32) + 2, (3 << 32) + 1, (3 << 32) + 1, (4 << 32) + 9]
    reported = reached(*(event("znode", "zookeeper", zxid=zxid) for zxid in zxids))
    assert reported == {("ZooKeeper's members", "another leader"): 2}


def test_the_legal_transitions_are_those_of_the_state_machines() -> None:
    assert "New->Online" in EXPECTED["partition states"]
    assert "Offline->Online" in EXPECTED["replica states"]
    assert "NonExistent->Online" not in EXPECTED["partition states"]
    assert "Online->DeletionStarted" not in EXPECTED["replica states"]


def test_a_total_and_its_parts_are_told_apart() -> None:
    two = measure(
        [
            event("ok", f="send"),
            event("fail", f="send", error="NOT_LEADER"),
            event("fail", f="send", error="NOT_ENOUGH_REPLICAS only one"),
            event("fail", f="send"),
        ]
    )
    [line] = [line for line in two.lines() if line.startswith("operations")]
    assert line == (
        "operations: send ok 1 (1), send fail 3 (1) [NOT_LEADER 1 (1), NOT_ENOUGH_REPLICAS 1 (1)]"
    )
    [row] = [row for row in two.table() if row.startswith("operations")]
    assert row.split() == ["operations", "2", "of", "4", "kinds", "4", "events"]


def test_combining_is_associative_and_keeps_the_order_of_groups() -> None:
    a = measure([event("ok", f="send"), event("leader-elected", strategy="odd")])
    b = measure([event("truncate")])
    c = measure([event("info", f="send", error="TIMED_OUT")])
    assert a.combine(b).combine(c) == a.combine(b.combine(c))
    assert list(Coverage().combine(a).reached) == list(EXPECTED)


def test_it_goes_through_json() -> None:
    coverage = measure([event("truncate"), event("controller-elected")])
    assert msgspec.json.decode(msgspec.json.encode(coverage), type=Coverage) == coverage
