"""Gaps in what readers were given: markers and aborted transactions explain them, and nothing else does."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nemesis.checkers.breaks.events import TP, final, marker, poll, send
from nemesis.checkers.framework.model import Verdict
from nemesis.checkers.log import ClientLog
from nemesis.checkers.log.gaps import Gaps, gaps_in
from nemesis.history.events import Event
from tests.checkers.divided_partitions import PARTITIONED, WALKED, results, small_cells
from tests.checkers.histories import judge

PRODUCERS = (7, 8)

markers = st.lists(
    st.tuples(st.integers(0, 20), st.integers(0, 6), st.sampled_from(PRODUCERS), st.booleans()).map(
        lambda drawn: (drawn[0], drawn[0] - drawn[1] if drawn[1] <= drawn[0] else -1, *drawn[2:])
    ),
    max_size=6,
)


def known(rows: list[tuple[int, int, int, bool]]) -> Gaps:
    return Gaps.of(np.array(rows, dtype=np.int64).reshape(-1, 4))


@given(markers, st.integers(0, 22), st.integers(0, 22))
def test_a_gap_is_explained_if_each_of_its_offsets_is(
    rows: list[tuple[int, int, int, bool]], start: int, end: int
) -> None:
    explained = {offset for offset, *_ in rows}
    for offset, first, _, is_aborted in rows:
        explained |= set(range(first, offset)) if is_aborted and first >= 0 else set()
    expected = start < end and explained.issuperset(range(start, end))
    assert known(rows).explains(start, end) == expected
    unexplained = [offset for offset in range(start, end) if offset not in explained]
    assert known(rows).first_unexplained(start, max(start, end)) == min(
        unexplained, default=max(start, end)
    )


@given(markers, st.integers(0, 22))
def test_a_record_is_aborted_if_its_producers_transaction_is(
    rows: list[tuple[int, int, int, bool]], offset: int
) -> None:
    last: dict[int, int] = {}
    apart = []
    for row in sorted(rows):
        if row[1] > last.get(row[2], -1):
            apart.append(row)
            last[row[2]] = row[0]
    gaps = known(apart)
    for producer in PRODUCERS:
        expected = any(
            first <= offset < end and owner == producer and is_aborted
            for end, first, owner, is_aborted in apart
        )
        assert gaps.is_aborted(producer, offset) == expected
    assert not gaps.is_aborted(None, offset)


@given(st.lists(st.tuples(st.integers(0, 9), st.lists(st.integers(0, 9), max_size=4)), max_size=4))
def test_gaps_in_lists(polls: list[tuple[int, list[int]]]) -> None:
    expected, ascends = [], True
    for position, offsets in polls:
        wanted = position
        for offset in offsets:
            expected += [(wanted, offset)] if offset > wanted else []
            ascends &= offset >= wanted
            wanted = offset + 1
    gaps, in_order = gaps_in(
        np.array([position for position, _ in polls], dtype=np.int64),
        np.array([len(offsets) for _, offsets in polls], dtype=np.int64),
        np.array([offset for _, offsets in polls for offset in offsets], dtype=np.int64),
    )
    assert [tuple(gap) for gap in gaps.tolist()] == expected
    assert in_order == ascends


def verdicts(*parts: Event | list[Event]) -> dict[str, Verdict]:
    events = [event for part in parts for event in (part if isinstance(part, list) else [part])]
    return {name: result.verdict for name, result in judge(ClientLog(), events).items()}


def files(start: int, end: int) -> Event:
    """The log in the files of a broker, which were read when it had stopped."""
    about: dict[str, Any] = {"log_start_offset": start, "log_end_offset": end, "error": "NONE"}
    return Event(time=30, process="harness", kind="stored-log", node=1, **about, **TP)


def test_a_marker_explains_the_offset_that_it_takes() -> None:
    sends = send(1, 1, offset=0, producer_id=7), send(3, 2, offset=2, producer_id=7)
    reads = poll(8, 0, {0: 1}), poll(10, 2, {2: 2}), final(20, {0: 1, 2: 2}), files(0, 3)
    assert verdicts(*sends, *reads)["poll-skip"] is Verdict.INVALID
    with_marker = verdicts(*sends, marker(5, 1, 1, first=0), *reads)
    assert with_marker["poll-skip"] is with_marker["lost-write"] is Verdict.VALID


def test_a_marker_read_from_a_file_explains_its_offset() -> None:
    reads = poll(8, 0, {0: 1, 2: 2})
    stored = Event(
        time=30,
        process="harness",
        kind="stored-marker",
        offset=1,
        first_offset=0,
        producer_id=7,
        outcome="commit",
        node=1,
        **TP,
    )
    assert verdicts(reads, stored)["poll-skip"] is Verdict.VALID


@pytest.mark.parametrize(
    ("start", "kept", "expected"),
    [(3, {3: 3}, Verdict.VALID), (1, {2: 2, 3: 3}, Verdict.INVALID)],
)
def test_a_marker_whose_file_was_deleted_may_have_been_anywhere_below_the_start(
    start: int, kept: dict[int, int], expected: Verdict
) -> None:
    """Brokers that trace nothing, and transactions: only files show markers."""
    sends = send(1, 1, offset=0, producer_id=7), send(3, 2, offset=2, producer_id=7)
    last = final(20, kept, log_start_offset=start)
    last[0].offset = last[1].offset = last[2].log_start_offset = start
    read = poll(8, 0, {0: 1, 2: 2}), send(10, 3, offset=3)
    events = [event for part in (*sends, *read, last, [files(start, 4)]) for event in part]
    assert verdicts(events)["poll-skip"] is expected
    with small_cells(2):
        assert results(events, (5,), PARTITIONED) == results(events, (5,), WALKED)


@pytest.mark.parametrize("stored", [[], [files(0, 1)], [files(2, 4)]])
def test_without_files_any_offset_may_be_a_marker_or_aborted(stored: list[Event]) -> None:
    """A run that was interrupted has read no files, and has no final reads."""
    sends = send(1, 1, offset=0, producer_id=7), send(3, 2, offset=2, producer_id=8)
    reads = poll(8, 0, {2: 2}), poll(10, 0, {0: 1, 2: 2}, process="consumer-1")
    judged = verdicts(*sends, *reads, stored)
    assert judged["poll-skip"] is judged["lost-write"] is Verdict.VALID
    plain = verdicts(*sends, send(5, 3, offset=1), *reads, stored)
    assert plain["poll-skip"] is plain["lost-write"] is Verdict.INVALID


def test_files_without_a_marker_show_that_a_record_was_lost() -> None:
    sends = send(1, 1, offset=0, producer_id=7), send(3, 2, offset=2, producer_id=8)
    judged = verdicts(*sends, poll(8, 0, {2: 2}), files(0, 3))
    assert judged["poll-skip"] is judged["lost-write"] is Verdict.INVALID


@pytest.mark.parametrize(("producer", "expected"), [(7, Verdict.VALID), (8, Verdict.INVALID)])
def test_only_the_records_of_the_aborted_producer_may_be_left_out(
    producer: int, expected: Verdict
) -> None:
    judged = verdicts(
        send(1, 1, offset=0, producer_id=7),
        send(3, 2, offset=1, producer_id=producer),
        marker(5, 1, 2, first=0, outcome="abort"),
        send(7, 3, offset=3, producer_id=9),
        final(20, {3: 3}),
    )
    assert judged["lost-write"] is judged["unseen"] is expected
    assert judged["poll-skip"] is Verdict.VALID


def test_what_a_committed_transaction_wrote_must_be_read() -> None:
    judged = verdicts(
        send(1, 1, offset=0, producer_id=7),
        marker(5, 1, 1, first=0),
        send(7, 3, offset=2),
        final(20, {2: 3}),
    )
    assert judged["lost-write"] is judged["unseen"] is judged["poll-skip"] is Verdict.INVALID


class History:
    """Producers in transactions, readers of committed records and of all, one after the other."""

    def __init__(self, seed: int) -> None:
        self.rng = Random(seed)
        self.time = 0
        self.events: list[Event] = []
        self.log: list[tuple[int, int]] = []
        """Producer and value; −1 of a marker."""
        self.open: dict[int, int] = {}
        self.aborted: set[int] = set()
        self.reached: dict[str, int] = {}
        for _ in range(self.rng.randrange(10, 60)):
            self.rng.choice((self.write, self.write, self.end, self.read))()
        for producer in list(self.open):
            self.end(producer)
        self.read("final-0", len(self.log))
        self.add([self.final_read()])

    def add(self, events: list[Event]) -> None:
        self.events += events
        self.time += 4

    def write(self) -> None:
        producer, offset = self.rng.choice(PRODUCERS), len(self.log)
        self.open.setdefault(producer, offset)
        self.log.append((producer, offset))
        about: dict[str, Any] = {"process": f"producer-{producer}", "producer_id": producer}
        self.add(send(self.time, 100 + offset, offset=offset, **about))

    def end(self, producer: int | None = None) -> None:
        producer = self.rng.choice(PRODUCERS) if producer is None else producer
        first, offset = self.open.pop(producer, -1), len(self.log)
        outcome = self.rng.choice(("commit", "abort"))
        if outcome == "abort" and first >= 0:
            self.aborted |= {
                number for number in range(first, offset) if self.log[number] == (producer, number)
            }
        self.log.append((-1, offset))
        self.add([marker(self.time, 1, offset, first=first, outcome=outcome, producer_id=producer)])

    def read(self, process: str | None = None, count: int = 6) -> None:
        """A reader of committed records ends before the first open transaction."""
        process = process or self.rng.choice(("consumer-0", "consumer-1"))
        is_committed = process != "consumer-1"
        position = self.reached.get(process, 0)
        end = min([len(self.log), *self.open.values()]) if is_committed else len(self.log)
        stop = min(position + count, end)
        given = {
            offset: 100 + offset
            for offset in range(position, stop)
            if self.log[offset][0] >= 0 and not (is_committed and offset in self.aborted)
        }
        self.reached[process] = max(position, stop)
        self.add(poll(self.time, position, given, process=process, mark=len(self.log)))

    def final_read(self) -> Event:
        return Event(
            time=self.time,
            process="final-0",
            kind="final-read",
            seq=self.time,
            offset=len(self.log),
            high_watermark=len(self.log),
            log_start_offset=0,
            error="NONE",
            **TP,
        )


@pytest.mark.parametrize("seed", range(30))
def test_large_partitions_are_judged_as_small_ones(seed: int) -> None:
    """As it is, without one of the markers, and without one of the records that were read."""
    events, rng = History(seed).events, Random(seed)
    honest = results(events, (), WALKED)
    assert {result.verdict for result in honest.values() if result.findings} == set()
    appended = [event for event in events if event.kind == "marker-appended"]
    read = [event for event in events if event.kind == "ok" and event.offsets]
    removed = rng.choice(appended)
    without = [event for event in events if event is not removed]
    spoiled = list(events)
    if read:
        chosen = rng.choice(read)
        index = rng.randrange(len(chosen.offsets or ()))
        spoiled[events.index(chosen)] = _without_record(chosen, index)
    cut = [rng.randrange(1000) for _ in range(rng.randrange(4))]
    with small_cells(1 + seed % 4) as walked:
        for variant in (events, without, spoiled):
            assert results(variant, cut, PARTITIONED) == results(variant, cut, WALKED)
        assert not walked, "the certificate speaks of transactional partitions"


def _without_record(event: Event, index: int) -> Event:
    changed = {
        name: [item for number, item in enumerate(getattr(event, name)) if number != index]
        for name in ("offsets", "values")
    }
    columns = {name: getattr(event, name) for name in event.__struct_fields__}
    return Event(**{**columns, **changed})
