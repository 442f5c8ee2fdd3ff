"""How the office of the controller ends in a correct cluster, and what brokers know; preferred elections."""

from __future__ import annotations

from nemesis.checkers import CHECKERS
from nemesis.checkers.breaks.administration import asked
from nemesis.checkers.breaks.events import TP, broker, elected, grant, history, state, znode
from nemesis.history.events import Event
from tests.checkers.histories import only

DELETED = znode(3, 10, "/controller", zk_op="delete")


def findings(name: str, *parts: Event | list[Event]) -> int:
    return len(only(CHECKERS[name].check(), history(*parts)).findings)


def test_the_office_ends_with_the_session() -> None:
    closed = Event(time=-1, process="zookeeper", kind="session-closed", zxid=3, session=10, seq=1)
    assert findings("office-kept", grant(2, 10, 1, 1), DELETED, closed) == 0


def test_a_controller_that_has_resigned_deletes_its_znode() -> None:
    resigned = broker(1, 1, "controller-resigned", controller_epoch=1, reason="storage")
    assert findings("office-kept", grant(2, 10, 1, 1), DELETED, resigned) == 0


def test_a_broker_without_traces_may_have_resigned() -> None:
    won = broker(1, 1, "controller-elected", controller_epoch=1, session=10, zxid=2)
    assert findings("office-kept", grant(2, 10, 1, 1), DELETED) == 0
    assert findings("office-kept", grant(2, 10, 1, 1), won, DELETED) == 1


def test_a_controller_that_has_not_traced_its_election_has_not_resigned_where_others_trace() -> (
    None
):
    other = broker(9, 2, "controller-elected", controller_epoch=2, session=11, zxid=9)
    assert findings("office-kept", grant(2, 10, 1, 1), DELETED, other) == 1


def test_an_operator_deletes_the_znode() -> None:
    deleted = znode(3, 99, "/controller", zk_op="delete")
    assert findings("office-kept", grant(2, 10, 1, 1), deleted) == 0


def test_a_broker_may_win_the_next_epoch_after_it_has_resigned() -> None:
    resigned = broker(1, 1, "controller-resigned", controller_epoch=1, reason="session expired")
    again = broker(2, 1, "controller-elected", controller_epoch=2, session=11, zxid=5)
    assert findings("office-kept", grant(2, 10, 1, 1), resigned, again) == 0


def knows(time: int, leader: int, epoch: int, version: int, incarnation: int = 1) -> Event:
    about = {"leader": leader, "leader_epoch": epoch, "partition_epoch": version}
    return broker(
        time, 3, "partition-metadata", incarnation=incarnation, controller_epoch=1, **about, **TP
    )


def test_metadata_grow_and_begin_anew_with_a_process() -> None:
    named = (state(5, 10, 1, 4, [1]), state(6, 10, 2, 5, [2]))
    assert findings("metadata-never-back", *named, knows(1, 1, 4, 7), knows(2, 2, 5, 7)) == 0
    assert findings("metadata-never-back", knows(1, 1, 4, 7), knows(2, 1, 3, 6, incarnation=2)) == 0


def test_metadata_of_an_epoch_that_the_log_does_not_show_are_not_judged() -> None:
    assert findings("metadata-never-back", state(5, 10, 1, 4, [1]), knows(1, 2, 6, 9)) == 0


def test_two_leaders_of_one_epoch_are_the_controllers_mistake_not_the_brokers() -> None:
    written = [state(5, 10, 1, 4, [1, 2]), state(6, 10, 2, 4, [1, 2])]
    assert findings("leader-epoch-grows", *written) == 1
    assert findings("metadata-never-back", *written, knows(1, 1, 4, 7), knows(2, 2, 4, 8)) == 0
    assert findings("metadata-never-back", *written, knows(1, 3, 4, 7)) == 1


def test_an_answer_between_request_and_election_of_the_preferred_replica() -> None:
    request = asked(2, "elect-leaders", partition=0)
    chosen = elected(2, 5, 1, [1, 2], strategy="preferred")
    assert findings("elections-answered", request[0], chosen, request[1]) == 0


def test_a_refused_or_lost_request_is_not_judged() -> None:
    known = elected(1, 5, 2, [1, 2])
    for outcome in ("fail", "info"):
        assert (
            findings("elections-answered", known, asked(3, "elect-leaders", outcome, partition=0))
            == 0
        )


def test_the_preferred_replica_takes_over_from_another_leader() -> None:
    states = (state(4, 10, 2, 0, [1, 2]), state(5, 10, 1, 1, [1, 2]))
    chosen = elected(3, 5, 1, [1, 2], strategy="preferred")
    assert findings("elections-answered", *states, chosen) == 0
