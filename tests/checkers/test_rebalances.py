"""Rebalances end in time: what a correct group may take, and what is too long."""

from __future__ import annotations

import pytest

from nemesis.checkers import CHECKERS
from nemesis.checkers.breaks.events import harness, history
from nemesis.checkers.breaks.groups import joined, loaded, request, static
from nemesis.checkers.breaks.late_recovery import fault, measured
from nemesis.checkers.breaks.rebalances import (
    ALONE,
    RETURNED,
    SILENT,
    UNANSWERED,
    configured,
    joining,
    syncing,
)
from nemesis.checkers.framework.model import Result, Verdict
from nemesis.history.events import Event
from nemesis.history.vocabulary.harness import STORE_TIMEOUT
from tests.checkers.histories import only

NAME = "rebalances-end"


def judged(*events: Event | list[Event]) -> Result:
    parts = (configured(), *events, measured(5000))
    return only(CHECKERS[NAME].check(), history(*parts), NAME)


def test_without_the_time_outs_nothing_is_judged() -> None:
    result = only(CHECKERS[NAME].check(), history(joining(1, 700, count=0)), NAME)
    assert result.verdict is Verdict.UNKNOWN


def test_what_rebalances_took_is_stated() -> None:
    second = [
        *request(500, "join-group", 1, 2, taking=100, count=0),
        *request(600, "sync-group", 1, 2),
    ]
    result = judged(joining(1, 300, count=1), syncing(301, 0), second)
    assert result.verdict is Verdict.VALID
    assert result.numbers == {
        "rebalances": 2.0,
        "join_bound_ms": 600.0,
        "median_ms": 200.5,
        "longest_ms": 300.0,
    }


@pytest.mark.parametrize(
    ("taking", "columns", "is_late"),
    [
        (600, UNANSWERED, False),
        (601, UNANSWERED, True),
        (601, {"count": 0}, True),
        (601, {"kind": "info", "error": "DISCONNECTED"}, False),
        (601, {"kind": "info", "error": "CANCELLED"}, False),
    ],
)
def test_a_join_is_answered_in_time(taking: int, columns: dict[str, object], is_late: bool) -> None:
    assert bool(judged(joining(1, taking, **columns)).findings) == is_late


@pytest.mark.parametrize(
    ("taking", "store_ms", "is_late"),
    [(700, 500, False), (701, 500, True), (600, 50, False), (601, 50, True)],
)
def test_a_static_member_waits_until_its_takeover_is_stored(
    taking: int, store_ms: int, is_late: bool
) -> None:
    store = harness(0, "timeout-setting", setting=STORE_TIMEOUT, duration_ms=store_ms)
    join = joining(1, taking, kind="fail", error="COORDINATOR_NOT_AVAILABLE")
    assert bool(judged(store, static(join)).findings) == is_late
    assert bool(judged(store, join).findings) == (taking > 600), "a dynamic member does not"


def test_a_fault_in_force_explains_all() -> None:
    assert not judged(fault(0, 100), joining(50, 700, **UNANSWERED)).findings
    assert not judged(joining(50, 700, **UNANSWERED), fault(749, 760)).findings
    assert judged(fault(0, 10), joining(50, 700, **UNANSWERED)).findings


def test_a_slow_machine_is_not_the_cluster() -> None:
    late = joining(1, 700, **UNANSWERED)
    for slow in ({"lag": 101}, {"load": 500}):
        events = (configured(), late, measured(4000, **slow))
        result = only(CHECKERS[NAME].check(), history(*events), NAME)
        assert result.verdict is Verdict.UNKNOWN


def test_a_generation_ends_with_the_session_of_a_member() -> None:
    (finding,) = judged(SILENT).findings
    assert finding.sentence == (
        "Generation 1 of member-b did not end after member-a fell silent, within 500 ms in g, without an active "
        "fault."
    )


def test_a_heartbeat_within_the_session_of_another_member_is_right() -> None:
    early = request(500, "heartbeat", 1, 1, member="b", taking=0)
    assert not judged(SILENT[:3], early).findings


def test_a_new_generation_goes_on() -> None:
    assert not judged(SILENT[:3], request(600, "heartbeat", 1, 2, member="b")).findings


def test_sessions_begin_again_when_groups_are_loaded() -> None:
    assert not judged(SILENT, loaded(300, 1)).findings
    assert not judged(SILENT[1:]).findings


def test_a_session_begins_when_the_groups_are_loaded_at_the_latest() -> None:
    """A broker that loads accepts heartbeats; only another answer shows that it has loaded."""
    beats = request(1, "heartbeat", 1, 1, taking=0), request(600, "heartbeat", 1, 1, taking=2)
    assert not judged(loaded(0, 1), *beats).findings
    for looked_up, is_late in ((50, True), (150, False)):
        other = request(looked_up, "sync-group", 1, 1, member="b", taking=0)
        assert bool(judged(loaded(0, 1), *beats, other).findings) is is_late


def test_a_request_in_doubt_may_have_been_a_sign_of_life() -> None:
    unknown = request(2, "heartbeat", 1, 1, **UNANSWERED)
    assert not judged(SILENT, unknown).findings


def test_a_static_member_may_be_taken_over() -> None:
    columns = [{n: getattr(e, n) for n in e.__struct_fields__} for e in SILENT]
    assert not judged([Event(**{**each, "instance": "i"}) for each in columns]).findings


def test_a_broker_that_was_paused_has_its_timers_late() -> None:
    assert not judged(SILENT, fault(2, 450)).findings
    assert judged(SILENT, fault(2, 300)).findings


def test_a_member_that_was_silent_for_its_session_is_refused() -> None:
    (finding,) = judged(RETURNED).findings
    assert finding.sentence == (
        "Broker 1 did not end the session of member-a, which was silent, within 500 ms in g, without an active fault."
    )
    refused = request(600, "heartbeat", 1, 1, kind="fail", error="UNKNOWN_MEMBER_ID")
    assert not judged(RETURNED[:3], refused).findings
    assert not judged(RETURNED[:3], request(500, "heartbeat", 1, 1)).findings


def test_a_member_that_was_not_silent_comes_back() -> None:
    unknown = request(300, "heartbeat", 1, 1, **UNANSWERED)
    for sign in (unknown, request(300, "heartbeat", 1, 1), loaded(300, 1), fault(2, 450)):
        assert not judged(RETURNED, sign).findings
    assert judged(RETURNED, request(300, "fetch-offset", 1, 1)).findings


def test_a_member_alone_has_its_assignment_in_time() -> None:
    (finding,) = judged(ALONE).findings
    assert finding.sentence == (
        "member-a joined and got no assignment, and no other process was there, within 1,800 ms in g, without an "
        "active fault."
    )
    assert not judged(ALONE, syncing(1901, 1)).findings


def test_another_process_may_have_begun_a_rebalance() -> None:
    assert not judged(ALONE, joined(500, 1, 2, member="b")).findings


def test_a_member_that_has_gone_does_not_wait() -> None:
    assert not judged(ALONE[:4], request(3000, "heartbeat", 1, 1)).findings


def test_what_comes_after_clients_have_ended_is_not_judged() -> None:
    end = harness(300, "phase", phase="convergence")
    assert not judged(end, joining(1, 700, **UNANSWERED)).findings
