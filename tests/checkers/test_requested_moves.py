"""Moves that are requested through ``/admin/reassign_partitions``: which a controller may take out of the znode."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from nemesis.checkers.assignments import decoded
from nemesis.checkers.breaks.administration import (
    REASSIGNMENT_PATH,
    asked,
    end_state_events,
    requested_moves,
    topic_znode,
)
from nemesis.checkers.breaks.events import grant, state, znode
from nemesis.checkers.framework.model import Result, Verdict
from nemesis.checkers.reassignment import Reassignment
from nemesis.checkers.requested_moves import PATH, dropped
from nemesis.history.events import Event
from tests.checkers.histories import only

SECOND = 1_000_000_000
TARGET = [2, 3]


def assigned(zxid: int, *replicas: int, **columns: list[int]) -> Event:
    moves = "".join(f', "{name}": {{"0": {ids}}}' for name, ids in columns.items())
    return topic_znode(zxid, f'{{"partitions": {{"0": {list(replicas)}}}{moves}}}', zk_op="setData")


def operation(
    f: str = "reassign", outcome: str = "info", *, began: int, ended: int | None, **columns: Any
) -> list[Event]:
    """A request of t-0 between two seconds, through the API unless a path is named."""
    invoked, completed = asked(began * SECOND, f, outcome, partition=0, **columns)
    if ended is None:
        return [invoked]
    completed.time = ended * SECOND
    return [invoked, completed]


def requested(outcome: str = "info", *, ended: int | None = 30) -> list[Event]:
    return operation(
        outcome=outcome, began=10, ended=ended, replicas=TARGET, path=REASSIGNMENT_PATH
    )


CONTROLLER = grant(1, 9, 3, 1)
TOPIC = [assigned(2, 1, 2), state(3, 9, 1, 0, [1, 2])]
IN = requested_moves(10, {"t_0": TARGET}, zk_op="create")
OUT = requested_moves(20, {})


def moves(*parts: Event | list[Event]) -> int:
    """How many moves were dropped, of an operator's request for t-0."""
    flat = [event for part in parts for event in (part if isinstance(part, list) else [part])]
    return len([*dropped(enumerate(flat))])


def test_it_is_the_znode_of_the_breaks() -> None:
    assert PATH == REASSIGNMENT_PATH


def test_a_request_that_is_taken_out_and_not_made_is_dropped() -> None:
    assert moves(CONTROLLER, TOPIC, IN, OUT, requested()) == 1


def test_one_of_two_requests_is_dropped() -> None:
    both = requested_moves(10, {"t_0": TARGET, "t_1": TARGET}, zk_op="create")
    left = requested_moves(15, {"t_1": TARGET})
    assert moves(CONTROLLER, TOPIC, both, left, requested()) == 1


def test_a_controller_that_came_into_office_meanwhile_makes_the_move_too() -> None:
    assert moves(CONTROLLER, TOPIC, IN, grant(15, 8, 2, 2), OUT, requested()) == 1


@pytest.mark.parametrize(
    "made",
    [
        [assigned(15, 2, 3)],
        [assigned(15, 2, 3), assigned(16, 1, 2)],
        [assigned(9, 2, 3)],
    ],
    ids=["made", "made-and-undone", "made-before"],
)
def test_a_move_that_was_made_is_not_dropped(made: list[Event]) -> None:
    assert moves(CONTROLLER, TOPIC, made, IN, OUT, requested()) == 0


def test_a_move_that_has_only_begun_is_dropped() -> None:
    begun = assigned(15, 2, 3, 1, adding_replicas=[3], removing_replicas=[1])
    assert moves(CONTROLLER, TOPIC, begun, IN, OUT, requested()) == 1


