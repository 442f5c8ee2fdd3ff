"""Transactions on the page: those of each producer with their outcomes, and what held the last stable offset."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nemesis.checkers import select
from nemesis.checkers.checking import check
from nemesis.history.events import Event
from nemesis.history.ingest import ingest
from nemesis.history.reader import open_history
from nemesis.history.run_directory import RunDirectory
from nemesis.reports import series, write
from nemesis.reports.run_axis import Bar
from nemesis.reports.transactions import (
    Outcome,
    TransactionsPanel,
    _stays,
    transactions_panel,
)
from tests.reports import story

SECOND = 1_000_000_000


def begun(second: float, number: int, process: str = "transactor-0") -> Event:
    return Event(
        time=round(second * SECOND),
        process=process,
        kind="transaction-begun",
        transactional_id="writes-0",
        transaction=number,
        producer_id=7,
        producer_epoch=number,
    )


def ended(
    second: float, number: int, f: str, kind: str = "ok", process: str = "transactor-0"
) -> list[Event]:
    """The call half a second earlier, and its completion."""
    asked = msgspec.structs.replace(
        begun(second - 0.5, number, process), kind="invoke", f=f, op=number
    )
    done = msgspec.structs.replace(asked, kind=kind, time=round(second * SECOND))
    return [asked, done]


def polled(second: float, stable: int, high: int) -> list[Event]:
    asked = Event(
        time=round(second * SECOND),
        process="consumer-0",
        kind="invoke",
        f="poll",
        op=1_000 + round(10 * second),
        topic="t",
        partition=0,
        offset=0,
        isolation="read_committed",
    )
    answer = msgspec.structs.replace(
        asked,
        kind="ok",
        time=asked.time + 1,
        values=[],
        offsets=[],
        last_stable_offset=stable,
        high_watermark=high,
    )
    return [asked, answer]


def holder(second: float, first_offset: int) -> list[Event]:
    """The last reader asks which transaction is open."""
    (asked, answer) = polled(second, 6, 9)
    asked, answer = (
        msgspec.structs.replace(event, f="open-transaction", process="committed", isolation=None)
        for event in (asked, answer)
    )
    answered = msgspec.structs.replace(
        answer, first_offset=first_offset, producer_id=7, producer_epoch=4
    )
    return [asked, answered]


def events() -> list[Event]:
    """Two producers share an id: one commits, aborts and is killed; the other has no answer."""
    listed = [
        Event(time=0, process="nemesis", kind="phase", phase="warm-up"),
        begun(1, 1),
        *ended(2, 1, "commit-transaction"),
        begun(3, 2),
        *ended(4, 2, "abort-transaction"),
        begun(5, 3),
        begun(6, 4, "transactor-1"),
        *ended(8, 4, "commit-transaction", "info", "transactor-1"),
        *polled(1.5, 2, 5),
        *polled(2.5, 6, 6),
        *polled(8.5, 6, 9),
        *holder(9.0, first_offset=6),
        Event(time=10 * SECOND, process="nemesis", kind="phase", phase="end"),
    ]
    counts: dict[str, int] = {}
    for event in (ordered := sorted(listed, key=lambda event: event.time)):
        event.seq = counts[event.process] = counts.get(event.process, -1) + 1
    return ordered


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    run = RunDirectory.create(tmp_path, story.info())
    lines = [msgspec.json.encode(event) for event in events()]
    run.raw_file("clients").write_bytes(b"\n".join(lines) + b"\n")
    ingest(run)
    return run


def panel(run: RunDirectory) -> TransactionsPanel:
    history = open_history(run.history)
    shown = transactions_panel(history, series.extract(series.read(history)))
    assert shown is not None
    return shown


def shades(bars: tuple[Bar, ...]) -> list[Outcome]:
    return [Outcome(bar.shade) for bar in bars]


def test_each_producer_has_its_transactions_with_their_outcomes(run: RunDirectory) -> None:
    (writes,) = panel(run).ids
    first, second = writes.lanes
    assert (first.name, second.name) == ("transactor-0", "transactor-1")
    assert shades(first.bars) == [Outcome.COMMITTED, Outcome.ABORTED, Outcome.LEFT]
    assert shades(second.bars) == [Outcome.IN_DOUBT]
    assert (first.bars[0].left, first.bars[0].width) == (100.0, 100.0)
    assert first.bars[0].label == (
        "transaction 1, committed; producer id 7, epoch 1: 1.00 to 2.00 s"
    )
    assert writes.summary == (
        "1 committed; 1 aborted; 1 in doubt; 1 left; a commit took 1.00 s in the median"
    )


def test_a_last_stable_offset_below_the_high_watermark_is_drawn_until_it_moves(
    run: RunDirectory,
) -> None:
    (lane,) = panel(run).held
    assert lane.name == "t-0"
    bar, last = lane.bars
    assert (bar.left, bar.width) == (150.0, 100.0)
    assert bar.label.startswith("last stable offset 2, high watermark 5:")
    assert last.label.startswith(
        "last stable offset 6, high watermark 9, held by producer id 7, epoch 4:"
    )


def test_the_page_shows_them(run: RunDirectory) -> None:
    write(run, check(run.history, select(["unseen"])))
    page = run.report_file.read_text()
    assert page.count('id="faults-in-force"') == 1
    assert 'id="transactions"' in page
    assert "transaction 1, committed" in page


def test_a_run_without_transactions_has_no_such_section(tmp_path: Path) -> None:
    run = RunDirectory.create(tmp_path, story.info())
    run.raw_file("clients").write_bytes(msgspec.json.encode(events()[0]) + b"\n")
    ingest(run)
    history = open_history(run.history)
    assert transactions_panel(history, series.extract(series.read(history))) is None


@given(st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20)), max_size=20))
def test_stays_follow_each_other_and_are_below_the_high_watermark(
    answers: list[tuple[int, int]],
) -> None:
    polls = [polled(number, *sorted(pair))[1] for number, pair in enumerate(answers)]
    stays = list(_stays(polls))
    assert all(stay.offset < stay.high_watermark for stay in stays)
    assert all(stay.start_ns <= stay.stop_ns for stay in stays)
    offsets = [stay.offset for stay in stays]
    assert offsets == sorted(set(offsets))
