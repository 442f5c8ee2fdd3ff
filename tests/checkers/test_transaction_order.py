"""The order of transactions: what a correct cluster cannot have is named; what Kafka permits is counted."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from nemesis.checkers import CHECKERS
from nemesis.checkers.breaks.events import history
from nemesis.checkers.breaks.transactions_read import (
    OUTPUT,
    TRANSACTION_ORDER,
    committed_poll,
    derived,
    position_sent,
    request,
    sent,
)
from nemesis.checkers.framework.engine import run_checks
from nemesis.checkers.framework.model import Result, Verdict
from nemesis.history.events import Event, Kind
from nemesis.history.memory import history_of
from nemesis.history.vocabulary.harness import UNCLEAN_ELECTIONS

COMMIT = "commit-transaction"


def judged(*parts: Event | list[Event]) -> Result:
    check = CHECKERS["transaction-order"].check()
    results = run_checks(history_of(history(*parts)).row_groups, [check])
    return next(result for result in results if result.property == "transaction-order")


def permitted(result: Result) -> dict[str, float]:
    """The numbers of cycles that Kafka permits."""
    return {name: value for name, value in result.numbers.items() if name.startswith("permitted")}


def by_process(events: list[Event], process: str) -> list[Event]:
    """The same, of another process."""
    return [replace(event, process=process) for event in events]


SENTENCES = (
    (
        "Committed transactions 2 and 1 have no order: 2 was committed before the commit of 1 was requested; 2 wrote "
        "value 8, which is derived from value 1 of 1 (G1c-process)."
    ),
    (
        "Committed transactions 1 and 2 have no order: 2 wrote value 9, which is derived from value 8 of 1; 1 wrote "
        "value 8, which is derived from value 9 of 2 (G1c)."
    ),
    (
        "In t-0, value 2 of transaction 2 is at offset 5, before value 1 of transaction 1 at offset 6. It was sent "
        "only after the acknowledgement of the other value."
    ),
)


@pytest.mark.parametrize(
    ("broken", "sentence"), list(zip(TRANSACTION_ORDER, SENTENCES, strict=True))
)
def test_each_smallest_break_is_named(broken: tuple[Event, ...], sentence: str) -> None:
    result = judged([*broken])
    assert result.verdict is Verdict.INVALID
    assert [finding.sentence for finding in result.findings] == [sentence]


def test_real_time_closes_a_cycle_as_the_order_of_a_process_does() -> None:
    result = judged(
        *(sent(0, 1, 5), derived(2, 8, 1, 0, 2)),
        *(request(4, COMMIT, 2), by_process(request(6, COMMIT, 1), "another")),
    )
    assert [finding.sentence[-15:] for finding in result.findings] == ["(G1c-realtime)."]


@pytest.mark.parametrize("outcome", ["abort-transaction", None])
def test_a_transaction_that_is_not_committed_has_no_place_in_the_order(outcome: str | None) -> None:
    end = [] if outcome is None else request(6, outcome, 1)
    result = judged(sent(0, 1, 5), derived(2, 8, 1, 0, 2), request(4, COMMIT, 2), end)
    assert result.verdict is Verdict.VALID


def test_a_reader_proves_a_commit_of_unknown_outcome() -> None:
    events = [
        *(*sent(0, 1, 5), *derived(2, 8, 1, 0, 2), *request(4, COMMIT, 2, outcome="info")),
        *request(6, COMMIT, 1),
    ]
    assert judged(events).verdict is Verdict.VALID
    shown = judged(events, committed_poll(8, 0, {0: 8}, 0, **OUTPUT))
    assert shown.verdict is Verdict.VALID, "its end is unknown, so nothing is known to follow it"
    cycle = [
        *(*derived(0, 8, 9, 0, 1), *derived(2, 9, 8, 1, 2)),
        *(*request(4, COMMIT, 1), *request(5, COMMIT, 2, outcome="info")),
    ]
    assert judged(cycle).verdict is Verdict.VALID
    assert judged(cycle, committed_poll(8, 0, {1: 9}, 1, **OUTPUT)).verdict is Verdict.INVALID


def test_appends_that_interleave_are_a_permitted_g0() -> None:
    result = judged(
        *(sent(0, 1, 5, 1), derived(2, 4, -1, 7, 2), sent(4, 3, 6, 2), derived(6, 2, -1, 8, 1)),
        *(request(8, COMMIT, 1), by_process(request(8, COMMIT, 2), "another")),
    )
    assert result.verdict is Verdict.VALID
    assert permitted(result) == {"permitted_G0_cycles": 1}
    assert result.checked == 4


def test_an_append_closes_a_permitted_g1c() -> None:
    result = judged(
        *(sent(0, 1, 5, 1), sent(2, 2, 6, 2), by_process(request(4, COMMIT, 2), "another")),
        *(derived(6, 3, 2, 0, 1), request(8, COMMIT, 1)),
    )
    assert result.verdict is Verdict.VALID
    assert permitted(result) == {"permitted_G1c_cycles": 1}


def test_two_transactions_that_miss_each_others_records_are_a_permitted_g2() -> None:
    positions = [
        *position_sent(0, 0, 1),
        *request(2, "send-offset", 2, group="g", offset=0, value=0, **OUTPUT),
    ]
    result = judged(
        *(positions, derived(4, 8, -1, 0, 1), sent(6, 9, 0, 2)),
        *(request(8, COMMIT, 1), by_process(request(8, COMMIT, 2), "another")),
    )
    assert result.verdict is Verdict.VALID
    assert permitted(result) == {"permitted_G2-item_cycles": 1}


def test_records_that_are_under_way_together_have_any_order() -> None:
    late = sent(0, 1, 6, 1)
    early = by_process(sent(1, 2, 5, 2), "another")
    assert judged(late, early).verdict is Verdict.VALID


def test_a_record_that_is_not_acknowledged_has_no_known_place() -> None:
    in_doubt = request(2, "send", 2, outcome="info", value=2, topic="t", partition=0)
    assert judged(sent(0, 1, 6, 1), in_doubt).verdict is Verdict.VALID


def test_where_unclean_leaders_may_be_elected_findings_are_allowed() -> None:
    allows = Event(
        time=0, process="harness", kind=Kind.BROKER_PROPERTY, seq=0, setting=UNCLEAN_ELECTIONS, count=1
    )  # fmt: skip
    result = judged([allows, *TRANSACTION_ORDER[2]])
    assert result.verdict is Verdict.VALID
    assert len(result.findings) == 1


def test_without_a_record_of_a_transaction_it_is_unknown() -> None:
    assert judged(request(0, COMMIT, 1)).verdict is Verdict.UNKNOWN


# -- random histories: a log with one order, readers of what is decided -----------------------------------


@st.composite
def correct(draw: st.DrawFn) -> list[Event]:
    """Transactions of several processes at a time: each reads what is committed, appends, and commits."""
    events: list[Event] = []
    committed: list[int] = []
    written: dict[int, list[int]] = {}
    ended: set[int] = set()
    ends = {"t": 0, "u": 0}
    for step, number in enumerate(draw(st.lists(st.integers(1, 6), max_size=30))):
        time, process = 10 * step, f"p{number % 3}"
        if number in ended:
            continue
        if number in written and draw(st.booleans()):
            events += by_process(request(time, COMMIT, number), process)
            committed += written[number]
            ended.add(number)
            continue
        topic = draw(st.sampled_from(["t", "u"]))
        source = draw(st.sampled_from([-1, *committed]))
        about = {"topic": topic, "topic_id": f"id-{topic}", "partition": 0}
        events += by_process(derived(time, time, source, ends[topic], number, **about), process)
        ends[topic] += 1
        written.setdefault(number, []).append(time)
    return events


@settings(max_examples=150, deadline=None)
@given(correct())
def test_a_correct_log_is_never_convicted(events: list[Event]) -> None:
    assert not judged(events).findings


@settings(max_examples=150, deadline=None)
@given(correct(), st.data())
def test_a_record_that_stands_too_early_is_always_named(
    events: list[Event], data: st.DataObject
) -> None:
    sends = [event for event in events if event.f == "send" and event.kind == Kind.OK]
    before = data.draw(st.sampled_from([None, *sends]))
    if before is None:
        return
    time = 10_000
    about = {"topic": before.topic, "topic_id": before.topic_id, "partition": 0}
    # Offsets of the generated log are dense, so the half of the one that is taken would be free.
    doubled = [
        event if event.offset is None else replace(event, offset=2 * event.offset + 1)
        for event in events
    ]
    early = derived(time, time, -1, 2 * (before.offset or 0), 99, **about)
    result = judged(doubled, early)
    assert result.verdict is Verdict.INVALID
    assert f"value {time} of transaction 99" in result.findings[0].sentence
