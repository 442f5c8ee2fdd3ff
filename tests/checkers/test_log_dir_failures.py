"""A failed log directory is handled in time: what correct brokers and controllers do is not held against them."""

from __future__ import annotations

import pytest

from nemesis.checkers.breaks.events import (
    append,
    broker,
    elected,
    grant,
    high_watermark,
    history,
    state,
    znode,
)
from nemesis.checkers.breaks.late_recovery import configured, fault, measured
from nemesis.checkers.breaks.leader_balance import led_by
from nemesis.checkers.breaks.log_dir_failures import (
    BEGUN,
    DEPENDS,
    alive,
    failed,
    failing,
    holds,
    notified,
)
from nemesis.checkers.breaks.notifications import finished
from nemesis.checkers.framework.model import Result, Verdict
from nemesis.checkers.liveness.log_dir_failures import LogDirFailures
from nemesis.history.events import Event
from tests.checkers.histories import only

SESSION_MS = 4
BOUND_MS = 7
"""A session of 4 ms, and a control request of 3 ms."""
HANDLED = (failed(2, 1), notified(5, 1))
LATER = elected(40, 9, 2, [2])
"""Shows that ZooKeeper had committed zxid 9."""


def judged(*parts: Event | list[Event], punctual: list[Event] | None = None) -> Result:
    return only(LogDirFailures(), history(*parts, punctual or measured(40)))


def state_of(*events: Event | list[Event]) -> Verdict:
    return judged(*BEGUN, *events).verdict


def test_what_a_broker_does_not_report() -> None:
    result = judged(*BEGUN, failing(2, 9))
    (finding,) = result.findings
    assert (finding.verdict, finding.key) == (Verdict.INVALID, "broker-1")
    assert finding.sentence == (
        "A log directory refused 1 of the calls of broker-1, and the broker did not report that it failed."
    )


@pytest.mark.parametrize(
    "events",
    [
        pytest.param([*failing(2, 9), *HANDLED[:1], notified(5, 1)], id="reported"),
        pytest.param(failing(2, 9, '{"disk":{"broker-1":{"refused":{}}}}'), id="nothing-refused"),
        pytest.param(failing(2, 9, '{"disk":{}}'), id="not-counted"),
        pytest.param(failing(2, 9, "torn"), id="not-readable"),
    ],
)
def test_what_a_broker_need_not_report(events: list[Event]) -> None:
    assert state_of(*events) is Verdict.VALID


def test_a_report_of_another_time_or_broker_does_not_count() -> None:
    assert state_of(failing(2, 9), failed(10, 1), notified(5, 1)) is Verdict.INVALID
    assert state_of(failing(2, 9), failed(3, 2), notified(5, 2)) is Verdict.INVALID


@pytest.mark.parametrize(
    "served",
    [
        append(7, 1, 1, 0),
        high_watermark(7, 1, 1, 1, [1]),
        broker(7, 1, "become-follower", topic="t", partition=0, leader=2, leader_epoch=1),
    ],
    ids=lambda event: event.kind,
)
def test_a_lost_replica_is_not_served(served: Event) -> None:
    result = judged(*BEGUN, *HANDLED, served)
    (finding,) = result.findings
    assert finding.sentence == (
        "Broker 1 served t-0 5 ms after the directory of its log had failed."
    )


@pytest.mark.parametrize(
    "served",
    [
        pytest.param([append(2, 1, 1, 0)], id="within-the-same-step"),
        pytest.param([append(7, 2, 1, 0)], id="by-another-broker"),
        pytest.param([append(7, 1, 1, 0, incarnation=2)], id="by-the-next-process"),
        pytest.param([append(7, 1, 1, 0, partition=1)], id="another-directory"),
        pytest.param([holds(6, 1, "/b"), append(7, 1, 1, 0)], id="opened-in-another"),
    ],
)
def test_what_may_be_served(served: list[Event]) -> None:
    assert state_of(*HANDLED, served) is Verdict.VALID


@pytest.mark.parametrize(("last", "is_late"), [(2 + SESSION_MS, False), (3 + SESSION_MS, True)])
def test_a_broker_notifies_the_controller_in_time(last: int, is_late: bool) -> None:
    assert (state_of(failed(2, 1), alive(last, 1)) is Verdict.INVALID) is is_late


@pytest.mark.parametrize(
    "events",
    [
        pytest.param([notified(5, 1)], id="notified"),
        pytest.param(fault(3, 19), id="another-fault"),
        pytest.param([broker(4, 1, "session-state", session_state="suspended")], id="no-session"),
        pytest.param([broker(4, 1, "broker-registered", zxid=5)], id="a-new-session"),
    ],
)
def test_who_need_not_notify(events: list[Event]) -> None:
    assert state_of(failed(2, 1), events, alive(20, 1)) is Verdict.VALID


