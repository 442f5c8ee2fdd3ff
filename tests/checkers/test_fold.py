"""Segments and what becomes of findings."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nemesis.checkers.framework.fold import MAX_FINDINGS, conclude
from nemesis.checkers.framework.model import Finding, Verdict
from nemesis.checkers.framework.segment import Segment
from nemesis.checkers.replication.hw_grows import HwGrows
from nemesis.history.events import Event
from nemesis.history.schema import table
from tests.checkers.histories import promised

EVENTS = [
    Event(time=1, process="a", kind="append", topic="t", partition=0, offset=5),
    Event(time=2, process="b", kind="append", topic="t", partition=0),
    Event(time=3, process="a", kind="truncate", topic="t", partition=1, isr=[1, 2]),
]


P = promised("p", HwGrows)


def segment(events: list[Event]) -> Segment:
    return Segment.starting_at(table(events), 100)


def finding(verdict: Verdict, key: str = "k") -> Finding:
    return Finding(property="p", verdict=verdict, key=key, sentence="s")


def test_events_come_back_as_they_were_with_their_row_numbers() -> None:
    assert list(segment(EVENTS).events()) == list(zip([100, 101, 102], EVENTS, strict=True))


def test_columns_read_as_arrays_with_unset_marked() -> None:
    whole = segment(EVENTS)
    assert whole.numbers("offset", missing=-7).tolist() == [5, -7, -7]
    assert whole.values("isr") == [None, None, [1, 2]]
    codes, words = whole.codes("process")
    assert [words[code] for code in codes] == ["a", "b", "a"]


def test_a_column_that_was_not_read_is_unset() -> None:
    part = Segment.starting_at(table(EVENTS).select(["time", "process", "kind", "seq"]), 0)
    assert part.numbers("offset").tolist() == [-1, -1, -1]
    assert part.values("isr") == [None, None, None]
    assert part.is_word("topic", ["t"]).tolist() == [False, False, False]


def test_only_keeps_row_numbers() -> None:
    part = segment(EVENTS).only(["truncate"])
    assert part.rows.tolist() == [102]
    assert part.numbers("time").tolist() == [3]


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from([None, 0, 1]))))
def test_grouping_splits_rows_by_key_in_order_of_first_appearance(
    keys: list[tuple[str, int | None]],
) -> None:
    events = [Event(time=0, process=word, kind="x", partition=number) for word, number in keys]
    expected: dict[tuple[str, int | None], list[int]] = {}
    for position, key in enumerate(keys):
        expected.setdefault(key, []).append(position)
    groups = list(Segment.starting_at(table(events), 0).by("process", "partition"))
    assert [(key, rows.rows.tolist()) for key, rows in groups] == list(expected.items())


def test_nothing_checked_is_unknown_and_the_worst_finding_decides() -> None:
    assert conclude(P, checked=0).verdict == Verdict.UNKNOWN
    assert conclude(P, checked=3).verdict == Verdict.VALID
    collected = [finding(Verdict.UNKNOWN), finding(Verdict.INVALID), finding(Verdict.VALID)]
    result = conclude(P, checked=3, findings=collected)
    assert result.verdict == Verdict.INVALID
    assert [finding.verdict for finding in result.findings] == ["invalid", "unknown", "valid"]


def test_many_findings_are_all_counted_and_some_kept() -> None:
    collected = [finding(Verdict.UNKNOWN, str(n)) for n in range(MAX_FINDINGS + 5)]
    result = conclude(P, checked=1, findings=collected)
    assert result.finding_count == MAX_FINDINGS + 5
    assert [finding.key for finding in result.findings] == [str(n) for n in range(MAX_FINDINGS)]


def test_a_check_that_counts_fewer_findings_than_it_tells_is_wrong() -> None:
    with pytest.raises(AssertionError, match="p counted 1 findings and tells 2"):
        conclude(P, checked=1, findings=[finding(Verdict.INVALID)] * 2, finding_count=1)


def test_row_numbers_of_a_selection_follow_its_positions() -> None:
    part = segment(EVENTS).take(np.array([2, 0]))
    assert part.rows.tolist() == [102, 100]
