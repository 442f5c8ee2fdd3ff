"""Topics that must be there, and what deleted ones may not leave."""

from __future__ import annotations

from typing import Any

import pytest

from nemesis.checkers.breaks.administration import (
    asked,
    assigned,
    end_state_events,
    knows_broker,
    topic_znode,
    wrote,
)
from nemesis.checkers.breaks.events import znode
from nemesis.checkers.deletion import CREATE, DELETE, GROW, Deletion
from nemesis.checkers.framework.model import Result, Verdict
from nemesis.history.events import Event
from tests.checkers.histories import finding, only

CREATED = asked(1, CREATE, partition_count=2)
GROWN = asked(3, GROW, partition_count=3)
DELETED = asked(5, DELETE)


Rows = list[Event | list[Event]]


def result(*events: Event | list[Event]) -> Result:
    flat = [event for item in events for event in (item if isinstance(item, list) else [item])]
    return only(Deletion(), flat)


def sentences(*events: Event | list[Event]) -> list[str]:
    return [finding.sentence for finding in result(*events).findings]


MARK = "/admin/delete_topics/t"
MARKED = znode(6, 9, MARK, zk_op="create")
UNMARKED = znode(8, 9, MARK, zk_op="delete")


def partitions(count: int) -> dict[str, list[int]]:
    return {f"t_{partition}": [1, 2] for partition in range(count)}


class TestTheModel:
    @pytest.mark.parametrize(
        ("operations", "allowed"),
        [
            ([CREATED], {2}),
            ([CREATED, GROWN], {3}),
            ([CREATED, DELETED], {0}),
            ([CREATED, DELETED, asked(7, CREATE, partition_count=1)], {1}),
            ([asked(1, CREATE, "info", partition_count=2)], {0, 2}),
            ([asked(1, CREATE, "fail", partition_count=2)], {0}),
            ([CREATED, asked(3, GROW, "info", partition_count=3)], {2, 3}),
            ([CREATED, asked(3, DELETE, "info")], {0, 2}),
            ([CREATED, asked(3, DELETE, "fail")], {2}),
            # A delete that was never answered may come after the topic has been created again.
            (
                [CREATED, asked(3, DELETE, "info"), DELETED, asked(7, CREATE, partition_count=1)],
                {0, 1},
            ),
            ([CREATED, asked(3, GROW, "info", partition_count=3), DELETED], {0}),
        ],
    )
    def test_what_may_be_there_at_the_end(
        self, operations: list[list[Event]], allowed: set[int]
    ) -> None:
        for count in range(4):
            judged = result(*operations, end_state_events("zookeeper", partitions(count)))
            verdict = Verdict.VALID if count in allowed else Verdict.INVALID
            assert (count, judged.verdict) == (count, verdict)
            assert judged.checked == 1

    def test_the_finding(self) -> None:
        assert result(CREATED, end_state_events("zookeeper")).findings == (
            finding(
                "deletion",
                "t",
                "At the end t is absent, but by the answers to clients it has 2 partitions.",
                CREATED[1],
            ),
        )

    def test_a_topic_that_is_marked_for_deletion_counts_as_absent(self) -> None:
        mark = znode(5, 9, "/admin/delete_topics/t", zk_op="create")
        still_there = end_state_events("zookeeper", partitions(2))
        assert result(CREATED, DELETED, mark, still_there).verdict == Verdict.VALID
        assert result(CREATED, mark, still_there).verdict == Verdict.INVALID

    def test_a_success_that_cannot_be(self) -> None:
        again = asked(3, CREATE, partition_count=1)
        assert sentences(CREATED, again, end_state_events("zookeeper", partitions(2))) == [
            "admin-0 got the answer that create-topic of t succeeded, which is impossible."
        ]

    def test_deleting_what_is_being_deleted_succeeds(self) -> None:
        assert sentences(CREATED, DELETED, asked(7, DELETE), end_state_events("zookeeper")) == []


