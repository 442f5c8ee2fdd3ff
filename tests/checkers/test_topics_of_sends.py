"""Records of transactions go to the topic that has the name, which need not be the one that their producer knows."""

from __future__ import annotations

from nemesis.checkers import CHECKERS
from nemesis.checkers.breaks.events import TP, broker, history
from nemesis.checkers.breaks.transactions_read import committed_poll, request, sent
from nemesis.checkers.framework.engine import run_checks
from nemesis.checkers.framework.model import Result, Verdict
from nemesis.history.events import Event
from nemesis.history.memory import history_of

COMMIT = "commit-transaction"
NEXT = "id-2"
"""The id of the topic that was created after ``t`` had been deleted."""


def judged(*parts: Event | list[Event]) -> dict[str, Result]:
    check = CHECKERS["transaction-order"].check()
    rows = history_of(history(*parts)).row_groups
    return {result.property: result for result in run_checks(rows, [check])}


def test_a_record_that_was_sent_by_name_is_in_the_topic_in_which_it_was_read() -> None:
    """So its offset is not compared with those of the topic that its producer knew."""
    former = [*sent(0, 1, 50), *request(2, COMMIT)]
    later = [*sent(10, 2, 3, 2), *request(12, COMMIT, 2)]
    read = committed_poll(14, 0, {3: 2}, 4, topic_id=NEXT)
    assert judged(former, later, read)["transaction-order"].verdict is Verdict.VALID
    torn = judged(former, later, read, committed_poll(16, 0, {}, 4, topic_id=NEXT))
    assert torn["torn-transaction"].verdict is Verdict.INVALID
    same = committed_poll(14, 0, {3: 2}, 4)
    assert judged(former, later, same)["transaction-order"].verdict is Verdict.INVALID


def test_an_unread_record_of_an_unknown_topic_is_counted_and_not_judged() -> None:
    former, read = sent(0, 1, 50), committed_poll(14, 0, {4: 9}, 4, topic_id=NEXT)
    result = judged(former, sent(10, 2, 3, 2), read)["transaction-order"]
    assert (result.verdict, result.checked) == (Verdict.UNKNOWN, 0)
    assert result.numbers["sends_of_unknown_topic_incarnation"] == 2


def test_an_answer_of_the_former_topic_may_come_late() -> None:
    """It was given before the next topic had the record, at an offset that the former one had, too."""
    late = committed_poll(4, 0, {0: 90, 6: 92}, 6)
    late[1].time = 9
    record = [*sent(5, 1, 5), *request(7, COMMIT)]
    read = committed_poll(12, 0, {5: 1}, 5, topic_id=NEXT)
    assert judged(late, record, read)["torn-transaction"].verdict is Verdict.VALID
    assert judged(late, record)["torn-transaction"].verdict is Verdict.INVALID


def test_a_record_that_was_acknowledged_before_the_deletion_is_of_the_former_topic() -> None:
    record = [*sent(0, 1, 5), *request(2, COMMIT), *committed_poll(4, 0, {6: 9}, 6)]
    read = committed_poll(20, 0, {0: 7}, 0, topic_id=NEXT)
    stopped = broker(10, 1, "replica-stopped", step="deleting", **TP)
    assert judged(record, stopped, read)["torn-transaction"].verdict is Verdict.INVALID
    early = broker(1, 1, "replica-stopped", step="deleting", **TP)
    assert judged(record, early, read)["torn-transaction"].verdict is Verdict.UNKNOWN
