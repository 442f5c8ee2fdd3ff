"""Answers to fetches: what a correct cluster answers is not held against it, and what a session lacks is."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from nemesis.checkers.breaks.events import history, poll
from nemesis.checkers.breaks.fetches_answered import FETCHES_ANSWERED, fetched
from nemesis.checkers.fetches_answered import FetchesAnswered
from nemesis.checkers.framework.model import Result, Verdict
from nemesis.history.events import Event
from tests.checkers.histories import only

OPENED = fetched(1, 0, "01", "01")
WITHOUT_1 = fetched(2, 1, "", "", without="1")


def result(*parts: Event | list[Event]) -> Result:
    return only(FetchesAnswered(), history(*parts))


def verdict(*parts: Event | list[Event]) -> Verdict:
    return result(*parts).verdict


def test_every_smallest_break_has_one_finding_and_names_the_partition() -> None:
    sentences = [
        only(FetchesAnswered(), broken).findings[0].sentence for broken in FETCHES_ANSWERED
    ]
    full = "a full fetch of consumer-0"
    removed = "t-1, which consumer-0 has removed from the session."
    first = "fetch 1 of consumer-0 in its session 55"
    assert sentences == [
        f"Broker 1 answered {full} with t-1, which the request does not name.",
        f"An answer leaves out t-0: it is the answer to {full}, which names it.",
        f"Broker 1 answered {first} with {removed}",
        f"Broker 1 answered fetch 2 of consumer-0 in its session 55 with {removed}",
        f"Broker 1 answered {first} with t-1, which consumer-0 has not asked for.",
        f"An answer leaves out t-1: it is the answer to {first}, which adds it to the session.",
        f"An answer leaves out t-0: it is the answer to {first}, and the answer before has an error of it.",
    ]


def test_a_session_answers_what_has_changed_only() -> None:
    fetches = [OPENED, fetched(2, 1, "0", "1"), fetched(3, 2, "", ""), fetched(4, 3, "", "01")]
    assert verdict(fetches) is Verdict.VALID


def test_a_partition_may_come_back() -> None:
    assert verdict(OPENED, WITHOUT_1, fetched(3, 2, "1", "1"), fetched(4, 3, "", "1")) is (
        Verdict.VALID
    )
    assert verdict(OPENED, WITHOUT_1, fetched(3, 2, "1", "")) is Verdict.INVALID


def test_a_full_request_begins_a_session_with_its_partitions() -> None:
    assert verdict(OPENED, WITHOUT_1, fetched(3, 0, "1", "1"), fetched(4, 1, "", "1")) is (
        Verdict.VALID
    )
    assert verdict(OPENED, fetched(2, 0, "0", "0"), fetched(3, 1, "", "1")) is Verdict.INVALID


@pytest.mark.parametrize(
    "refusal",
    [
        "FETCH_SESSION_ID_NOT_FOUND",
        "INVALID_FETCH_SESSION_EPOCH",
        "FETCH_SESSION_TOPIC_ID_ERROR",
    ],
)
def test_after_a_refusal_nothing_is_known_of_the_session(refusal: str) -> None:
    refused = fetched(3, 2, "", "", error=refusal)
    assert verdict(OPENED, WITHOUT_1, refused, fetched(4, 3, "", "1")) is Verdict.VALID
    assert verdict(fetched(1, 0, "0", "", error=refusal)) is Verdict.UNKNOWN


@pytest.mark.parametrize(
    "later",
    [
        fetched(4, 3, "", "1"),
        fetched(4, 2, "", "1", fetch_session=56),
        fetched(4, 2, "", "1", node=2),
        fetched(4, 2, "", "1", process="consumer-1"),
    ],
    ids=["a fetch is missing", "another session", "another broker", "another client"],
)
def test_a_session_of_which_an_answer_is_missing_is_not_judged(later: Event) -> None:
    assert verdict(OPENED, fetched(2, 1, "", ""), WITHOUT_1, later) is Verdict.VALID


def test_the_processes_of_one_consumer_share_its_sessions() -> None:
    later = fetched(3, 2, "", "1", process="consumer-0.1")
    assert verdict(OPENED, WITHOUT_1, later) is Verdict.INVALID


def test_an_error_is_reported_as_long_as_it_lasts_and_so_is_its_end() -> None:
    failed = fetched(2, 1, "", "1", failed="1")
    assert verdict(OPENED, failed, fetched(3, 2, "", "1", failed="1"), fetched(4, 3, "", "1")) is (
        Verdict.VALID
    )
    assert verdict(OPENED, failed, fetched(3, 2, "", "1"), fetched(4, 3, "", "")) is Verdict.VALID
    assert verdict(OPENED, failed, fetched(3, 2, "", "0")) is Verdict.INVALID
    assert verdict(OPENED, failed, fetched(3, 2, "", "", duration_ms=5)) is Verdict.VALID


def test_of_a_removed_partition_no_error_is_reported() -> None:
    failed = fetched(2, 1, "", "1", failed="1")
    assert verdict(OPENED, failed, fetched(3, 2, "", "", without="1")) is Verdict.VALID


def test_a_throttled_answer_names_nothing() -> None:
    throttled: dict[str, Any] = {"duration_ms": 5}
    assert verdict(fetched(1, 0, "0", "", **throttled)) is Verdict.VALID
    assert verdict(OPENED, fetched(2, 1, "2", "", **throttled)) is Verdict.VALID
    assert verdict(fetched(1, 0, "01", "0", **throttled)) is Verdict.INVALID


def test_a_partition_that_a_request_names_and_removes() -> None:
    both = fetched(2, 1, "1", "1", without="1")
    assert verdict(OPENED, both) is Verdict.VALID
    assert verdict(OPENED, fetched(2, 1, "1", "", without="1"), fetched(3, 2, "", "1")) is (
        Verdict.VALID
    )


def test_a_topic_that_is_created_again_is_another_one() -> None:
    again = replace(fetched(2, 1, "", "", without="1"), asked=["u-1"], answered=["u-1"])
    assert verdict(OPENED, again) is Verdict.VALID
    assert verdict(OPENED, again, fetched(3, 2, "", "1")) is Verdict.INVALID


def test_a_finding_has_the_name_of_the_topic() -> None:
    named = result(poll(1, 0, {}, topic_id="t"), fetched(1, 0, "0", "", process="consumer-1"))
    assert named.findings[0].key == "t-0"
    other_topic = poll(1, 0, {}, topic="orders", topic_id="t")
    assert result(other_topic, fetched(2, 0, "0", "")).findings[0].key == "orders-0"


def test_polls_count_and_nothing_else_does() -> None:
    counted = result(poll(1, 0, {}), OPENED, fetched(3, 5, "", ""))
    assert (counted.verdict, counted.checked) == (Verdict.VALID, 2)
    assert verdict(fetched(3, 5, "", "")) is Verdict.UNKNOWN