class TestWhatIsLeft:
    def test_a_log_of_what_was_deleted(self) -> None:
        log = end_state_events("logs", {"t_0": []}, node=2)
        gone = topic_znode(7, zk_op="delete")
        znodes = [MARKED, gone, UNMARKED]
        judged = result(
            CREATED,
            DELETED,
            znodes,
            end_state_events("zookeeper"),
            end_state_events("logs", node=1),
            log,
        )
        assert judged.findings == (
            finding(
                "deletion",
                "t",
                "At the end broker-2 keeps a log of t-0, which does not exist.",
                gone,
                log[1],
            ),
        )

    def test_a_broker_that_tells_of_what_was_deleted(self) -> None:
        reported = end_state_events("metadata", {"t_0": [1, 2]}, node=2)
        assert sentences(CREATED, DELETED, end_state_events("zookeeper"), reported) == [
            "At the end broker-2 tells of t-0, which does not exist."
        ]

    def test_logs_of_topics_of_others_are_not_judged(self) -> None:
        log = end_state_events("logs", {"internal_0": []}, node=2)
        assert sentences(CREATED, end_state_events("zookeeper", partitions(2)), log) == []

    @pytest.mark.parametrize(
        "path",
        ["/brokers/topics/t/partitions", MARK, "/config/topics/t"],
    )
    def test_a_znode_of_what_was_deleted(self, path: str) -> None:
        left = znode(2, 9, path, zk_op="create")
        incarnation = [topic_znode(1), left, MARKED, topic_znode(7, zk_op="delete")]
        incarnation += [] if path == MARK else [UNMARKED]
        assert sentences(CREATED, DELETED, incarnation, end_state_events("zookeeper")) == [
            f"t was deleted, its znode {path} was not."
        ]
        deleted = znode(8, 9, path, zk_op="delete", seq=1)
        assert (
            sentences(CREATED, DELETED, incarnation, deleted, end_state_events("zookeeper")) == []
        )

    def test_the_configuration_of_a_creation_that_then_failed_may_stay(self) -> None:
        incarnation = [topic_znode(1), MARKED, topic_znode(7, zk_op="delete"), UNMARKED]
        later = znode(8, 9, "/config/topics/t", zk_op="create")
        assert sentences(CREATED, DELETED, incarnation, later, end_state_events("zookeeper")) == []

    def test_a_topic_id_that_comes_back(self) -> None:
        first, gone, second = topic_znode(1), topic_znode(7, zk_op="delete"), topic_znode(9)
        incarnations = [first, MARKED, gone, UNMARKED, second]
        again = asked(7, CREATE, partition_count=1)
        end = end_state_events("zookeeper", partitions(1))
        assert result(CREATED, DELETED, again, incarnations, end).findings == (
            finding(
                "deletion",
                "t and t",
                "t and t were created with the same topic id id.",
                first,
                second,
            ),
        )

    def test_a_later_life_that_goes_with_the_mark_of_an_earlier_one(self) -> None:
        """A request in doubt allows it to be absent at the end; that it went unmarked is wrong all the same."""
        again = asked(7, CREATE, partition_count=1)
        first = [topic_znode(1), MARKED, topic_znode(7, zk_op="delete"), UNMARKED]
        second = [topic_znode(9, topic_id="later"), topic_znode(11, zk_op="delete")]
        operations = [CREATED, asked(3, DELETE, "info"), DELETED, again]
        assert result(*operations, first, second, end_state_events("zookeeper")).findings == (
            finding(
                "deletion", "t", "t was deleted while it was not marked for deletion.", second[1]
            ),
        )
        marked = znode(10, 9, MARK, zk_op="create")
        unmarked = znode(12, 9, MARK, zk_op="delete")
        assert (
            sentences(*operations, first, second, marked, unmarked, end_state_events("zookeeper"))
            == []
        )


@pytest.mark.parametrize(
    "looked",
    [[], end_state_events("zookeeper", error="ZooKeeper does not answer the harness")],
)
def test_what_nobody_looked_at_is_unknown(looked: list[Event]) -> None:
    judged = result(CREATED, looked)
    assert (judged.verdict, judged.checked) == (Verdict.UNKNOWN, 0)


def test_a_broker_that_did_not_say_what_it_keeps_leaves_it_unknown() -> None:
    silent = end_state_events("logs", node=3, error="CLIENT_TIMED_OUT")
    judged = result(CREATED, end_state_events("zookeeper", partitions(2)), silent)
    assert judged.verdict == Verdict.UNKNOWN
    assert sentences(CREATED, end_state_events("zookeeper", partitions(2)), silent) == [
        "At the end logs of broker-3 could not be observed: CLIENT_TIMED_OUT."
    ]


def test_sends_and_polls_are_left_out_early() -> None:
    columns: dict[str, Any] = {"value": 7, "partition": 0}
    sends = asked(1, "send", **columns)
    assert result(sends, end_state_events("zookeeper")).checked == 0


class TestReplicasThatWereTakenAwayBefore:
    """A reassignment took the replica away, and then the topic was deleted."""

    REGISTERED = znode(1, 9, "/brokers/ids/1", zk_op="create")
    MOVED = (assigned(2, 1, 2), assigned(3, 2, 3))
    GONE = (MARKED, topic_znode(7, zk_op="delete"), UNMARKED)
    KEPT = end_state_events("logs", {"t_0": []}, node=1)
    END = end_state_events("zookeeper")

    def test_a_broker_that_may_never_have_heard_of_it_keeps_the_log(self) -> None:
        history: Rows = [
            CREATED,
            self.REGISTERED,
            *self.MOVED,
            DELETED,
            *self.GONE,
            self.END,
            self.KEPT,
        ]
        judged = result(*history)
        assert [item.verdict for item in judged.findings] == [Verdict.VALID]
        assert judged.verdict is Verdict.VALID

    def test_a_broker_that_the_controller_knew_may_not_keep_it(self) -> None:
        known = [
            knows_broker(1, 3, broker_id=1, broker_epoch=1),
            wrote(3, 3, zxid=3),
        ]
        history: Rows = [CREATED, self.REGISTERED, *self.MOVED, known, DELETED, *self.GONE]
        assert result(*history, self.END, self.KEPT).verdict is Verdict.INVALID

    def test_a_replica_of_the_next_topic_of_the_name_is_no_longer_excused(self) -> None:
        again = [topic_znode(9, '{"partitions": {"0": [1, 2]}}'), MARKED_AGAIN, DELETED_AGAIN]
        history: Rows = [CREATED, self.REGISTERED, *self.MOVED, DELETED, *self.GONE, again]
        assert result(*history, self.END, self.KEPT).verdict is Verdict.INVALID


MARKED_AGAIN = znode(10, 9, MARK, zk_op="create")
DELETED_AGAIN = topic_znode(11, zk_op="delete")
