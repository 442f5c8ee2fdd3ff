"""Where partitions must be at the end, and which brokers keep logs of them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from nemesis.checkers.assignments import Assignment
from nemesis.checkers.breaks.administration import (
    asked,
    end_state_events,
    knows_broker,
    topic_znode,
    wrote,
)
from nemesis.checkers.breaks.events import grant, znode
from nemesis.checkers.breaks.quorum import described
from nemesis.checkers.framework.model import Result, Verdict
from nemesis.checkers.reassignment import CANCEL, DESCRIBE, MOVE, Reassignment
from nemesis.history.events import Event
from tests.checkers.histories import finding, only


def about(time: int, f: str, outcome: str = "ok", *replicas: int) -> list[Event]:
    return asked(time, f, outcome, partition=0, replicas=list(replicas) or None)


FIRST = about(1, DESCRIBE, "ok", 1, 2)
MOVED = about(3, MOVE, "ok", 2, 3)


def result(*events: Event | list[Event]) -> Result:
    flat = [event for item in events for event in (item if isinstance(item, list) else [item])]
    return only(Reassignment(), flat)


def end(*replicas: int) -> list[Event]:
    return end_state_events("zookeeper", {"t_0": list(replicas)})


def assigned(zxid: int, *replicas: int, **columns: Any) -> Event:
    """The topic's znode with the replicas of t-0."""
    about_moves = ", ".join(f'"{name}": {{"0": {ids}}}' for name, ids in columns.items())
    data = f'{{"partitions": {{"0": {list(replicas)}}}{", " if columns else ""}{about_moves}}}'
    return topic_znode(zxid, data, zk_op="setData")


class TestTheModel:
    @pytest.mark.parametrize(
        ("operations", "allowed"),
        [
            ([FIRST], [(1, 2)]),
            ([FIRST, MOVED], [(2, 3)]),
            ([FIRST, about(3, MOVE, "info", 2, 3)], [(1, 2), (2, 3)]),
            ([FIRST, about(3, MOVE, "fail", 2, 3)], [(1, 2)]),
            # Replaced, whether or not the first move was over.
            ([FIRST, MOVED, about(5, MOVE, "ok", 1, 3)], [(1, 3)]),
            # A cancel goes back to the same brokers, in the order in which the move had put them.
            ([FIRST, MOVED, about(5, CANCEL)], [(2, 1)]),
            ([FIRST, MOVED, about(5, CANCEL, "info")], [(2, 1), (2, 3)]),
            ([FIRST, MOVED, about(5, CANCEL, "fail")], [(2, 3)]),
            # The order is that of the last request.
            ([FIRST, about(3, MOVE, "ok", 2, 1)], [(2, 1)]),
            # A move that was never answered may come at last.
            ([FIRST, about(2, MOVE, "info", 3, 4), MOVED], [(2, 3), (3, 4)]),
            # Back to where the last completed move ended: to what 2, 3 was, or to where it began.
            ([FIRST, MOVED, about(5, MOVE, "ok", 3, 4), about(7, CANCEL)], [(2, 1), (3, 2)]),
        ],
    )
    def test_where_it_may_end(
        self, operations: list[list[Event]], allowed: list[tuple[int, ...]]
    ) -> None:
        for replicas in [(1, 2), (2, 1), (2, 3), (3, 2), (1, 3), (3, 4)]:
            judged = result(*operations, end(*replicas))
            verdict = Verdict.VALID if replicas in allowed else Verdict.INVALID
            assert (replicas, judged.verdict) == (replicas, verdict)

    @pytest.mark.parametrize("replicas", [(1, 2), (2, 3)])
    def test_a_description_after_a_request_rules_nothing_out(
        self, replicas: tuple[int, ...]
    ) -> None:
        doubtful = about(0, MOVE, "info", 2, 3)
        judged = result(doubtful, about(3, DESCRIBE, "ok", 1, 2), end(*replicas))
        assert judged.verdict == Verdict.VALID

    def test_the_finding(self) -> None:
        over = end(1, 2)
        assert result(FIRST, MOVED, over).findings == (
            finding(
                "reassignment",
                "t-0",
                "At the end t-0 has replicas [1, 2]; after the requests of clients it must have [2, 3].",
                MOVED[1],
                over[1],
            ),
        )

    def test_a_partition_that_nobody_described_is_anywhere_until_it_is_moved(self) -> None:
        assert result(end(8, 9)).verdict == Verdict.VALID
        assert result(about(3, MOVE, "info", 2, 3), end(8, 9)).verdict == Verdict.VALID
        assert result(MOVED, end(8, 9)).verdict == Verdict.INVALID
        assert result(MOVED, about(5, CANCEL), end(8, 9)).verdict == Verdict.VALID

    def test_one_whose_topic_was_created_again_is_not_judged(self) -> None:
        incarnations = [
            topic_znode(1, "{}"),
            topic_znode(2, zk_op="delete"),
            topic_znode(3, "{}", topic_id="another"),
        ]
        assert result(incarnations[:1], FIRST, MOVED, end(5, 6)).verdict == Verdict.INVALID
        assert result(incarnations, FIRST, MOVED, end(5, 6)).verdict == Verdict.VALID

    def test_one_that_is_being_deleted_is_not_judged(self) -> None:
        mark, unmark = (
            znode(zxid, 9, "/admin/delete_topics/t", zk_op=operation)
            for zxid, operation in ((5, "create"), (7, "delete"))
        )
        gone = topic_znode(6, zk_op="delete")
        moved = [assigned(1, 1, 2), *FIRST, *MOVED]
        logs = end_state_events("logs", node=1)
        assert result(moved, end(1, 2), logs).finding_count == 2
        assert result(moved, mark, end(1, 2), logs).checked == 0
        assert result(moved, mark, gone, unmark, end(1, 2), logs).checked == 0
        assert result(moved, mark, unmark, end(1, 2), logs).finding_count == 2

    def test_one_that_is_still_being_moved_is_not_judged(self) -> None:
        moving = assigned(4, 2, 3, 1, adding_replicas=[3], removing_replicas=[1])
        judged = result(FIRST, MOVED, moving, end(2, 3, 1))
        assert (judged.verdict, judged.checked) == (Verdict.UNKNOWN, 0)


