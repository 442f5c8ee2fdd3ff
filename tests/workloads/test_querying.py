"""Queries of every broker, as operations of the history, in simulation."""

from __future__ import annotations

from collections import defaultdict

from nemesis.faults.plan import PlannedFault
from nemesis.faults.session import ExpireSession
from nemesis.history.events import Event, Kind
from nemesis.testing import assert_valid, simulate_plan
from nemesis.workloads.final_questions import TIMES
from nemesis.workloads.querying import FUNCTIONS

OPTIONS = {"producers": 2, "consumers": 1, "query_interval_ms": 50}


def test_every_query_is_answered_by_leaders_and_followers_refuse_offsets() -> None:
    run = simulate_plan((PlannedFault(5.0, ExpireSession(selector="leader")),), options=OPTIONS)
    assert_valid(run)
    answers: defaultdict[str, list[Event]] = defaultdict(list)
    refused: set[tuple[str | None, str | None]] = set()
    for event in run.simulated.events:
        if event.f in FUNCTIONS and event.kind == Kind.OK:
            answers[event.f].append(event)
        if event.f in FUNCTIONS and event.kind in (Kind.FAIL, Kind.INFO):
            refused.add((event.f, event.error))
    assert set(answers) == set(FUNCTIONS)
    assert {event.node for event in answers["metadata"]} == {1, 2, 3}
    assert ("latest-offset", "NOT_LEADER_OR_FOLLOWER") in refused
    assert max(event.leader_epoch or 0 for event in answers["metadata"]) > 0
    assert max(event.offset or 0 for event in answers["latest-offset"]) > 0
    assert all(event.offset == 0 for event in answers["earliest-offset"])
    assert any((event.offset or 0) > 0 for event in answers["offset-by-time"])
    assert any((event.offset or 0) > 0 for event in answers["epoch-end"])


def test_at_the_end_every_replica_is_asked_for_offsets_by_time() -> None:
    run = simulate_plan((), options={"producers": 2, "consumers": 1})
    assert_valid(run)
    answers = [
        event
        for event in run.simulated.events
        if event.f == "offset-by-time" and event.kind == Kind.OK
    ]
    replicas = {(event.topic, event.partition, event.node) for event in answers}
    partitions = {(event.topic, event.partition) for event in answers}
    assert len(partitions) > 1
    assert replicas == {(*tp, node) for tp in partitions for node in (1, 2, 3)}
    assert len(answers) == TIMES * len(replicas)
    assert max(event.offset or 0 for event in answers) > 0
