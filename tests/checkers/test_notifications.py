"""What a correct cluster does with notifications in ZooKeeper; a slow machine is not a stuck controller."""

from __future__ import annotations

import pytest

from nemesis.checkers import CHECKERS
from nemesis.checkers.breaks.events import broker, grant, harness, history, znode
from nemesis.checkers.breaks.late_recovery import configured, fault, measured
from nemesis.checkers.breaks.notifications import (
    END,
    ISR_CHANGE,
    LOG_DIR_EVENT,
    created,
    finished,
    later,
)
from nemesis.checkers.framework.model import Result, Verdict
from nemesis.history.events import Event
from tests.checkers.histories import only

BOUND_MS = 4
"""A session time-out of 3 ms, and a tick."""
IN_OFFICE = (configured(), grant(2, 10, 1, 1), finished(1, 1), created(3, ISR_CHANGE))


def judged(*parts: Event | list[Event]) -> Result:
    return only(CHECKERS["notifications-handled"].check(), history(*parts))


def deleted(zxid: int, path: str = LOG_DIR_EVENT) -> Event:
    return znode(zxid, 10, path, zk_op="delete")


def test_a_failover_deletes_what_was_there() -> None:
    result = judged(created(1), grant(2, 10, 1, 1), deleted(3), finished(1, 1))
    assert (result.verdict, result.checked) == (Verdict.VALID, 2)


def test_a_controller_may_be_deposed_before_its_failover_has_ended() -> None:
    result = judged(created(1), grant(2, 10, 1, 1), grant(3, 20, 2, 2), deleted(4), finished(1, 2))
    assert result.verdict is Verdict.VALID


def test_a_notification_created_in_a_term_may_be_handled_in_the_next_one() -> None:
    result = judged(
        grant(1, 10, 1, 1),
        finished(1, 1),
        created(2),
        grant(3, 20, 2, 2),
        deleted(4),
        finished(2, 2),
    )
    assert result.verdict is Verdict.VALID


def test_the_same_znode_may_be_created_again() -> None:
    path = "/admin/preferred_replica_election"
    result = judged(
        created(1, path), grant(2, 10, 1, 1), deleted(3, path), finished(1, 1), created(4, path)
    )
    assert (result.verdict, result.checked) == (Verdict.VALID, 3)


def test_without_a_failover_nothing_is_decided() -> None:
    assert judged(created(1), grant(2, 10, 1, 1)).verdict is Verdict.UNKNOWN


@pytest.mark.parametrize(("known", "is_late"), [(20 - BOUND_MS, False), (19 - BOUND_MS, True)])
def test_the_bound_counts_from_the_first_trace_of_a_later_transaction(
    known: int, is_late: bool
) -> None:
    result = judged(*IN_OFFICE, later(known, 4), measured(20), END)
    assert (result.verdict is Verdict.INVALID) is is_late


def test_a_fault_in_force_explains_the_delay() -> None:
    result = judged(*IN_OFFICE, later(2, 4), fault(5, 17), measured(20), END)
    assert result.verdict is Verdict.VALID


def test_a_fault_whose_end_is_not_verified_explains_everything_after_it() -> None:
    unverified = fault(5, 7, effect="unverified")
    assert judged(*IN_OFFICE, later(2, 4), unverified, END).verdict is Verdict.VALID


def test_a_slow_machine_is_no_stuck_controller() -> None:
    late = (*IN_OFFICE, later(2, 4))
    assert judged(*late, measured(20, lag=101), END).verdict is Verdict.UNKNOWN
    assert judged(*late, measured(20, load=15), END).verdict is Verdict.UNKNOWN
    assert judged(*late, END).verdict is Verdict.UNKNOWN
    assert judged(*late, measured(20, load=1), END).verdict is Verdict.INVALID


def test_a_controller_that_has_lost_its_office_is_not_waited_for() -> None:
    late = (*IN_OFFICE, later(2, 4), measured(20))
    resigned = broker(10, 1, "controller-resigned", controller_epoch=1, reason="session expired")
    assert judged(*late, resigned, END).verdict is Verdict.VALID
    gone = znode(5, 10, "/controller", zk_op="delete")
    assert judged(*late, gone, END).verdict is Verdict.VALID
    closed = Event(
        time=-1,
        process="zookeeper",
        kind="session-closed",
        zxid=5,
        session=10,
        seq=1,
        reason="closed",
    )
    assert judged(*late, gone, closed, END).verdict is Verdict.INVALID


def test_an_interrupted_run_is_not_judged_by_time() -> None:
    phase = harness(20, "phase", phase="quiet")
    assert judged(*IN_OFFICE, later(2, 4), measured(20), phase).verdict is Verdict.VALID
