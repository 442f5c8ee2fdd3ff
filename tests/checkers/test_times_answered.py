"""Offsets that are answered to times: what a correct leader answers is not held against it."""

from __future__ import annotations

from typing import Any

import pytest

from nemesis.checkers.breaks.events import (
    append,
    become_leader,
    broker,
    high_watermark,
    history,
    loaded,
    log_start,
    truncate,
)
from nemesis.checkers.breaks.log_files import beside
from nemesis.checkers.breaks.times_answered import asked, written
from nemesis.checkers.framework.model import Verdict
from nemesis.checkers.times_answered import TimesAnswered
from nemesis.history.events import Event
from tests.checkers.histories import only

MARK = high_watermark(2, 1, 3, 2, [1])


def verdict(*parts: Event | list[Event]) -> Verdict:
    return only(TimesAnswered(), history(*parts)).verdict


@pytest.mark.parametrize(
    ("wall_ms", "offset", "is_right"),
    [
        (9, 0, True),
        (10, 0, True),
        (11, 1, True),
        (20, 1, True),
        (21, -1, True),
        (10, 1, False),
        (11, 0, False),
        (21, 1, False),
        (20, -1, False),
        (20, 7, False),
    ],
)
def test_answers(wall_ms: int, offset: int, is_right: bool) -> None:
    decided = verdict(written(10, 20), MARK, asked(3, wall_ms, offset))
    assert decided is (Verdict.VALID if is_right else Verdict.INVALID)


def test_records_that_consumers_do_not_see_yet() -> None:
    behind = high_watermark(2, 1, 3, 1, [1])
    assert verdict(written(10, 20), behind, asked(3, 20, -1)) is Verdict.VALID
    assert verdict(written(10, 20), asked(3, 10, -1)) is Verdict.VALID, "the mark is not known"


def test_records_that_came_later() -> None:
    assert verdict(written(10, 20), asked(0, 10, 1)) is Verdict.VALID


def test_a_log_that_came_back_empty() -> None:
    """A replica was moved away and back: what its earlier log held is not there yet, or not committed here."""
    empty = loaded(3, 1, 0, high_watermark=0)
    assert verdict(written(10, 20), MARK, empty, asked(4, 20, -1)) is Verdict.VALID
    again = append(6, 1, 3, 0, crc=0, role="follower")
    led = become_leader(5, 1, 3, 2, high_watermark=2)
    assert verdict(written(10, 20), asked(4, 10, 1)) is Verdict.INVALID
    assert verdict(written(10, 20), led, asked(4, 10, 1), again) is Verdict.VALID


def test_other_records_that_took_the_place_of_the_answered_one() -> None:
    """After an unclean election the broker cuts what it had answered, and appends what its new leader has."""
    answered = append(2, 1, 3, 1, crc=9, role="leader")
    replaced = append(7, 1, 3, 1, crc=1)
    cut = truncate(6, 1, 1)
    files = written(10, 15)
    assert verdict(files, answered, asked(3, 20, 1)) is Verdict.INVALID
    assert verdict(files, answered, asked(3, 20, 1), cut, replaced) is Verdict.VALID
    assert verdict(files, answered, cut, asked(8, 20, 1), replaced) is Verdict.INVALID


def test_records_that_are_deleted() -> None:
    moved = log_start(5, 1, 1, 2, high_watermark=2)
    assert verdict(written(10, 20), MARK, asked(3, 10, 1), moved) is Verdict.VALID


def test_times_need_not_grow() -> None:
    assert verdict(written(20, 10), MARK, asked(3, 10, 0)) is Verdict.VALID
    assert verdict(written(20, 10), MARK, asked(3, 10, 1)) is Verdict.INVALID


def test_a_compacted_partition_is_not_judged() -> None:
    of_t: dict[str, Any] = {"topic": "t", "topic_id": "id", "partition": 0}
    cleaned = broker(1, 1, "log-cleaned", offset=0, last_offset=0, **of_t)
    assert verdict(written(10, 20), MARK, cleaned, asked(3, 10, 1)) is Verdict.VALID


def test_another_broker_answers_for_itself() -> None:
    other_log = [beside("stored-log", alive=True, error="NONE", log_end_offset=2)]
    answer = [
        Event(**{n: getattr(e, n) for n in e.__struct_fields__} | {"node": 2})
        for e in asked(3, 10, 1)
    ]
    assert verdict(written(10, 20), other_log, MARK, answer) is Verdict.VALID


def test_nothing_is_decided_without_leaders_and_questions() -> None:
    assert verdict(written(10)) is Verdict.UNKNOWN
