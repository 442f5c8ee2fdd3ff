"""The workload `groups` in simulation: rebalances, zombies and commits happen, while a coordinator fails."""

from __future__ import annotations

from collections import Counter
from functools import cache
from itertools import pairwise

import pytest

from nemesis.checkers.framework.model import Verdict
from nemesis.faults import plan as plans
from nemesis.history.events import Event, Kind
from nemesis.testing import assert_valid, simulate_plan
from nemesis.testing.running import PlanRun

PLAN = plans.decode(
    [
        {
            "at_s": 12.0,
            "fault": "kill",
            "target": 'coordinator("group-0")',
            "duration_s": 5.0,
        },
        {
            "at_s": 24.0,
            "fault": "partition",
            "shape": "one-node",
            "target": "broker-2",
            "zookeeper": "majority",
            "duration_s": 6.0,
        },
    ]
)
PROPERTIES = (
    "one-owner-per-generation",
    "generation-grows",
    "fenced-member",
    "offsets-read-as-committed",
)


@cache
def run() -> PlanRun:
    return simulate_plan(PLAN, "groups", seed=3, time_limit_s=45)


def of_group(f: str, kind: Kind = Kind.OK) -> list[Event]:
    return [event for event in run().simulated.events if event.f == f and event.kind == kind]


def test_the_reference_keeps_its_promises_and_each_was_tried() -> None:
    assert_valid(run())
    verdicts = {result.property: result for result in run().outcome.results}
    assert {verdicts[name].verdict for name in PROPERTIES} == {Verdict.VALID}
    assert all(verdicts[name].checked > 10 for name in PROPERTIES)


def test_members_come_go_and_rebalance() -> None:
    generations = Counter(event.group for event in of_group("join-group"))
    assert generations.keys() == {"group-0", "group-1", "group-2"}
    assert max(event.generation or 0 for event in of_group("join-group")) > 4
    assert len({event.member for event in of_group("join-group")}) > 6
    reasons = {event.reason for event in run().simulated.events if event.kind == Kind.REVOKED}
    assert {"rebalance", "lost"} <= reasons


def test_zombies_are_refused() -> None:
    refused = Counter(event.error for event in of_group("commit-offset", Kind.FAIL))
    assert refused["UNKNOWN_MEMBER_ID"] + refused["ILLEGAL_GENERATION"] > 0


def test_a_partition_is_read_from_where_the_group_has_left_off() -> None:
    eager = {event.process for event in of_group("join-group") if event.assignor == "range"}
    polls = [event for event in of_group("poll") if event.process.split(".")[0] in eager]
    committed = {event.offset for event in of_group("commit-offset", Kind.INVOKE)}
    first: dict[tuple[str, str | None, int | None], int | None] = {}
    for event in polls:
        first.setdefault((event.process, event.topic, event.partition), event.offset)
    assert len(first) > 20
    assert set(first.values()) <= {0, *committed}


def test_each_commit_has_a_number_of_its_own_and_the_end_is_read() -> None:
    numbers = [event.value for event in of_group("commit-offset", Kind.INVOKE)]
    assert len(numbers) == len(set(numbers)) > 50
    readers = {event.process for event in of_group("fetch-offset")}
    assert {"final-group-0", "final-group-1", "final-group-2"} <= readers


def test_a_lone_group_is_empty_between_its_members() -> None:
    """Its generations grow by one when a member leaves, and by one when the next one joins."""
    joins = [event for event in of_group("join-group") if event.group == "group-2"]
    assert {event.process for event in joins} == {"member-lone-2", "final-group-2"}
    assert {event.count for event in joins} == {1}
    members = {event.member: event.generation or 0 for event in reversed(joins)}
    generations = sorted(members.values())
    assert len(generations) > 2
    assert all(later - former >= 2 for former, later in pairwise(generations))


@pytest.mark.parametrize("f", ["commit-offset", "fetch-offset"])
def test_a_request_names_several_partitions_or_one_and_each_is_an_operation(f: str) -> None:
    """Members never send a second request before the first is answered: more operations are of one request."""
    begun: dict[str, list[Event]] = {}
    sizes: Counter[int] = Counter()
    for event in run().simulated.events:
        if event.f != f:
            continue
        under_way = begun.setdefault(event.process, [])
        if event.kind == Kind.INVOKE:
            under_way.append(event)
            continue
        if under_way:
            partitions = {(asked.topic, asked.partition) for asked in under_way}
            assert len(partitions) == len(under_way)
            sizes[len(under_way)] += 1
            under_way.clear()
    assert sizes[1] > 10
    assert sum(times for size, times in sizes.items() if size > 1) > 10


