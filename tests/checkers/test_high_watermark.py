"""High watermarks: bounded by what the ISR holds, and growing."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nemesis.checkers.breaks.events import (
    TP,
    append,
    become_leader,
    broker,
    high_watermark,
    loaded,
    truncate,
)
from nemesis.checkers.framework.engine import run_checks
from nemesis.checkers.framework.model import Verdict
from nemesis.checkers.framework.segment import Segment
from nemesis.checkers.replication.high_watermark import BoundedSummary, Held, HwBounded
from nemesis.checkers.replication.hw_grows import HwGrows
from nemesis.history.encoding import EventsFile
from nemesis.history.events import Event, Kind
from nemesis.history.schema import ordered, table
from nemesis.history.stored_row_group import StoredRowGroup
from tests.checkers.histories import finding, judge, only


class TestHwBounded:
    def test_a_mark_that_every_member_has_reached(self) -> None:
        events = [append(1, 1, 0, 0, role="leader"), append(2, 2, 0, 0)]
        events += [high_watermark(3, 1, 0, 1, [1, 2])]
        result = only(HwBounded(), events)
        assert (result.verdict, result.checked) == (Verdict.VALID, 1)

    def test_a_mark_above_a_members_log(self) -> None:
        held, mark = append(2, 2, 0, 3), high_watermark(3, 1, 0, 5, [1, 2])
        assert only(HwBounded(), [held, mark, append(4, 2, 0, 4)]).findings == (
            finding(
                "hw-bounded",
                "t-0",
                "Leader 1 of t-0 set its high watermark to 5 while broker 2, in its ISR, held records only below 4.",
                held,
                mark,
            ),
        )

    def test_the_proposed_members_count(self) -> None:
        mark = high_watermark(3, 1, 0, 5, [1])
        mark.maximal_isr = [1, 2]
        assert only(HwBounded(), [append(2, 2, 0, 3), mark]).verdict == Verdict.INVALID

    def test_replicas_outside_the_isr_do_not(self) -> None:
        events = [append(2, 2, 0, 3), high_watermark(3, 1, 0, 5, [1])]
        assert only(HwBounded(), events).verdict == Verdict.VALID

    def test_a_killed_members_last_offset_stands_and_its_reload_may_show_more(self) -> None:
        events = [append(2, 2, 0, 3), high_watermark(3, 1, 0, 4, [1, 2])]
        events += [loaded(4, 2, 6, incarnation=2), high_watermark(5, 1, 0, 6, [1, 2])]
        assert only(HwBounded(), events).verdict == Verdict.VALID

    def test_a_member_that_lost_records_at_reload_holds_less(self) -> None:
        events = [append(2, 2, 0, 3), loaded(4, 2, 2, incarnation=2)]
        events += [high_watermark(5, 1, 0, 4, [1, 2])]
        assert only(HwBounded(), events).verdict == Verdict.INVALID

    def test_a_member_that_a_power_cut_took_records_from_counts_again_once_it_follows(self) -> None:
        struck = Event(time=4, process="nemesis", kind="fault-applied", fault="power-cut")
        struck.targets = ["broker-2"]
        back = [broker(5, 2, "broker-started", incarnation=2), loaded(6, 2, 2, incarnation=2)]
        mark = high_watermark(9, 1, 0, 4, [1, 2])
        follows = broker(7, 2, "become-follower", incarnation=2, log_end_offset=2, **TP)
        again = [broker(7, 2, "broker-started", incarnation=3), loaded(8, 2, 2, incarnation=3)]
        held = append(2, 2, 0, 3)
        assert only(HwBounded(), [held, struck, *back, mark]).verdict == Verdict.VALID
        for more in ([*back, follows], [*back, *again]):
            assert only(HwBounded(), [held, struck, *more, mark]).verdict == Verdict.INVALID
        struck.targets = ["broker-3"]
        assert only(HwBounded(), [held, struck, *back, mark]).verdict == Verdict.INVALID

    def test_a_cut_counts(self) -> None:
        events = [append(2, 2, 0, 9), truncate(3, 2, 4), high_watermark(4, 1, 0, 5, [1, 2])]
        assert only(HwBounded(), events).verdict == Verdict.INVALID

    def test_a_member_that_never_opened_the_log(self) -> None:
        started = broker(1, 2, "broker-started")
        assert only(HwBounded(), [started, high_watermark(3, 1, 0, 0, [1, 2])]).verdict == "valid"
        result = only(HwBounded(), [started, high_watermark(3, 1, 0, 1, [1, 2])])
        assert [item.sentence for item in result.findings] == [
            "Leader 1 of t-0 set its high watermark to 1 while broker 2, in its ISR, had not opened the log."
        ]

    def test_a_member_without_any_trace_is_unknown(self) -> None:
        assert only(HwBounded(), [high_watermark(3, 1, 0, 1, [1, 2])]).verdict == Verdict.UNKNOWN

    def test_what_is_certain_is_not_hidden_by_what_is_unknown(self) -> None:
        silent = [high_watermark(time, 1, 0, 1, [3]) for time in range(1, 6)]
        known = [append(6, 2, 0, 0), high_watermark(7, 1, 0, 2, [2])]
        result = only(HwBounded(), [*silent, *known])
        assert (result.verdict, result.finding_count) == (Verdict.INVALID, 6)
        assert [item.sentence for item in result.findings] == [
            "Leader 1 of t-0 set its high watermark to 2 while broker 2, in its ISR, held records only below 1."
        ]

    def test_partitions_and_topic_incarnations_are_apart(self) -> None:
        events = [append(1, 2, 0, 9, partition=1), append(2, 2, 0, 9, topic_id="old")]
        events += [append(3, 2, 0, 0), high_watermark(4, 1, 0, 9, [1, 2])]
        assert only(HwBounded(), events).verdict == Verdict.INVALID

    def test_no_high_watermark_is_unknown(self) -> None:
        assert only(HwBounded(), [append(1, 1, 0, 0)]).verdict == Verdict.UNKNOWN


_steps = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.integers(1, 3), st.integers(0, 6)),
        st.tuples(st.just("truncate"), st.integers(1, 3), st.integers(0, 6)),
        st.tuples(
            st.just("mark"),
            st.integers(1, 3),
            st.integers(0, 7),
            st.lists(st.integers(1, 3), min_size=1, max_size=3, unique=True),
        ),
    ),
    max_size=30,
)


@given(_steps, st.lists(st.integers(0, 40)))
def test_hw_bounded_agrees_with_a_plain_walk(steps: list[tuple[Any, ...]], cuts: list[int]) -> None:
    """Brute force: walk the events in time order and keep every log end offset in a dict."""
    events = [broker(0, node, "broker-started") for node in (1, 2, 3)]
    ends = {1: 0, 2: 0, 3: 0}
    overruns = []
    for time, (label, node, offset, *isr) in enumerate(steps, start=1):
        if label == "append":
            events.append(append(time, node, 0, offset))
            ends[node] = offset + 1
        elif label == "truncate":
            events.append(truncate(time, node, offset))
            ends[node] = offset
        else:
            events.append(high_watermark(time, node, 0, offset, isr[0], log_end_offset=ends[node]))
            overruns += [time for member in isr[0] if ends[member] < offset]
    result = judge(HwBounded(), events, cuts)["hw-bounded"]
    assert result.finding_count == len(overruns)
    first = min(overruns, default=None)
    if first is not None:
        assert result.findings[0].events[-1]["time"] == first


class TestHwGrows:
    def test_growth(self) -> None:
        events = [high_watermark(time, 1, 0, mark, [1]) for time, mark in ((1, 3), (2, 3), (3, 5))]
        result = only(HwGrows(), events)
        assert (result.verdict, result.checked) == (Verdict.VALID, 3)

    def test_a_fall(self) -> None:
        marks = [high_watermark(time, 1, 0, mark, [1]) for time, mark in ((1, 3), (2, 5), (3, 4))]
        assert only(HwGrows(), marks).findings == (
            finding(
                "hw-grows",
                "t-0",
                "The high watermark of t-0 fell from 5 to 4 at leader 1 within leader epoch 0.",
                marks[1],
                marks[2],
            ),
        )

    def test_another_epoch_or_another_life_may_start_lower(self) -> None:
        events = [high_watermark(1, 1, 0, 5, [1]), high_watermark(2, 1, 1, 4, [1])]
        events += [high_watermark(3, 1, 0, 3, [1], incarnation=2)]
        assert only(HwGrows(), events).verdict == Verdict.VALID

    def test_followers_say_nothing(self) -> None:
        events = [become_leader(1, 1, 0, 0), truncate(2, 2, 0, high_watermark=0)]
        assert only(HwGrows(), events).verdict == Verdict.UNKNOWN


@given(st.lists(st.integers(0, 5), min_size=1, max_size=12), st.lists(st.integers(0, 20)))
def test_hw_grows_finds_the_first_fall_however_it_is_cut(marks: list[int], cuts: list[int]) -> None:
    events: list[Event] = [
        high_watermark(index, 1, 0, mark, [1]) for index, mark in enumerate(marks)
    ]
    falls = [index for index in range(len(marks)) if marks[index] < max(marks[: index + 1])]
    result = judge(HwGrows(), events, cuts)["hw-grows"]
    assert [item.events[-1]["time"] for item in result.findings] == falls[:1]
    assert all(item.events[0]["kind"] == Kind.HIGH_WATERMARK for item in result.findings)


class LooksTwice(HwBounded):
    """Believes no proof: every stretch is evaluated by the pass that explains."""

    def shortcut(self, state: Held, carry: Held | None) -> BoundedSummary | None:
        return None


class Proves(HwBounded):
    """Proves what it can of the smallest stretch."""

    worth_proving = 0


nodes = st.integers(1, 3)
offsets = st.integers(0, 4)
isrs = st.lists(nodes, unique=True, max_size=3)
told = st.one_of(
    st.builds(lambda node, end: append(1, node, 0, end), nodes, offsets),
    st.builds(lambda node, to: truncate(1, node, to), nodes, offsets),
    st.builds(lambda node, end: loaded(1, node, end), nodes, offsets),
    st.builds(
        lambda node, mark, isr, end: high_watermark(1, node, 0, mark, isr, log_end_offset=end),
        nodes,
        offsets,
        isrs,
        st.none() | offsets,
    ),
    st.builds(lambda node: broker(1, node, Kind.BROKER_STARTED), nodes),
    st.builds(
        lambda node: Event(
            time=1,
            process="nemesis",
            kind=Kind.FAULT_APPLIED,
            fault="power-cut",
            targets=[f"broker-{node}"],
        ),
        nodes,
    ),
)


class TestTheProof:
    @given(st.lists(told, max_size=30), st.lists(st.integers(0, 30), max_size=6))
    def test_it_never_lets_pass_what_looking_would_find(
        self, events: list[Event], cuts: list[int]
    ) -> None:
        for time, event in enumerate(events):
            event.time = event.seq = time
        looked = judge(LooksTwice(), events, cuts)
        assert judge(Proves(), events, cuts) == looked
        assert judge(HwBounded(), events, cuts) == looked

    @settings(max_examples=60, deadline=None)
    @given(st.lists(told, min_size=1, max_size=30), st.lists(st.integers(0, 30), max_size=6))
    def test_nor_where_the_file_tells_the_lists(
        self, tmp_path_factory: pytest.TempPathFactory, events: list[Event], cuts: list[int]
    ) -> None:
        alike = events[-1].maximal_isr or [1, 2]
        for time, event in enumerate(events):
            event.time = event.seq = time
            if event.kind == Kind.HIGH_WATERMARK and time % 7:
                event.maximal_isr = alike
        groups = stored(tmp_path_factory.mktemp("claims"), events, cuts)
        assert run_checks(groups, [Proves()]) == run_checks(groups, [LooksTwice()])

    def test_a_stretch_whose_claims_the_one_before_bears_out_takes_the_shortcut(self) -> None:
        check, before = Proves(), state_of([append(1, 1, 0, 4), append(2, 2, 0, 4)])
        claims = state_of([high_watermark(3, 1, 0, 4, [1, 2]), high_watermark(4, 1, 0, 4, [1])])
        summary = check.shortcut(claims, before)
        assert summary is not None
        assert summary.checked == 2
        assert check.shortcut(claims, None) is None
        assert check.shortcut(claims, state_of([append(1, 1, 0, 4), append(2, 2, 0, 2)])) is None

    def test_a_short_stretch_without_a_high_watermark_is_not_looked_at_again(self) -> None:
        check, events = HwBounded(), [append(1, 1, 0, 4), append(2, 2, 0, 4)]
        summary = check.shortcut(check.state(Segment.starting_at(table(events), 0)), None)
        assert summary is not None
        assert (summary.checked, summary.tracing) == (0, frozenset({1, 2}))


def stored(directory: Path, events: list[Event], cuts: list[int]) -> list[StoredRowGroup]:
    """A file with row groups that are cut at these places."""
    rows, path = ordered(table(events)), directory / "events.parquet"
    positions = sorted({0, len(events), *(cut for cut in cuts if cut < len(events))})
    with EventsFile(path) as file:
        for start, stop in pairwise(positions):
            file.write(rows.slice(start, stop - start))
    return [
        StoredRowGroup(path, index, start, stop - start)
        for index, (start, stop) in enumerate(pairwise(positions))
    ]


def state_of(events: list[Event]) -> Held:
    return Proves().state(Segment.starting_at(table(events), 0))
