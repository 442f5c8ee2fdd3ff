"""Logs that a broker closes in a clean stop, and as which its next process opens them."""

from __future__ import annotations

from nemesis.checkers import CHECKERS
from nemesis.checkers.breaks.clean_stops import closed, opened
from nemesis.checkers.breaks.events import broker, history, started
from nemesis.checkers.framework.model import Result, Verdict
from nemesis.history.events import Event
from tests.checkers.histories import only

NAME = "clean-stop-keeps-logs"
CLOSED = closed(1, 2, 5, 4)
STARTED = started(2, 1, unclean=False)


def judged(*events: Event) -> Result:
    return only(CHECKERS[NAME].check(), history(*events), NAME)


def test_a_log_that_is_as_it_was_closed_is_checked() -> None:
    result = judged(CLOSED, STARTED, opened(3, 2, 5, 4))
    assert (result.verdict, result.numbers) == (Verdict.VALID, {"after_clean_stops": 1})


def test_each_difference_is_named() -> None:
    [differs] = judged(CLOSED, STARTED, opened(3, 0, 4, 3)).findings
    assert differs.sentence == (
        "Broker 1 opened its log of t-0 after a clean stop: its start was 2 and is 0, its end was 5 and is 4, its high "
        "watermark was 4 and is 3."
    )
    assert [event["kind"] for event in differs.events] == ["log-closed", "log-loaded"]


def test_a_log_without_a_clean_stop_may_lose_records() -> None:
    assert judged(STARTED, opened(3, 2, 4, 4)).numbers == {"after_clean_stops": 0}


def test_only_the_next_process_has_to_find_the_log() -> None:
    later = broker(3, 1, "broker-started", incarnation=3)
    assert judged(CLOSED, STARTED, later, opened(4, 2, 4, 4)).numbers == {"after_clean_stops": 0}


def test_a_log_that_is_created_again_later_is_another_one() -> None:
    first, again = opened(3, 2, 5, 4), opened(4, 0, 0, 0)
    assert judged(CLOSED, STARTED, first, again).findings == ()


def test_another_log_directory_or_topic_id_has_another_log() -> None:
    for other in ({"log_dir": "/other"}, {"topic_id": "new"}):
        assert judged(CLOSED, STARTED, opened(3, 0, 0, 0, **other)).numbers == {
            "after_clean_stops": 0
        }