@pytest.mark.parametrize(
    "excuse",
    [
        znode(15, 9, "/controller", zk_op="delete"),
        znode(15, 9, "/controller_epoch", controller_epoch=2),
        znode(15, 9, "/admin/delete_topics/t", zk_op="create"),
        topic_znode(15, zk_op="delete"),
        topic_znode(4, zk_op="delete"),
        assigned(9, 2, 3, 1, adding_replicas=[3], removing_replicas=[1]),
        state(9, 9, 1, 0, [1, 2], zk_op="delete"),
    ],
    ids=[
        *("no-controller", "another-epoch", "marked", "deleted", "deleted-before"),
        *("moves-already", "no-state"),
    ],
)
def test_what_a_controller_need_not_make(excuse: Event) -> None:
    assert moves(CONTROLLER, TOPIC, excuse, IN, OUT, requested()) == 0


def test_a_topic_that_the_controller_may_not_know_yet() -> None:
    assert moves(CONTROLLER, IN, OUT, requested()) == 0
    assert moves(CONTROLLER, IN, [assigned(11, 1, 2), TOPIC[1]], OUT, requested()) == 0


def test_the_owner_of_a_controller_znode_without_an_epoch_may_not_have_taken_it_out() -> None:
    office = znode(1, 9, "/controller", zk_op="create", controller_id=3)
    assert moves(office, TOPIC, IN, OUT, requested()) == 0


@pytest.mark.parametrize(
    ("other", "count"),
    [
        # Answered before the operator asked, or sent long after the znode was gone.
        (operation(outcome="ok", began=5, ended=9, replicas=[1, 3]), 1),
        (operation(outcome="fail", began=5, ended=9, replicas=[1, 3]), 1),
        (operation(outcome="ok", began=41, ended=42, replicas=[1, 3]), 1),
        # At the same time, or perhaps so.
        (operation(outcome="ok", began=5, ended=11, replicas=[1, 3]), 0),
        (operation(outcome="fail", began=15, ended=16, replicas=[1, 3]), 0),
        (operation(outcome="ok", began=39, ended=42, replicas=[1, 3]), 0),
        (operation("cancel-reassign", "ok", began=15, ended=16), 0),
        # Nothing shows when it was carried out.
        (operation(outcome="info", began=5, ended=9, replicas=[1, 3]), 0),
        (operation(began=5, ended=None, replicas=[1, 3]), 0),
        # Of another partition.
        (operation(outcome="ok", began=15, ended=16, replicas=[1, 3], topic="u"), 1),
    ],
)
def test_requests_through_the_api_take_the_partition_out(other: list[Event], count: int) -> None:
    mover = [msgspec.structs.replace(event, process="mover-0") for event in other]
    assert moves(CONTROLLER, TOPIC, IN, OUT, requested(), mover) == count


def test_an_operation_that_has_not_ended_leaves_room_for_later_requests() -> None:
    later = operation(outcome="ok", began=100, ended=101, replicas=[1, 3])
    assert moves(CONTROLLER, TOPIC, IN, OUT, requested(ended=None), later) == 0


def test_a_znode_that_no_operation_requested_is_not_judged() -> None:
    assert moves(CONTROLLER, TOPIC, IN, OUT) == 0
    assert moves(CONTROLLER, TOPIC, IN, OUT, requested("fail")) == 0


def test_an_unreadable_znode_asks_for_nothing() -> None:
    unreadable = znode(10, 9, REASSIGNMENT_PATH, zk_op="create", data="of another operator")
    assert moves(CONTROLLER, TOPIC, unreadable, OUT, requested()) == 0


@pytest.mark.parametrize("data", ['{"partitions": [{"topic": "t"}]}', "[]", "{", "null"])
def test_an_unreadable_topic_has_no_partitions(data: str) -> None:
    assert decoded(data) == {}
    assert moves(CONTROLLER, topic_znode(2, data), IN, OUT, requested()) == 0


def result(*events: Event) -> Result:
    return only(Reassignment(), list(events))


def test_the_finding() -> None:
    end = end_state_events("zookeeper", {"t_0": [1, 2]})
    judged = result(*CONTROLLER, *TOPIC, IN, OUT, *requested(), *end)
    assert judged.verdict == Verdict.INVALID
    (dropping,) = judged.findings
    assert dropping.sentence == (
        "An operator requested replicas [2, 3] of t-0. The controller took the request out of the znode, and the "
        "partition did not get these replicas."
    )
