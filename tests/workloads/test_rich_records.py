"""Batches of several records, requests for several partitions at once: each record sent and each partition read is an
operation of its own."""

from __future__ import annotations

from collections import defaultdict

import pytest

from nemesis.faults.kill import Kill
from nemesis.faults.plan import PlannedFault
from nemesis.faults.session import ExpireSession
from nemesis.history.events import Event, Kind
from nemesis.testing import PlanRun, assert_valid, simulate_plan
from nemesis.workloads.reads import MAX_BYTES
from nemesis.workloads.record_values import LARGE_BYTES

PLAN = (
    PlannedFault(4.0, ExpireSession(selector="controller")),
    PlannedFault(8.0, Kill(duration_s=3.0, selector="bystander")),
)


@pytest.fixture(scope="module")
def run() -> PlanRun:
    return simulate_plan(PLAN, "rich-clients", options={"administration_clients": 0})


def sends(run: PlanRun) -> list[Event]:
    return [event for event in run.simulated.events if event.f == "send"]


def consumer_polls(run: PlanRun) -> list[Event]:
    return [
        event
        for event in run.simulated.events
        if event.f == "poll" and (event.process or "").startswith("consumer")
    ]


def test_a_correct_cluster_is_valid(run: PlanRun) -> None:
    assert_valid(run)


def test_each_record_is_invoked_once_and_completed_once(run: PlanRun) -> None:
    kinds: dict[tuple[str | None, int | None], list[str]] = defaultdict(list)
    for event in sends(run):
        kinds[event.process, event.value].append(event.kind)
    assert all(first == Kind.INVOKE and len(rest) == 1 for first, *rest in kinds.values())


def test_losses_that_acks_permits_are_counted(run: PlanRun) -> None:
    (unseen,) = [result for result in run.outcome.results if result.property == "unseen"]
    weak = [event for event in sends(run) if event.kind == Kind.OK and event.acks in (0, 1)]
    assert {event.acks for event in weak} == {0, 1}
    assert unseen.numbers["acks_0_or_1_sends"] == len(weak)


def test_records_of_a_batch_stand_one_after_the_other(run: PlanRun) -> None:
    """Values are numbered in the order of a request, so neighbours of one partition and producer were in one batch."""
    offsets = {
        (event.topic, event.partition, event.value): event.offset
        for event in sends(run)
        if event.kind == Kind.OK and event.acks != 0
        if event.value is not None and event.offset is not None
    }
    followed = [
        offset + 1 == offsets[topic, partition, value + 1]
        for (topic, partition, value), offset in offsets.items()
        if (topic, partition, value + 1) in offsets
    ]
    assert len(followed) > 100
    assert sum(followed) > 0.9 * len(followed)


def most_partitions_at_once(events: list[Event]) -> int:
    """Return the most partitions that one client asked for before it got an answer."""
    in_flight: dict[str, set[tuple[str | None, int | None]]] = defaultdict(set)
    most = 0
    for event in events:
        client = (event.process or "").split(".")[0]
        if event.kind == Kind.INVOKE:
            in_flight[client].add((event.topic, event.partition))
            most = max(most, len(in_flight[client]))
        else:
            in_flight[client].clear()
    return most


def test_one_request_reaches_several_partitions(run: PlanRun) -> None:
    assert most_partitions_at_once(sends(run)) > 1


def test_one_fetch_asks_for_several_partitions(run: PlanRun) -> None:
    assert most_partitions_at_once(consumer_polls(run)) > 1


def test_a_process_reads_one_partition(run: PlanRun) -> None:
    partitions = defaultdict(set)
    for event in consumer_polls(run):
        partitions[event.process].add((event.topic, event.partition))
    assert len(partitions) > 2
    assert all(len(of_process) == 1 for of_process in partitions.values())


def test_consumers_and_final_readers_get_records_larger_than_a_fetch(run: PlanRun) -> None:
    every = 100
    polls = [event for event in run.simulated.events if event.f == "poll" and event.values]
    readers = {
        (event.process or "").split("-")[0]
        for event in polls
        if any(value % every == 0 for value in event.values or ())
    }
    assert LARGE_BYTES > MAX_BYTES
    assert readers == {"consumer", "final"}


def test_a_follower_that_starts_again_takes_the_fetch_session_of_a_consumer(run: PlanRun) -> None:
    """The slots of a broker are those of two followers and two consumers, and the dead follower's is still taken."""
    assert "FETCH_SESSION_ID_NOT_FOUND" in {event.error for event in consumer_polls(run)}
