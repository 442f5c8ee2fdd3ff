"""What a controller does about brokers that are gone: what a correct one does is not held against it."""

from __future__ import annotations

from typing import Any

import pytest

from nemesis.checkers import CHECKERS
from nemesis.checkers.breaks.administration import assigned
from nemesis.checkers.breaks.events import TP, broker, grant, history, state, states, znode
from nemesis.history.events import Event
from tests.checkers.histories import only

NAME = "dead-brokers-replaced"
BEFORE = (assigned(1, 1, 2, 3), state(2, 10, 1, 0, [1, 2], epoch=0), grant(9, 20, 2, 1))
OFFICE = broker(1, 2, "controller-elected", controller_epoch=1, session=20, zxid=9)


def sentences(*parts: Event | list[Event]) -> list[str]:
    result = only(CHECKERS[NAME].check(), history(*parts))
    return [finding.sentence for finding in result.findings]


def ended(time: int, kind: str, *live: int, **columns: Any) -> Event:
    return broker(time, 2, kind, controller_epoch=1, live=list(live) or None, **columns)


def committed(time: int, zxid: int) -> Event:
    return broker(time, 2, "leader-elected", controller_epoch=1, zxid=zxid, **TP)


def became(time: int, change: str) -> Event:
    return broker(time, 2, "transition", controller_epoch=1, replica=3, **states(change), **TP)


def test_a_dead_leader_that_was_replaced_is_no_finding() -> None:
    replaced = state(10, 20, 2, 1, [2])
    assert (
        sentences(*BEFORE, replaced, OFFICE, committed(2, 10), ended(3, "controller-failover", 2))
        == []
    )


def test_a_state_that_is_written_after_the_last_known_zxid_is_not_judged() -> None:
    later = state(10, 30, 3, 1, [3])
    assert (
        sentences(
            *BEFORE[:1], later, grant(9, 20, 2, 1), OFFICE, ended(2, "controller-failover", 2)
        )
        == []
    )


def test_the_last_member_of_an_isr_stays_without_a_leader() -> None:
    alone = state(2, 10, -1, 1, [1], epoch=0)
    assert (
        sentences(
            assigned(1, 1, 2), alone, grant(9, 20, 2, 1), OFFICE, ended(2, "controller-failover", 2)
        )
        == []
    )


def test_partitions_of_a_topic_that_is_deleted_may_wait_for_dead_leaders() -> None:
    deletion = znode(3, 9, "/admin/delete_topics/t", zk_op="create")
    assert sentences(*BEFORE, deletion, OFFICE, ended(2, "controller-failover", 2)) == []


def test_an_isr_that_the_leader_wrote_itself_may_hold_a_dead_broker() -> None:
    """Before IBP 2.7; here the controller's broker leads, so both write in one session."""
    joined = state(10, 20, 2, 1, [2, 3])
    known = committed(2, 12)
    assert sentences(*BEFORE, joined, OFFICE, known, ended(3, "broker-change-handled", 2)) == []


@pytest.mark.parametrize(("epoch", "count"), [(1, 0), (2, 1)])
def test_the_leader_may_have_removed_the_dead_broker_before(epoch: int, count: int) -> None:
    """Before IBP 2.7; a write of the next controller comes too late."""
    removed = state(11, 40, 2, 0, [2], epoch=epoch)
    chosen = state(10, 20, 2, 0, [2, 3])
    known = committed(2, 10)
    said = sentences(
        *BEFORE[:1],
        chosen,
        removed,
        grant(9, 20, 2, 1),
        OFFICE,
        known,
        ended(3, "broker-change-handled", 2),
    )
    assert len(said) == count


def test_a_member_that_the_controller_removes_later_comes_too_late() -> None:
    removed = state(11, 20, 2, 0, [2])
    chosen = state(10, 20, 2, 0, [2, 3])
    before = (*BEFORE[:1], chosen, removed, grant(9, 20, 2, 1), OFFICE, committed(2, 10))
    late = broker(5, 2, "alter-partition-handled", controller_epoch=1, zxid=11, error="NONE", **TP)
    assert len(sentences(*before, ended(3, "broker-change-handled", 2), late)) == 1


def test_a_replica_that_is_created_on_a_dead_broker_is_online_in_kafka() -> None:
    history_of_term = (OFFICE, ended(2, "controller-failover", 2), became(3, "New->Online"))
    assert sentences(*history_of_term, ended(4, "broker-change-handled", 2)) == []


def test_a_replica_that_went_offline_with_its_broker_is_no_finding() -> None:
    history_of_term = (OFFICE, became(2, "New->Online"), ended(3, "controller-failover", 2, 3))
    assert (
        sentences(
            *history_of_term, became(4, "Online->Offline"), ended(5, "broker-change-handled", 2)
        )
        == []
    )
    assert len(sentences(*history_of_term, ended(5, "broker-change-handled", 2))) == 1


def test_a_broker_that_may_shut_down_may_lead_what_nobody_else_has() -> None:
    alone = (assigned(1, 1), state(2, 10, 1, 0, [1], epoch=0), grant(9, 20, 2, 1))
    answered = ended(2, "controlled-shutdown-handled", peer=1, count=0, error="NONE")
    assert sentences(*alone, OFFICE, answered) == []


def test_a_broker_may_shut_down_when_a_reassignment_has_left_it_the_only_replica() -> None:
    """The assignment is written after the state, and the controller's events do not have its zxid."""
    led = (assigned(1, 1, 2), state(2, 10, 1, 0, [1], epoch=0), grant(9, 20, 2, 1))
    answered = ended(2, "controlled-shutdown-handled", peer=1, count=0, error="NONE")
    assert sentences(*led, OFFICE, answered) != []
    assert sentences(*led, assigned(10, 1), OFFICE, answered) == []
    grown = (assigned(1, 1), assigned(2, 1, 2), *led[1:])
    assert sentences(*grown, OFFICE, answered) != []
    later = (state(30, 10, 2, 1, [1, 2], epoch=0), assigned(40, 1))
    assert sentences(*led, *later, OFFICE, answered) != []


def test_a_refused_shutdown_promises_nothing() -> None:
    answered = ended(2, "controlled-shutdown-handled", peer=1, count=0, error="STALE_BROKER_EPOCH")
    assert sentences(*BEFORE, OFFICE, answered) == []
