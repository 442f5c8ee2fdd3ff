"""What ListOffsets answers, judged in the leaderships that the brokers traced."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from nemesis.checkers import CHECKERS
from nemesis.checkers.breaks.client_offsets import answered
from nemesis.checkers.breaks.events import TP, become_leader, broker, history, loaded
from nemesis.checkers.framework.model import Result, Verdict
from nemesis.history.events import Event
from tests.checkers.histories import only

NAME = "client-offsets-grow"
LATEST, EARLIEST = "latest-offset", "earliest-offset"
LEADS = become_leader(1, 1, 2, 5)
ANSWERED = answered(2, LATEST, 1, 9)


def judged(*events: Event | list[Event]) -> Result:
    return only(CHECKERS[NAME].check(), history(*events), NAME)


def sentences(*events: Event | list[Event]) -> list[str]:
    return [finding.sentence for finding in judged(*events).findings]


def test_a_leader_that_answers_the_same_or_more_is_right() -> None:
    result = judged(LEADS, ANSWERED, become_leader(4, 2, 3, 9), answered(6, LATEST, 2, 9))
    assert (result.verdict, result.checked) == (Verdict.VALID, 4)
    assert result.numbers == {"answers": 2}


def test_a_leader_that_answers_below_the_start_of_its_epoch_is_convicted() -> None:
    assert sentences(LEADS, answered(2, LATEST, 1, 4)) == [
        "Broker 1 answered that the latest-offset of t-0 is 4, but its log ended at 5 when its leadership began."
    ]


def test_a_leadership_that_answers_less_than_before_is_convicted() -> None:
    assert sentences(LEADS, ANSWERED, answered(6, LATEST, 1, 8)) == [
        "Broker 1 answered that the latest-offset of t-0 is 8, but it had answered 9 before."
    ]


def test_a_log_that_starts_lower_than_before_is_convicted() -> None:
    assert sentences(LEADS, answered(2, EARLIEST, 1, 3), answered(6, EARLIEST, 1, 0)) == [
        "Broker 1 answered that the earliest-offset of t-0 is 0, but it had answered 3 before."
    ]


def test_a_deposed_leader_may_answer_less_than_its_successor() -> None:
    later = answered(5, LATEST, 2, 9)
    assert judged(LEADS, become_leader(3, 2, 3, 5), later, answered(7, LATEST, 1, 5)).findings == ()


def test_of_two_leaderships_the_shorter_log_bounds_the_answer() -> None:
    slow = answered(6, LATEST, 1, 5, taking=3)
    newer = become_leader(7, 1, 4, 9)
    assert judged(LEADS, slow, newer).findings == ()
    assert judged(become_leader(1, 1, 2, 9), slow, replace(newer, log_end_offset=5)).findings == ()


def test_queries_that_overlap_have_no_order() -> None:
    slow = answered(2, LATEST, 1, 6, taking=8)
    fast = [replace(event, process="query-1") for event in answered(4, LATEST, 1, 9)]
    assert judged(LEADS, slow, fast).findings == ()


def test_a_leader_that_lacks_what_was_answered_may_answer_less() -> None:
    """After an unclean election or a power cut. Others judge whether the leader may lack it."""
    shorter = become_leader(4, 1, 3, 4)
    assert judged(LEADS, ANSWERED, shorter, answered(6, LATEST, 1, 4)).findings == ()


def test_a_leader_that_is_named_again_in_its_epoch_is_bound_by_the_start_of_it() -> None:
    again = become_leader(4, 1, 2, 9)
    assert judged(LEADS, again, answered(6, LATEST, 1, 5)).findings == ()
    assert judged(LEADS, again, answered(6, LATEST, 1, 4)).findings


def test_a_topic_without_an_id_that_was_created_again_begins_at_0() -> None:
    first, again = (become_leader(time, 1, 0, end, topic_id=None) for time, end in ((1, 5), (4, 0)))
    deleted = broker(3, 1, "replica-stopped", **TP | {"topic_id": None})
    assert judged(first, deleted, again, answered(6, LATEST, 1, 0)).findings == ()


def test_another_topic_of_the_same_name_begins_again() -> None:
    recreated = become_leader(4, 1, 0, 0, topic_id="other")
    assert judged(LEADS, ANSWERED, recreated, answered(6, LATEST, 1, 0)).findings == ()


def test_another_leader_may_start_its_log_lower() -> None:
    first, second = answered(2, EARLIEST, 1, 3), answered(6, EARLIEST, 2, 0)
    assert judged(LEADS, first, become_leader(4, 2, 3, 5), second).findings == ()


@pytest.mark.parametrize(
    "opened",
    [
        loaded(4, 1, 5, incarnation=2),
        broker(4, 1, "log-dir-changed", **TP),
        broker(4, 1, "truncate", **TP),
        broker(4, 1, "replica-stopped", **TP),
    ],
    ids=lambda event: event.kind,
)
def test_a_log_that_was_opened_moved_or_cut_may_start_lower(opened: Event) -> None:
    first, second = answered(2, EARLIEST, 1, 3), answered(6, EARLIEST, 1, 0)
    assert judged(LEADS, first, opened, second).findings == ()


def test_a_follower_that_answers_is_not_judged() -> None:
    follows = broker(4, 1, "become-follower", leader_epoch=3, **TP)
    assert judged(LEADS, ANSWERED, follows, answered(6, LATEST, 1, 4)).findings == ()


@pytest.mark.parametrize("f", [LATEST, EARLIEST])
def test_a_broker_without_a_trace_is_not_judged(f: str) -> None:
    result = judged(LEADS, answered(2, f, 7, 5), answered(4, f, 7, 4))
    assert (result.findings, result.checked, result.numbers) == ((), 1, {"answers": 0})
    assert judged(answered(2, f, 7, 5), answered(4, f, 7, 4)).verdict == Verdict.UNKNOWN


def test_an_answer_without_its_query_is_not_judged() -> None:
    _, answer = answered(2, LATEST, 1, 4)
    assert judged(LEADS, [answer]).findings == ()