class TestInAQuorum:
    """KRaft, where a move does not know where the move that it replaces began."""

    UNORDERED = about(1, DESCRIBE, "ok", 2, 1)
    AWAY = about(3, MOVE, "ok", 3, 4)
    REPLACED = (FIRST, about(3, MOVE, "ok", 3), about(5, MOVE, "ok", 4))

    @pytest.mark.parametrize(
        ("operations", "allowed"),
        [
            ([FIRST], [(1, 2)]),
            ([FIRST, MOVED], [(2, 3)]),
            ([FIRST, MOVED, about(5, CANCEL)], [(2, 1)]),
            # A cancel brings back what the move took out, in the order of the ids.
            ([UNORDERED, AWAY, about(5, CANCEL)], [(1, 2)]),
            ([UNORDERED, AWAY, about(5, CANCEL, "info")], [(1, 2), (3, 4)]),
            ([*REPLACED], [(4,)]),
            # The first move has brought 3 in, on its way or at its end.
            ([*REPLACED, about(7, CANCEL)], [(1, 2, 3), (3,)]),
            # The second adds none, so what the first was adding is taken out again.
            ([FIRST, about(3, MOVE, "ok", 3), MOVED, about(7, CANCEL)], [(2, 1), (3,)]),
        ],
    )
    def test_where_it_may_end(
        self, operations: list[list[Event]], allowed: list[tuple[int, ...]]
    ) -> None:
        for replicas in [(1, 2), (2, 1), (2, 3), (3, 4), (4,), (3,), (1, 2, 3), (2, 1, 3)]:
            judged = result(described(0, 1, 3), *operations, end(*replicas))
            verdict = Verdict.VALID if replicas in allowed else Verdict.INVALID
            assert (replicas, judged.verdict) == (replicas, verdict)

    @pytest.mark.parametrize("moves", [1, 2])
    def test_without_a_description_a_cancel_may_lead_anywhere(self, moves: int) -> None:
        asked_for = [about(3 + 2 * move, MOVE, "ok", 2 + move, 3 + move) for move in range(moves)]
        quorum = described(0, 1, 3)
        assert result(quorum, *asked_for, end(8, 9)).verdict == Verdict.INVALID
        assert result(quorum, *asked_for, about(9, CANCEL), end(8, 9)).verdict == Verdict.VALID

    def test_its_log_tells_without_samples(self) -> None:
        change = replace(assigned(1, 2, 1), process="quorum")
        judged = result(change, self.UNORDERED, self.AWAY, about(5, CANCEL), end(1, 2))
        assert judged.verdict == Verdict.VALID


