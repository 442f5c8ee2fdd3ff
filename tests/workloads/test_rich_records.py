"""Batches of several records, for several partitions at once: each record is an operation of its own."""

from __future__ import annotations

from collections import defaultdict

import pytest

from nemesis.faults.plan import PlannedFault
from nemesis.faults.session import ExpireSession
from nemesis.history.events import Event, Kind
from nemesis.testing import PlanRun, assert_valid, simulate_plan

PLAN = (PlannedFault(4.0, ExpireSession(selector="controller")),)


@pytest.fixture(scope="module")
def run() -> PlanRun:
    return simulate_plan(PLAN, "rich-clients")


def sends(run: PlanRun) -> list[Event]:
    return [event for event in run.simulated.events if event.f == "send"]


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


def test_one_request_reaches_several_partitions(run: PlanRun) -> None:
    in_flight: dict[str, set[tuple[str | None, int | None]]] = defaultdict(set)
    most = 0
    for event in sends(run):
        producer = (event.process or "").split(".")[0]
        if event.kind == Kind.INVOKE:
            in_flight[producer].add((event.topic, event.partition))
            most = max(most, len(in_flight[producer]))
        else:
            in_flight[producer].clear()
    assert most > 1
