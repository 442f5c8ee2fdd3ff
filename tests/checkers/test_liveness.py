"""Known gaps are measured to the nanosecond, put down to the fault that made them, and no others are told of."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nemesis.checkers.breaks.events import become_leader, broker, client, grant, state, znode
from nemesis.checkers.framework.model import Distribution, Result, Stretch, Verdict
from nemesis.checkers.framework.segment import Segment
from nemesis.checkers.liveness.check import Liveness
from nemesis.checkers.liveness.produce import SHORTEST_NS, join, summarise, unwritable
from nemesis.checkers.liveness.time_spans import complement, intersection, spans, union
from nemesis.history.events import Event
from nemesis.history.schema import ordered, table
from tests.checkers.histories import judge, only

MS = 1_000_000
SECOND = 1_000 * MS
SESSION = {1: 101, 2: 102, 3: 103}


def elected(
    time: int, node: int, epoch: int, zxid: int, failover: int | None = None
) -> list[Event]:
    """A broker traces that it is controller, and, a tick later or when it is said, that its failover is over."""
    about = {"controller_epoch": epoch}
    done = time + 1 if failover is None else failover
    return [
        broker(time, node, "controller-elected", zxid=zxid, session=SESSION[node], **about),
        broker(done, node, "controller-failover", **about),
    ]


def lost(zxid: int, node: int, how: str) -> list[Event]:
    """The session of the controller ends, and /controller with it."""
    ended: dict[str, Any] = {"time": -1, "process": "zookeeper", "zxid": zxid}
    return [
        Event(**ended, kind="session-closed", seq=0, session=SESSION[node], reason=how),
        znode(zxid, SESSION[node], "/controller", seq=1, zk_op="delete"),
    ]


def session(zxid: int, node: int, timeout_ms: int) -> Event:
    about: dict[str, Any] = {"session": SESSION[node], "timeout_ms": timeout_ms}
    return Event(time=-1, process="zookeeper", kind="session-created", zxid=zxid, seq=0, **about)


def knows(time: int, node: int, zxid: int) -> Event:
    """A broker traces a transaction, so that its time is known."""
    return broker(time, node, "znode-outcome", zxid=zxid, error="NONE", path="/x")


def fault(number: int, name: str, start: int, stop: int, *targets: str) -> list[Event]:
    about: dict[str, Any] = {"fault": name, "fault_id": number, "targets": list(targets)}
    kinds = [(start, "fault-invoke"), (start + 1, "fault-applied"), (stop, "fault-healed")]
    return [
        Event(time=time, process="nemesis", kind=kind, seq=time, **about) for time, kind in kinds
    ]


def end(time: int) -> Event:
    return Event(time=time, process="harness", kind="phase", seq=time, phase="end")


def topic(zxid: int, replicas: list[int], **more: Any) -> Event:
    data = json.dumps({"version": 3, "partitions": {"0": replicas}, **more})
    return znode(zxid, 1, "/brokers/topics/t", topic="t", data=data)


def gaps(result: Result, label: str) -> list[tuple[int, int]]:
    return [
        (stretch.start_ns, stretch.stop_ns)
        for stretch in result.stretches
        if stretch.label == label
    ]


def total(result: Result, label: str, fault: str = "all") -> Distribution:
    (collected,) = [
        distribution
        for distribution in result.distributions
        if (distribution.label, distribution.fault) == (label, fault)
    ]
    return collected


def measure(*parts: Event | Sequence[Event]) -> Result:
    events = [event for part in parts for event in ([part] if isinstance(part, Event) else part)]
    return only(Liveness(), events)


# -- controller


def test_a_controller_that_resigns_is_missed_until_the_next_ones_failover_is_over() -> None:
    result = measure(
        grant(10, SESSION[1], 1, 1),
        elected(100, 1, 1, 10),
        broker(200, 1, "controller-resigned", controller_epoch=1),
        znode(20, SESSION[1], "/controller", zk_op="delete"),
        grant(21, SESSION[2], 2, 2),
        elected(230, 2, 2, 21, failover=260),
        end(1000),
    )
    assert result.verdict is Verdict.VALID
    assert result.findings == ()
    assert result.stretches == (
        Stretch(
            label="without-controller",
            key="the cluster",
            start_ns=200,
            stop_ns=260,
            fault="none",
            is_over=True,
        ),
    )


def test_a_controller_that_is_cut_off_is_missed_from_when_its_session_fell_silent() -> None:
    result = measure(
        session(1, 1, timeout_ms=2_000),
        grant(10, SESSION[1], 1, 1),
        elected(1 * SECOND, 1, 1, 10),
        lost(20, 1, "expired"),
        grant(21, SESSION[2], 2, 2),
        elected(9 * SECOND, 2, 2, 21),
        # It learns of that much later; until then it takes itself for the controller.
        broker(15 * SECOND, 1, "controller-resigned", controller_epoch=1),
        end(20 * SECOND),
    )
    assert gaps(result, "without-controller") == [(7 * SECOND, 9 * SECOND + 1)]


def test_a_controller_that_is_killed_is_missed_from_the_kill_on_and_not_from_before() -> None:
    result = measure(
        session(1, 1, timeout_ms=2_000),
        grant(10, SESSION[1], 1, 1),
        elected(1 * SECOND, 1, 1, 10),
        fault(0, "kill-controller", 8 * SECOND, 12 * SECOND, "broker-1"),
        lost(20, 1, "expired"),
        grant(21, SESSION[2], 2, 2),
        elected(9 * SECOND, 2, 2, 21),
        broker(11 * SECOND, 1, "broker-started", incarnation=2),
        end(20 * SECOND),
    )
    assert gaps(result, "without-controller") == [(8 * SECOND + 1, 9 * SECOND + 1)]
    assert total(result, "without-controller", "kill-controller").count == 1


def test_one_that_is_elected_and_dies_before_its_failover_is_over_was_no_controller() -> None:
    result = measure(
        grant(10, SESSION[1], 1, 1),
        elected(100, 1, 1, 10),
        broker(200, 1, "controller-resigned", controller_epoch=1),
        grant(20, SESSION[2], 2, 2),
        broker(210, 2, "controller-elected", controller_epoch=2, zxid=20, session=SESSION[2]),
        grant(30, SESSION[3], 3, 3),
        elected(300, 3, 3, 30),
        end(1000),
    )
    assert gaps(result, "without-controller") == [(200, 301)]


def test_a_cluster_that_is_left_without_a_controller_is_so_to_the_end() -> None:
    result = measure(
        grant(10, SESSION[1], 1, 1),
        elected(100, 1, 1, 10),
        broker(200, 1, "controller-resigned", controller_epoch=1),
        end(1000),
        broker(2000, 1, "broker-registered", zxid=50),
    )
    (stretch,) = result.stretches
    assert (stretch.start_ns, stretch.stop_ns, stretch.is_over) == (200, 1000, False)


# -- leader and ISR


def test_a_partition_has_no_leader_between_its_death_and_the_next_ones_taking_over() -> None:
    result = measure(
        state(10, 1, leader=1, leader_epoch=0, isr=[1, 2]),
        knows(100, 3, 10),
        become_leader(110, 1, 0, 0),
        fault(0, "kill", 400, 900, "broker-1"),
        state(20, 1, leader=2, leader_epoch=1, isr=[2]),
        knows(600, 3, 20),
        become_leader(630, 2, 1, 0),
        broker(800, 1, "broker-started", incarnation=2),
        end(1000),
    )
    assert gaps(result, "without-leader") == [(401, 630)]
    assert total(result, "without-leader") == Distribution(
        label="without-leader",
        fault="all",
        count=1,
        total_ms=229 / MS,
        median_ms=229 / MS,
        p90_ms=229 / MS,
        max_ms=229 / MS,
    )


def test_a_change_of_zookeeper_counts_from_the_first_trace_of_its_zxid_or_a_later_one() -> None:
    result = measure(
        state(10, 1, leader=1, leader_epoch=0, isr=[1]),
        knows(100, 1, 10),
        become_leader(110, 1, 0, 0),
        state(20, 1, leader=-1, leader_epoch=1, isr=[1]),
        state(30, 1, leader=1, leader_epoch=2, isr=[1]),
        knows(500, 1, 25),
        knows(700, 1, 30),
        # A trace of an earlier transaction says nothing, however late it is.
        knows(800, 2, 9),
        become_leader(710, 1, 2, 0),
        end(1000),
    )
    assert gaps(result, "without-leader") == [(500, 710)]


def test_a_new_epoch_or_isr_of_the_same_leader_is_no_gap() -> None:
    result = measure(
        state(10, 1, leader=1, leader_epoch=0, isr=[1, 2]),
        knows(100, 1, 10),
        become_leader(110, 1, 0, 0),
        state(20, 1, leader=1, leader_epoch=1, isr=[1]),
        knows(500, 1, 20),
        become_leader(600, 1, 1, 0),
        end(1000),
    )
    assert total(result, "without-leader").count == 0


def test_a_partition_is_missed_only_while_it_exists() -> None:
    result = measure(
        topic(9, [1, 2]),
        state(10, 1, leader=1, leader_epoch=0, isr=[1]),
        knows(100, 1, 10),
        become_leader(110, 1, 0, 0),
        znode(20, 1, "/admin/delete_topics/t", zk_op="create"),
        knows(300, 1, 20),
        state(25, 1, leader=-1, leader_epoch=1, isr=[1]),
        state(30, 1, leader=-1, leader_epoch=1, isr=[1], zk_op="delete"),
        knows(400, 1, 30),
        end(1000),
    )
    assert gaps(result, "isr-not-full") == [(100, 300)]
    assert gaps(result, "without-leader") == []


def test_the_isr_is_full_when_every_replica_is_in_it_but_for_those_that_are_being_added() -> None:
    adding = {"adding_replicas": {"0": [3]}}
    result = measure(
        topic(9, [1, 2]),
        state(10, 1, leader=1, leader_epoch=0, isr=[1, 2]),
        knows(100, 1, 10),
        state(20, 1, leader=1, leader_epoch=0, isr=[1]),
        knows(200, 1, 20),
        state(30, 1, leader=1, leader_epoch=0, isr=[1, 2]),
        knows(300, 1, 30),
        topic(40, [1, 2, 3], **adding),
        knows(400, 1, 40),
        topic(50, [1, 2, 3]),
        knows(500, 1, 50),
        state(60, 1, leader=1, leader_epoch=0, isr=[1, 2, 3]),
        knows(600, 1, 60),
        end(1000),
    )
    assert gaps(result, "isr-not-full") == [(200, 300), (500, 600)]


@pytest.mark.parametrize(
    "data",
    [
        "no JSON",
        "[1]",
        '{"partitions": 3}',
        '{"partitions": {"x": [1], "0": [[1]]}}',
        '{"partitions": {"0": 1}}',
    ],
)
def test_a_topic_that_cannot_be_read_lacks_nothing_in_its_isr(data: str) -> None:
    result = measure(
        znode(9, 1, "/brokers/topics/t", topic="t", data=data),
        znode(9, 1, "/config/topics/t", seq=1, data=data),
        broker(1, 1, "broker-started"),
        state(10, 1, leader=1, leader_epoch=0, isr=[1]),
        knows(100, 1, 10),
        end(1000),
    )
    assert (gaps(result, "isr-not-full"), gaps(result, "below-min-isr")) == ([], [])


@pytest.mark.parametrize(
    ("own", "expected"), [(None, [(200, 300)]), ("1", []), ("3", [(100, 1000)])]
)
def test_the_least_isr_is_the_topics_own_or_else_the_brokers(
    own: str | None, expected: list[tuple[int, int]]
) -> None:
    config = json.dumps({"config": {} if own is None else {"min.insync.replicas": own}})
    result = measure(
        broker(1, 1, "broker-started", min_insync_replicas=2),
        znode(8, 1, "/config/topics/t", zk_op="create", data=config),
        state(10, 1, leader=1, leader_epoch=0, isr=[1, 2]),
        knows(100, 1, 10),
        state(20, 1, leader=1, leader_epoch=0, isr=[1]),
        knows(200, 1, 20),
        state(30, 1, leader=1, leader_epoch=0, isr=[1, 2]),
        knows(300, 1, 30),
        end(1000),
    )
    assert gaps(result, "below-min-isr") == expected


# -- produce


def sent(
    start: int,
    stop: int | None,
    outcome: str = "ok",
    *,
    process: str = "producer-0",
    acks: int = -1,
) -> list[Event]:
    events = [client(start, process, "invoke", "send", start, acks=acks)]
    if stop is not None:
        events.append(client(stop, process, outcome, "send", start, acks=acks))
    return events


def test_a_partition_is_unwritable_from_the_first_attempt_to_the_next_acknowledgement() -> None:
    result = measure(
        sent(0, 5 * MS),
        sent(1000 * MS, 1400 * MS, "info"),
        sent(1500 * MS, 1900 * MS, "fail", process="producer-1"),
        sent(1950 * MS, 2000 * MS),
        end(9 * SECOND),
    )
    assert result.verdict is Verdict.VALID
    assert gaps(result, "unwritable") == [(1000 * MS, 2000 * MS)]
    # There are no traces: nothing is said of what only they could show.
    assert {distribution.label for distribution in result.distributions} == {"unwritable"}


def test_one_long_attempt_is_an_unwritable_stretch_from_the_last_acknowledgement_on() -> None:
    result = measure(
        sent(0, 900 * MS, process="producer-1"),
        sent(50 * MS, 60 * MS),
        end(SECOND),
    )
    assert gaps(result, "unwritable") == [(60 * MS, 900 * MS)]


@pytest.mark.parametrize("acks", [0, 1])
def test_who_does_not_try_or_asks_for_less_than_all_misses_nothing(acks: int) -> None:
    result = measure(
        sent(0, 5 * MS),
        sent(5000 * MS, 5005 * MS),
        sent(1000 * MS, 2000 * MS, "info", acks=acks, process="producer-1"),
        end(9 * SECOND),
    )
    assert total(result, "unwritable").count == 0


@pytest.mark.parametrize("acks", [0, 1])
def test_an_answer_to_less_than_all_does_not_show_that_all_is_served(acks: int) -> None:
    result = measure(
        sent(0, 5 * MS),
        sent(1000 * MS, 2000 * MS, "info"),
        sent(1400 * MS, 1500 * MS, "ok", acks=acks, process="producer-1"),
        sent(2900 * MS, 3000 * MS),
        end(9 * SECOND),
    )
    assert gaps(result, "unwritable") == [(1000 * MS, 3000 * MS)]


def test_what_is_shorter_than_the_shortest_is_ordinary_latency() -> None:
    ordinary = sent(0, SHORTEST_NS - 1, "fail")
    assert total(measure(ordinary, end(SECOND)), "unwritable").count == 0
    assert total(measure(sent(0, SHORTEST_NS, "fail"), end(SECOND)), "unwritable").count == 1


def test_sends_to_a_topic_that_is_deleted_are_not_missed() -> None:
    result = measure(
        state(10, 1, leader=1, leader_epoch=0, isr=[1]),
        knows(1 * SECOND, 1, 10),
        znode(20, 1, "/admin/delete_topics/t", zk_op="create"),
        knows(2 * SECOND, 1, 20),
        sent(1500 * MS, 4 * SECOND, "fail"),
        end(9 * SECOND),
    )
    assert gaps(result, "unwritable") == [(1500 * MS, 2 * SECOND)]


attempts = st.lists(
    st.tuples(
        st.integers(0, 40), st.integers(0, 12) | st.none(), st.sampled_from(["ok", "fail", "info"])
    ),
    max_size=12,
)


@given(attempts, st.lists(st.integers(0, 60), max_size=3))
def test_it_agrees_with_looking_at_every_moment_wherever_the_history_is_cut(
    drawn: list[tuple[int, int | None, str]], cuts: list[int]
) -> None:
    tick = SHORTEST_NS // 2
    events: list[Event] = []
    acknowledged: set[int] = set()
    tried: list[tuple[int, int]] = []
    for number, (start, lasted, outcome) in enumerate(drawn):
        stop = None if lasted is None else (start + lasted) * tick
        events += sent(start * tick, stop, outcome, process=f"producer-{number}")
        tried.append((start, start if lasted is None else start + lasted))
        if lasted is not None and outcome == "ok":
            acknowledged.add(start + lasted)
    if not events:
        return
    rows = Segment.starting_at(ordered(table(events)), 0)
    edges = sorted({0, len(rows), *(cut % (len(rows) + 1) for cut in cuts)})
    parts = [summarise(rows.slice(a, b)) for a, b in pairwise(edges)]
    whole = parts[0]
    for part in parts[1:]:
        whole = join(whole, part)
    assert unwritable(whole).tolist() == [
        [start * tick, stop * tick] for start, stop in _by_hand(acknowledged, tried)
    ]


def _by_hand(acknowledged: set[int], tried: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """In ticks, two of which are the shortest stretch: between acknowledgements, from first to last attempt."""
    edges = [-1_000, *sorted(acknowledged), 1_000]
    collected = []
    for before, after in pairwise(edges):
        inside = [
            (max(start, before), min(stop, after))
            for start, stop in tried
            if start < after and stop > before
        ]
        # An attempt that was over when the gap began, or began when it ended, is none in it.
        if inside:
            start, stop = min(inside)[0], max(stop for _, stop in inside)
            if stop - start >= 2:
                collected.append((start, stop))
    return collected


# -- faults


def test_a_stretch_is_put_down_to_the_last_fault_in_force_when_it_began() -> None:
    forces = [
        *fault(0, "partition", 10, 900, "broker-1"),
        *fault(1, "pause", 150, 950, "broker-2"),
        *fault(2, "kill", 190, 195, "broker-3"),
    ]
    result = measure(
        forces,
        grant(10, SESSION[1], 1, 1),
        elected(100, 1, 1, 10),
        broker(200, 1, "controller-resigned", controller_epoch=1),
        grant(20, SESSION[2], 2, 2),
        elected(300, 2, 2, 20),
        end(1000),
    )
    assert [stretch.fault for stretch in result.stretches] == ["pause"]


def test_a_stretch_that_began_before_any_is_put_down_to_the_first_that_struck_while_it_lasted() -> (
    None
):
    result = measure(
        fault(0, "kill", 210, 900, "broker-1"),
        fault(1, "pause", 220, 900, "broker-1"),
        grant(10, SESSION[1], 1, 1),
        elected(100, 1, 1, 10),
        broker(200, 1, "controller-resigned", controller_epoch=1),
        grant(20, SESSION[2], 2, 2),
        elected(300, 2, 2, 20),
        end(1000),
    )
    assert [stretch.fault for stretch in result.stretches] == ["kill"]


def test_a_fault_that_was_skipped_or_is_over_makes_nothing() -> None:
    skipped: dict[str, Any] = {"fault": "pause", "fault_id": 1}
    result = measure(
        fault(0, "kill", 110, 150, "broker-3"),
        Event(time=160, process="nemesis", kind="fault-invoke", seq=160, **skipped),
        Event(time=170, process="nemesis", kind="fault-skipped", seq=170, **skipped),
        grant(10, SESSION[1], 1, 1),
        elected(100, 1, 1, 10),
        broker(200, 1, "controller-resigned", controller_epoch=1),
        end(1000),
    )
    assert [stretch.fault for stretch in result.stretches] == ["none"]


times = st.lists(st.integers(1, 100), min_size=1, max_size=8, unique=True)


@given(times, st.lists(st.tuples(st.integers(0, 3000), st.integers(0, 500)), max_size=4))
def test_the_stretches_of_all_faults_together_are_all_stretches(
    lasting: list[int], struck: list[tuple[int, int]]
) -> None:
    events: list[Event] = []
    index = 0
    for epoch, lasts in enumerate(lasting, start=1):
        node = 1 + epoch % 3
        events += grant(10 * epoch, SESSION[node], node, epoch)
        events += elected(index, node, epoch, 10 * epoch)
        events.append(broker(index + 200, node, "controller-resigned", controller_epoch=epoch))
        index += 200 + lasts
    for number, (start, held) in enumerate(struck):
        events += fault(number, f"fault-{number % 2}", start, start + held + 2, "broker-9")
    result = judge(Liveness(), [*events, end(index)])["liveness"]
    whole = total(result, "without-controller")
    parts = [
        distribution
        for distribution in result.distributions
        if distribution.label == "without-controller" and distribution.fault != "all"
    ]
    assert sum(part.count for part in parts) == whole.count == len(lasting)
    assert sum(part.total_ms for part in parts) == pytest.approx(whole.total_ms)
    assert max(part.max_ms for part in parts) == whole.max_ms
    assert whole.median_ms <= whole.p90_ms <= whole.max_ms <= whole.total_ms


def test_a_history_that_shows_nothing_of_it_is_unknown() -> None:
    result = measure(broker(1, 1, "broker-started"), end(10))
    assert (result.verdict, result.checked, result.distributions) == (Verdict.UNKNOWN, 0, ())


# -- spans

pairs = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 8)), max_size=8)


def table_of(drawn: list[tuple[int, int]]) -> Any:
    return spans((start, start + length) for start, length in drawn)


def moments(table: Any) -> set[int]:
    """The unit steps that the spans cover."""
    return {step for start, stop in table.tolist() for step in range(start, stop)}


@given(pairs, pairs, st.integers(0, 3))
def test_the_union_is_the_same_however_it_is_put_together(
    a: list[tuple[int, int]], b: list[tuple[int, int]], within: int
) -> None:
    both = np.array([(s, s + n) for s, n in (*a, *b)], dtype=np.int64).reshape(-1, 2)
    first = np.array([(s, s + n) for s, n in a], dtype=np.int64).reshape(-1, 2)
    rest = both[len(first) :]
    parts = np.concatenate([union(rest, within), union(first, within)])
    whole = union(both, within)
    assert union(parts, within).tolist() == whole.tolist()
    assert all(b[0] - a[1] > within for a, b in pairwise(whole))


@given(pairs, pairs)
def test_complement_and_intersection_cover_what_they_should(
    a: list[tuple[int, int]], b: list[tuple[int, int]]
) -> None:
    first, other = table_of(a), table_of(b)
    assert moments(complement(first, 5, 25)) == set(range(5, 25)) - moments(first)
    assert moments(intersection(first, other)) == moments(first) & moments(other)