class TestLogs:
    REGISTERED = znode(1, 9, "/brokers/ids/1", zk_op="create")
    WRITTEN = (assigned(2, 1, 2), assigned(5, 2, 3))
    KEPT = end_state_events("logs", {"t_0": []}, node=1)
    KNOWN = knows_broker(1, 3, broker_id=1, broker_epoch=1)
    ANSWERED = wrote(5, 3, zxid=5)

    def test_a_broker_keeps_what_was_taken_away_from_it(self) -> None:
        over = end(2, 3)
        history: list[Event | list[Event]] = [
            FIRST,
            MOVED,
            self.REGISTERED,
            *self.WRITTEN,
            self.KNOWN,
            self.ANSWERED,
            over,
            self.KEPT,
        ]
        assert result(*history).findings == (
            finding(
                "reassignment",
                "t-0",
                "At the end broker-1 keeps a log of t-0, of which it is not a replica.",
                self.WRITTEN[1],
                over[1],
                self.KEPT[1],
            ),
        )

    @pytest.mark.parametrize(
        "excuse",
        [
            [znode(4, 9, "/brokers/ids/1", zk_op="delete")],
            [
                znode(7, 9, "/brokers/ids/1", zk_op="delete"),
                znode(8, 9, "/brokers/ids/1", zk_op="create"),
            ],
            grant(7, 9, 2, 5),
        ],
        ids=["it was away", "its session ended before it was told", "another controller came"],
    )
    def test_one_that_may_never_have_been_told_is_reported(self, excuse: list[Event]) -> None:
        history: list[Event | list[Event]] = [
            FIRST,
            MOVED,
            self.REGISTERED,
            *self.WRITTEN,
            self.KNOWN,
            self.ANSWERED,
            excuse,
            end(2, 3),
            self.KEPT,
        ]
        judged = result(*history)
        assert [item.verdict for item in judged.findings] == [Verdict.VALID]
        assert judged.verdict == Verdict.VALID

    def test_what_happened_before_excuses_nothing(self) -> None:
        earlier = [*grant(3, 9, 2, 5), znode(4, 9, "/brokers/ids/1", zk_op="create")]
        history: list[Event | list[Event]] = [
            FIRST,
            MOVED,
            *self.WRITTEN,
            earlier,
            knows_broker(4, 3, broker_id=1, broker_epoch=4),
            self.ANSWERED,
            end(2, 3),
            self.KEPT,
        ]
        assert result(*history).verdict == Verdict.INVALID

    @pytest.mark.parametrize(
        "trace",
        [
            [ANSWERED],
            [ANSWERED, knows_broker(6, 3, broker_id=1, broker_epoch=1)],
            [knows_broker(4, 3, broker_id=1, broker_epoch=0), ANSWERED],
            [knows_broker(4, 3, broker_id=2, broker_epoch=1), ANSWERED],
            [knows_broker(4, 2, broker_id=1, broker_epoch=1), ANSWERED],
            [KNOWN],
        ],
        ids=[
            "no request was sent to it",
            "only after the write",
            "in an earlier registration",
            "to another broker",
            "by another controller",
            "the writer is unknown",
        ],
    )
    def test_one_of_whose_registration_its_controller_had_not_heard_is_reported(
        self, trace: list[Event]
    ) -> None:
        """It was registered before the write, and the controller wrote before it handled that.

        A cancelled move in simulated seed 35 of the scenario reassignment, and what the checker said of it then.
        """
        history: list[Event | list[Event]] = [
            FIRST,
            MOVED,
            self.REGISTERED,
            *self.WRITTEN,
            trace,
            end(2, 3),
            self.KEPT,
        ]
        judged = result(*history)
        assert [item.verdict for item in judged.findings] == [Verdict.VALID]
        assert judged.verdict == Verdict.VALID

    def test_a_log_where_no_replica_ever_was(self) -> None:
        stray = end_state_events("logs", {"t_0": []}, node=4)
        history: list[Event | list[Event]] = [
            FIRST,
            MOVED,
            *self.WRITTEN,
            *grant(7, 9, 2, 5),
            end(2, 3),
            stray,
        ]
        assert result(*history).verdict == Verdict.INVALID

    def test_a_replica_without_a_log(self) -> None:
        judged = result(
            FIRST,
            end(1, 2),
            end_state_events("logs", {"t_0": []}, node=1),
            end_state_events("logs", node=2),
        )
        assert [item.sentence for item in judged.findings] == [
            "At the end broker-2, a replica of t-0, has no log of it."
        ]


def test_what_nobody_looked_at_is_unknown() -> None:
    assert result(FIRST, MOVED).verdict == Verdict.UNKNOWN
    silent = end_state_events("logs", node=3, error="CLIENT_TIMED_OUT")
    assert result(FIRST, end(1, 2), silent).verdict == Verdict.UNKNOWN


brokers = st.lists(st.integers(1, 5), min_size=1, max_size=4, unique=True).map(tuple)


@given(brokers, st.lists(brokers, min_size=1, max_size=4))
def test_an_assignment_on_its_way_knows_where_it_came_from_and_where_it_goes(
    origin: tuple[int, ...], targets: list[tuple[int, ...]]
) -> None:
    assignment = Assignment(origin)
    for target in targets:
        assignment = assignment.towards(target)
        assert assignment.target == target
        assert set(assignment.origin) == set(origin)
    assert assignment.towards(assignment.origin) == Assignment(assignment.origin)
    back = assignment.towards(assignment.origin)
    assert set(back.replicas) == set(origin)
    assert not back.is_moving


@given(brokers, st.lists(brokers, min_size=1, max_size=4))
def test_in_a_quorum_the_replicas_that_a_move_meets_are_where_it_came_from(
    origin: tuple[int, ...], targets: list[tuple[int, ...]]
) -> None:
    assignment = Assignment(origin)
    for target in targets:
        met = assignment
        assignment = assignment.towards_in_quorum(target)
        assert assignment.target == target
        assert set(assignment.origin) in (set(met.replicas), set(met.replicas) - set(met.adding))
        assert assignment.origin