def test_the_fault_of_the_directory_itself_excuses_nothing() -> None:
    assert state_of(failing(1, 30), failed(2, 1), alive(20, 1)) is Verdict.INVALID


def test_an_older_notification_and_that_of_another_broker_do_not_count() -> None:
    earlier = broker(1, 1, "broker-registered", zxid=6)
    assert state_of(notified(5, 1), earlier, failed(2, 1), alive(20, 1)) is Verdict.INVALID
    assert state_of(notified(5, 2), failed(2, 1), alive(20, 1)) is Verdict.INVALID


@pytest.mark.parametrize(("last", "is_late"), [(2 + BOUND_MS, False), (3 + BOUND_MS, True)])
def test_the_leadership_is_taken_away_in_time(last: int, is_late: bool) -> None:
    assert (state_of(DEPENDS, *HANDLED, alive(last, 1)) is Verdict.INVALID) is is_late


def test_a_member_of_the_isr_is_judged_as_the_leader_is() -> None:
    follows = [state(4, 20, 2, 1, [1, 2]), elected(1, 4, 2, [1, 2])]
    result = judged(*BEGUN, follows, *HANDLED, alive(12, 1))
    (finding,) = result.findings
    assert finding.sentence == (
        "Broker 1 was still in the ISR of t-0 for 10 ms in which the directory of its log had failed and no other "
        "fault was in force; the configuration allows at most 7 ms."
    )


@pytest.mark.parametrize(
    "events",
    [
        pytest.param([*led_by(9, 6, 2, [2], 2)], id="handled-in-time"),
        pytest.param([*led_by(9, 6, -1, [1], 2)], id="the-last-member"),
        pytest.param(fault(5, 15), id="another-fault"),
        pytest.param([broker(15, 1, "broker-registered", zxid=5)], id="a-new-session"),
        pytest.param([holds(6, 1, "/b")], id="opened-in-another"),
        pytest.param(
            [broker(6, 1, "replica-stopped", topic="t", partition=0, step="delete")], id="deleted"
        ),
        pytest.param([znode(6, 20, "/admin/delete_topics/t", zk_op="create")], id="to-be-deleted"),
        pytest.param([znode(6, 20, "/controller", zk_op="delete"), LATER], id="no-controller"),
        pytest.param(
            [*grant(6, 30, 3, 2), broker(14, 3, "controller-failover", controller_epoch=2)],
            id="a-new-one",
        ),
    ],
)
def test_who_may_stay_in_the_isr(events: list[Event]) -> None:
    assert state_of(DEPENDS, *HANDLED, events, alive(20, 1)) is Verdict.VALID


def test_a_replica_that_is_only_stopped_still_lies_there() -> None:
    stopped = broker(6, 1, "replica-stopped", topic="t", partition=0, step="stop")
    assert state_of(DEPENDS, *HANDLED, stopped, alive(20, 1)) is Verdict.INVALID


def test_a_dead_process_depends_on_nothing() -> None:
    again = alive(20, 1)
    reborn = append(20, 1, 1, 0, partition=9, incarnation=2)
    assert state_of(DEPENDS, *HANDLED, again) is Verdict.INVALID
    assert state_of(DEPENDS, *HANDLED, reborn) is Verdict.VALID


def test_a_slow_machine_is_not_a_late_cluster() -> None:
    late = (*BEGUN, DEPENDS, failed(2, 1), notified(5, 1))
    for slow in (measured(400, load=291), measured(400, lag=101)):
        assert judged(*late, alive(300, 1), punctual=slow).verdict is Verdict.UNKNOWN
    assert judged(*late, alive(300, 1), punctual=measured(400, load=1)).verdict is Verdict.INVALID


def test_what_a_long_step_of_the_broker_explains_is_not_a_finding() -> None:
    slow = measured(400, load=90)
    for last, verdict in ((92, Verdict.VALID), (93, Verdict.INVALID)):
        assert judged(*BEGUN, *HANDLED, append(last, 1, 1, 0), punctual=slow).verdict is verdict


def test_nothing_is_decided_where_no_broker_reports_its_directories() -> None:
    older = judged(configured(), grant(2, 20, 2, 1), finished(1, 1), append(3, 1, 1, 0))
    assert older.verdict is Verdict.UNKNOWN
    assert judged(*BEGUN).verdict is Verdict.VALID
