"""Internal topics are left alone unless a scenario asks, in simulation."""

from __future__ import annotations

from collections import Counter

from nemesis.faults.kill import Kill
from nemesis.faults.plan import PlannedFault
from nemesis.history.events import Kind
from nemesis.testing import PlanRun, assert_valid, simulate_plan
from nemesis.workloads.internal_topics import OFFSETS_TOPIC

PLAN = (PlannedFault(4.5, Kill(duration_s=5.0, selector="controller")),)


def requests(run: PlanRun) -> Counter[str | None]:
    """Count by function what succeeded of the requests about the topic of offsets."""
    return Counter(
        event.f
        for event in run.simulated.events
        if event.topic == OFFSETS_TOPIC and event.kind == Kind.OK
    )


def test_movers_move_the_topic_of_offsets_when_they_are_asked() -> None:
    run = simulate_plan(
        PLAN, "reassignment", seed=1, time_limit_s=24, options={"internal_topics": True}
    )
    assert_valid(run)
    assert requests(run)["describe"] > 0
    assert requests(run)["reassign"] > 0


def test_administrators_create_and_delete_the_topic_of_offsets_when_they_are_asked() -> None:
    run = simulate_plan(
        PLAN, "topics", seed=1, time_limit_s=30, options={"internal_topics": True, "names": 1}
    )
    assert_valid(run)
    assert requests(run)["create-topic"] > 0
    assert requests(run)["delete-topic"] > 0


def test_administrators_leave_the_topic_of_offsets_alone_unasked() -> None:
    run = simulate_plan(
        PLAN, "groups", seed=1, time_limit_s=24, options={"administration_clients": 2}
    )
    assert_valid(run)
    done = Counter(event.f for event in run.simulated.events if event.kind == Kind.OK)
    assert done["commit-offset"] > 0, "the topic of offsets does not exist"
    assert done["reassign"] > 0
    assert not requests(run)