def test_static_members_come_back_under_their_instance_id() -> None:
    joined = [event for event in of_group("join-group") if event.instance is not None]
    members = {(event.instance, event.member) for event in joined}
    instances = {event.instance for event in joined}
    assert instances == {"member-0", "member-1"}
    assert len(members) > len(instances) + 2, "each process has a member id of its own"
    generations: dict[tuple[str | None, int | None], set[str | None]] = {}
    for event in joined:
        generations.setdefault((event.instance, event.generation), set()).add(event.member)
    assert max(map(len, generations.values())) > 1, "a membership is taken over without a rebalance"


def test_a_process_that_was_taken_over_is_fenced_and_static_members_do_not_leave() -> None:
    fenced = [e for e in of_group("commit-offset", Kind.FAIL) if e.error == "FENCED_INSTANCE_ID"]
    assert fenced
    assert all(event.instance is not None for event in fenced)
    left = of_group("leave-group", Kind.INVOKE)
    assert {event.member for event in left if event.instance is not None} <= {None}
    assert all(event.member is not None for event in left if event.instance is None)


def test_a_cooperative_member_keeps_partitions_through_a_rebalance() -> None:
    """It owns them in the generations before and after, reads them while it joins, and gives up what it must."""
    owned: dict[tuple[str, str | None, int | None], Event] = {}
    kept, given_up = set(), set()
    for event in run().simulated.events:
        key = (event.process, event.topic, event.partition)
        if event.kind == Kind.ASSIGNED:
            before = owned.get(key)
            if before is not None and before.member == event.member:
                assert (event.generation or 0) > (before.generation or 0)
                kept.add(event.group)
            owned[key] = event
        elif event.kind == Kind.REVOKED:
            given_up.add((event.group, event.reason))
            owned.pop(key, None)
    assert kept == {"group-1"}, "the eager group gives everything up"
    assert ("group-1", "rebalance") in given_up


def test_a_cooperative_member_reads_while_it_joins() -> None:
    joining: dict[str, int] = {}
    polled = 0
    for event in run().simulated.events:
        if event.f == "join-group":
            joining[event.process] = event.kind == Kind.INVOKE
        elif event.f == "poll" and event.kind == Kind.INVOKE and "." in event.process:
            polled += bool(joining.get(event.process.split(".")[0]))
    assert polled > 5


def test_members_change_their_topics_and_are_assigned_nothing_else() -> None:
    subscribed: dict[str, list[str]] = {}
    subscriptions = set()
    for event in run().simulated.events:
        if event.f == "join-group" and event.kind == Kind.OK:
            subscribed[event.process] = event.subscribed or []
            subscriptions.add(tuple(event.subscribed or []))
        elif event.kind == Kind.ASSIGNED:
            assert event.topic in subscribed[event.process]
    assert len(subscriptions) > 1
    assert max(map(len, subscriptions)) > 1


def test_a_topic_that_is_created_later_is_assigned() -> None:
    """The leader of the group joins again when its metadata names the partition."""
    asked = of_group("create-topic", Kind.INVOKE)
    created = next(event for event in asked if event.topic == "later-0")
    assigned = [event for event in run().simulated.events if event.kind == Kind.ASSIGNED]
    later = [event for event in assigned if event.topic == "later-0"]
    assert {event.group for event in later} == {"group-0", "group-1", "group-2"}
    assert min(event.time for event in later) > created.time


def test_a_partition_that_is_added_is_assigned_written_and_read_at_the_end() -> None:
    events = run().simulated.events
    grown = {(e.topic, (e.partition_count or 0) - 1): e for e in of_group("create-partitions")}
    assert len(grown) > 2
    used = 0
    for tp, growth in grown.items():
        later = [e for e in events if (e.topic, e.partition) == tp and e.time > growth.time]
        assert Kind.FINAL_READ in {event.kind for event in later}
        finally_read = {e.process for e in later if (e.f, e.kind) == ("fetch-offset", Kind.OK)}
        assert finally_read >= {"final-group-0", "final-group-1"}
        functions = {event.f for event in later if event.kind == Kind.OK}
        used += functions >= {"send", "poll", "commit-offset"}
    assert used > 1


def test_a_fault_strikes_the_coordinator() -> None:
    """The broker that answers the group's heartbeats before is the one that is killed."""
    events = run().simulated.events
    struck = next(event for event in events if event.kind == Kind.FAULT_APPLIED)
    answered = [e for e in of_group("heartbeat") if e.group == "group-0" and e.time < struck.time]
    assert struck.targets == [f"broker-{answered[-1].node}"]
