"""Administrators change topics that are written and read, in simulation."""

from __future__ import annotations

from collections import Counter

import pytest

from nemesis.faults.kill import Kill
from nemesis.faults.partition import Partition
from nemesis.faults.plan import PlannedFault
from nemesis.history.events import Event, Kind
from nemesis.testing import PlanRun, assert_valid, simulate_plan

PLAN = (
    PlannedFault(
        4.0,
        Partition(
            duration_s=6.23, shape="from-zookeeper", selector="controller", zookeeper="neutral"
        ),
    ),
    PlannedFault(4.7, Kill(duration_s=5.0, selector="bystander")),
    PlannedFault(15.68, Kill(duration_s=5.26, selector="leader")),
)
"""The controller loses its session; meanwhile its replica of ``short-1-0`` is taken away, and it hears of it nothing.
Then the topic is deleted, created again, and assigned to it: once its log of the old topic kept the new one out."""


@pytest.fixture(scope="module")
def run() -> PlanRun:
    return simulate_plan(PLAN, "rich-clients", seed=2, time_limit_s=30)


def operations(run: PlanRun, kind: Kind) -> Counter[str | None]:
    return Counter(event.f for event in run.simulated.events if event.kind == kind)


def test_a_correct_cluster_is_valid(run: PlanRun) -> None:
    assert_valid(run)


def test_each_request_is_made_and_most_succeed(run: PlanRun) -> None:
    succeeded = operations(run, Kind.OK)
    for function in ("create-topic", "delete-topic", "create-partitions", "reassign"):
        assert succeeded[function] > 0
    assert operations(run, Kind.INVOKE)["elect-leaders"] > 0
    assert succeeded["delete-records"] > 0
    assert succeeded["alter-config"] > 0


def test_topics_of_one_name_are_written_and_read_one_after_the_other(run: PlanRun) -> None:
    def topic_ids(function: str) -> set[str | None]:
        return {event.topic_id for event in _about_short(run, function)}

    assert len(topic_ids("send")) > 2
    assert len({event.topic_id for event in _about_short(run, "poll") if event.values}) > 2


def _about_short(run: PlanRun, function: str) -> list[Event]:
    return [
        event
        for event in run.simulated.events
        if event.kind == Kind.OK
        and event.f == function
        and (event.topic or "").startswith("short-0")
    ]
