"""A log of which only sends and polls are known: each anomaly, with its smallest history."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from nemesis.checkers.breaks import logs as breaks
from nemesis.checkers.breaks.log_operations import (
    Polled,
    Sent,
    Txn,
    poll,
    poll_of,
    send,
    transactions,
)
from nemesis.checkers.foreign import select_foreign
from nemesis.checkers.framework.model import Finding, Result, Verdict
from nemesis.checkers.framework.property import property_names
from nemesis.checkers.log.offset_log import OffsetLog
from nemesis.history.events import Event
from nemesis.history.foreign.names import Names
from tests.checkers import random_logs
from tests.checkers.histories import as_row, judge, only
from tests.history.foreign.reading import events_of, read

Records = Sequence[tuple[int, int]]


def result(name: str, *events: Event) -> Result:
    return only(OffsetLog(), events, name)


def broken(events: Iterable[Event]) -> list[str]:
    return [
        item.property
        for item in judge(OffsetLog(), events).values()
        if item.verdict is Verdict.INVALID
    ]


def found(name: str, sentence: str, *events: Event, steps: tuple[str, ...] = ()) -> Finding:
    return Finding(
        property=name,
        verdict=Verdict.INVALID,
        key="t-0",
        sentence=sentence,
        steps=steps,
        events=tuple(map(as_row, events)),
    )


ALL_IS_WELL = [
    send(1, 7, 0),
    send(2, 8, 1),
    send(3, 9, 5),
    send(4, 10, kind="info"),
    send(5, 11, kind="fail"),
    poll(6, (0, 7), (1, 8)),
    poll(7, (5, 9), (6, 10)),
    poll(8, process="2"),
    poll(9, (0, 7), (1, 8), (5, 9), process="2"),
]


def test_a_log_in_which_all_is_well() -> None:
    results = judge(OffsetLog(), ALL_IS_WELL)
    assert list(results) == list(property_names(OffsetLog))
    assert {result.verdict for result in results.values()} == {Verdict.VALID}
    assert results["lost-write"].checked == 3
    assert results["poll-skip"].checked == 7
    assert results["lost-write"].numbers == {"acknowledged_and_never_read_records": 0.0}


def test_who_saw_nothing_has_proved_nothing() -> None:
    verdicts = {name: value.verdict for name, value in judge(OffsetLog(), [send(1, 7, 0)]).items()}
    assert verdicts["lost-write"] is verdicts["poll-skip"] is Verdict.UNKNOWN
    assert verdicts["duplicate"] is verdicts["nonmonotonic-send"] is Verdict.VALID


def test_polls_that_failed_or_are_in_doubt_count_for_what_they_report() -> None:
    for kind in ("info", "fail"):
        assert broken([send(1, 7, 0), poll(2, (1, 8), kind=kind)]) == ["lost-write"]
        assert broken([send(1, 7, 0), poll(2, (0, 7), kind=kind), poll(3, (1, 8))]) == []
        assert broken([send(1, 7, kind="fail"), poll(2, (0, 7), kind=kind)]) == ["dirty-read"]
        assert broken([send(1, 7, 0), poll(2, (0, 8), kind=kind)]) == ["inconsistent-offset"]


def test_of_the_order_of_polls_only_successful_ones_tell() -> None:
    for kind in ("info", "fail"):
        doubtful = [poll(1, (0, 7), (1, 8)), poll(2, (0, 7), kind=kind), poll(3, (2, 9))]
        assert broken(doubtful) == []


def test_lost_write() -> None:
    ((lost, read),) = breaks.LOST_WRITE
    assert result("lost-write", lost, read).findings == (
        found(
            "lost-write",
            "Value 7, acknowledged at offset 0 of t-0, was never read, though offset 1 was.",
            lost,
            read,
            steps=(
                "A send of 7 to t-0 was acknowledged at offset 0.",
                "A poll returned value 8 at offset 1, which is behind it.",
                "No poll of the history returned 7, at any offset.",
            ),
        ),
    )


def test_what_nobody_has_read_yet_is_not_lost_but_counted() -> None:
    judged = result("lost-write", send(1, 7, 0), send(2, 8, 1), poll(3, (0, 7)))
    assert judged.verdict is Verdict.VALID
    assert judged.numbers == {"acknowledged_and_never_read_records": 1.0}


READ_TO_END = (send(1, 7, 0), send(2, 8, 1), *poll_of(3, 4, (0, 7)), *poll_of(5, 6))


def test_what_a_consumer_should_have_read_at_the_end_is_unseen() -> None:
    (finding,) = result("unseen", *READ_TO_END).findings
    assert finding.verdict is Verdict.INVALID
    assert finding.sentence == (
        "Value 8, acknowledged at offset 1 of t-0, was never read, though client 1 read the log to its end afterwards."
    )
    assert [event["time"] for event in finding.events] == [2, 4, 6]
    assert broken(READ_TO_END) == ["unseen"]


def test_what_nobody_looked_for_is_not_unseen() -> None:
    sent, (poll_begun, poll_ended, *empty) = READ_TO_END[:2], READ_TO_END[2:]
    late = send(7, 8, 1)
    for events in (
        # It was acknowledged after the poll that returned the last record had begun.
        (READ_TO_END[0], poll_begun, poll_ended, *empty, late),
        # The consumer did not poll again, or another one did.
        (*sent, poll_begun, poll_ended),
        (*sent, poll_begun, poll_ended, *poll_of(5, 6, process="2")),
        # The first poll may have ended before a broker answered.
        (*sent, *poll_of(3, 4), poll(7, (0, 7), process="2")),
        # Another consumer read it.
        (*READ_TO_END, *poll_of(7, 8, (1, 8), process="2")),
        # Its send is in doubt.
        (READ_TO_END[0], send(2, 8, kind="info"), *READ_TO_END[2:]),
    ):
        assert broken(events) == [], events


IN_DOUBT, OTHER, PROOF, LAST, EMPTY = breaks.TORN


def in_doubt(*txns: Txn) -> list[str]:
    return broken(transactions(*txns))


def test_a_polled_record_proves_the_others_of_its_transaction() -> None:
    (finding,) = result("unseen", *transactions(*breaks.TORN)).findings
    assert finding.key == "y-0"
    assert finding.sentence == (
        "Value 2 of y-0 was never read, though client 1 read the log to its end after a poll had returned value 1 of "
        "x-0, which the same transaction sent."
    )
    assert [event["time"] for event in finding.events] == [10, 10, 14, 16, 18]
    assert in_doubt(replace(IN_DOUBT, kind="fail"), *breaks.TORN[1:]) == ["dirty-read"]


def test_a_transaction_without_a_completion_is_in_doubt_too() -> None:
    events = transactions(*breaks.TORN)
    assert broken(events[:1] + events[2:3] + events[4:]) == ["unseen"]


def test_the_proof_and_the_missing_record_may_be_of_one_log() -> None:
    both = replace(IN_DOUBT, parts=[Sent("y", 1, None), Sent("y", 2, None)])
    proof = replace(PROOF, parts=[Polled("y", [(1, 1)])])
    last = replace(LAST, parts=[Polled("y", [(0, 3), (1, 1)])], process="2")
    assert in_doubt(both, OTHER, proof, last, replace(EMPTY, process="2")) == ["unseen"]


def test_what_does_not_prove_that_a_record_was_missed() -> None:
    own = replace(IN_DOUBT, parts=[*IN_DOUBT.parts, Polled("x", [(0, 1)])])
    own_poll = transactions(own, OTHER, LAST, EMPTY)
    own_poll[5] = Event(**{**as_row(own_poll[5]), "offsets": [0], "values": [1]})
    assert broken(own_poll) == []
    for txns in (
        # No poll returned a record of the transaction.
        (IN_DOUBT, OTHER, LAST, EMPTY),
        # The decisive poll began before the end of the one that proves it.
        (IN_DOUBT, OTHER, replace(PROOF, began=15, ended=17, process="2"), LAST, EMPTY),
        # No consumer read the log to its end, or another consumer got the record.
        (IN_DOUBT, OTHER, PROOF, LAST),
        (*breaks.TORN, Txn(19, 20, [Polled("y", [(1, 2)])], "2")),
        # Either of two transactions may have sent what was polled.
        (
            replace(IN_DOUBT, began=-2, ended=-1),
            replace(IN_DOUBT, parts=IN_DOUBT.parts[:1]),
            *breaks.TORN[1:],
        ),
        # Two transactions of one process.
        (
            replace(IN_DOUBT, parts=IN_DOUBT.parts[:1]),
            Txn(1, 9, IN_DOUBT.parts[1:], "0", "info"),
            *breaks.TORN[1:],
        ),
    ):
        assert in_doubt(*txns) == [], txns


LATER = Txn(15, 16, [Sent("y", 3, None)], "2", "info")
READ = Txn(17, 18, [Polled("y", [(1, 3)])], "1")


def test_a_record_in_doubt_is_lost_if_one_that_was_sent_later_was_read() -> None:
    events = transactions(IN_DOUBT, PROOF, LATER, READ)
    assert broken(events) == ["lost-write"]
    (finding,) = result("lost-write", *events).findings
    assert finding.key == "y-0"
    assert finding.sentence == (
        "Value 2 of y-0 was never read, though value 3 was, which was sent after a poll had returned value 1 of x-0, "
        "which the same transaction sent."
    )
    assert [event["time"] for event in finding.events] == [10, 10, 14, 15, 18]
    log, _ = select_foreign("kafka", None, "read-uncommitted")
    assert judge(log, events)["lost-write"].verdict is Verdict.UNKNOWN


def test_what_does_not_prove_that_a_record_in_doubt_was_lost() -> None:
    for txns in (
        # No poll returned a record of the transaction, or none that was sent later.
        (IN_DOUBT, LATER, READ),
        (IN_DOUBT, PROOF, LATER),
        # The later send began before the end of the poll that proves the commit.
        (IN_DOUBT, PROOF, replace(LATER, began=13, ended=16), READ),
        # The record was read in the end.
        (IN_DOUBT, PROOF, LATER, READ, Txn(19, 20, [Polled("y", [(0, 2)])], "3")),
        # The later record was sent to another log.
        (
            IN_DOUBT,
            PROOF,
            replace(LATER, parts=[Sent("x", 3, None)]),
            replace(READ, parts=[Polled("x", [(1, 3)])]),
        ),
        # Its value was also sent before.
        (replace(LATER, began=-2, ended=-1, process="3"), IN_DOUBT, PROOF, LATER, READ),
    ):
        assert in_doubt(*txns) == [], txns


def test_consumers_of_uncommitted_records_prove_no_commit() -> None:
    log, _ = select_foreign("kafka", None, "read-uncommitted")
    assert judge(log, transactions(*breaks.TORN))["unseen"].verdict is Verdict.VALID


def test_an_honest_log_has_no_anomaly() -> None:
    proved = 0
    for seed in range(60):
        operations = random_logs.random_log(Random(seed), is_honest=True)
        assert random_logs.anomalies(operations) == set(), seed
        events = list(events_of(read(random_logs.text(operations)), "kafka", Names()))
        results = judge(OffsetLog(), events)
        assert [name for name, result in results.items() if result.findings] == [], seed
        proved += any(
            random_logs.proofs(operations, op)
            for op in operations
            if len(op.sends) > 1 and op.kind in ("info", "none")
        )
    assert proved > 3


def test_polls_in_doubt_are_judged_as_by_looking_at_every_pair() -> None:
    lost: Counter[Verdict] = Counter()
    kinds = (*random_logs.DOUBTFUL_KINDS, "info", "none")
    for seed in range(150):
        operations = random_logs.random_log(Random(seed), poll_kinds=kinds)
        expected = random_logs.anomalies(operations)
        events = list(events_of(read(random_logs.text(operations)), "kafka", Names()))
        results = judge(OffsetLog(), events)
        broken = {name for name, result in results.items() if result.verdict is Verdict.INVALID}
        if random_logs.IN_DOUBT in expected:
            assert broken & {"unseen", "lost-write"}, seed
            expected -= {random_logs.IN_DOUBT}
            broken -= {"unseen", "lost-write"} - expected
        assert broken == expected - {"G1c", "precommitted-read"}, seed
        lost[results["lost-write"].verdict] += bool(results["lost-write"].findings)
    assert min(lost[Verdict.INVALID], lost[Verdict.UNKNOWN]) > 1


def test_duplicate() -> None:
    ((sent, read),) = breaks.DUPLICATE
    assert result("duplicate", sent, read).findings == (
        found("duplicate", "Value 7 stands at offset 0 and at offset 1 of t-0.", sent, read),
    )


def test_inconsistent_offset() -> None:
    ((sent, read),) = breaks.INCONSISTENT_OFFSET
    assert result("inconsistent-offset", sent, read).findings == (
        found("inconsistent-offset", "Offset 0 of t-0 held value 7 and value 8.", sent, read),
    )


def test_dirty_read() -> None:
    ((failed, read),) = breaks.DIRTY_READ
    assert result("dirty-read", failed, read).findings == (
        found("dirty-read", "Value 7 was read from t-0 though its send had failed.", failed, read),
    )


def test_a_value_that_was_sent_again_may_be_read() -> None:
    events = [send(1, 7, kind="fail"), send(2, 7, 0), poll(3, (0, 7))]
    assert result("dirty-read", *events).verdict is Verdict.VALID


def test_poll_skip() -> None:
    sent, first, second = breaks.POLL_SKIP[1]
    assert result("poll-skip", sent, first, second).findings == (
        found(
            "poll-skip",
            "1 was given offset 0 of t-0, then 2, and not 1, where a record stands.",
            first,
            second,
        ),
    )


def test_poll_skip_within_a_poll() -> None:
    sent, item = breaks.POLL_SKIP[0]
    assert result("poll-skip", sent, item).findings[0].events == (as_row(item),)


def test_a_gap_in_which_nothing_is_known_is_no_skip() -> None:
    assert result("poll-skip", poll(2, (0, 7)), poll(3, (9, 9))).verdict is Verdict.VALID


def test_another_consumer_begins_where_it_likes() -> None:
    events = [send(1, 8, 1), poll(2, (0, 7)), poll(3, (2, 9), process="2"), poll(4, (1, 8))]
    assert broken(events) == []


def test_nonmonotonic_poll() -> None:
    ((first, second),) = breaks.NONMONOTONIC_POLL
    assert result("nonmonotonic-poll", first, second).findings == (
        found("nonmonotonic-poll", "1 was given offset 1 of t-0, then 1.", first, second),
    )


def test_nonmonotonic_send() -> None:
    ((first, second),) = breaks.NONMONOTONIC_SEND
    assert result("nonmonotonic-send", first, second).findings == (
        found(
            "nonmonotonic-send",
            "0 sent value 7 to t-0 and then value 8, which were acknowledged at offsets 5 and 4.",
            first,
            second,
        ),
    )
    assert broken([first, send(2, 8, 4, process="2")]) == []


@st.composite
def logs(draw: st.DrawFn) -> list[Event]:
    """What clients of a correct log see: records at growing offsets, each consumer reading on."""
    gaps = draw(st.lists(st.integers(1, 3), min_size=1, max_size=10))
    offsets = [sum(gaps[: index + 1]) for index in range(len(gaps))]
    events = []
    for value, offset in enumerate(offsets):
        outcome = draw(st.sampled_from(["ok", "ok", "info"]))
        position = offset if outcome == "ok" else None
        events.append(send(value, value, position, outcome, process=draw(st.sampled_from("ab"))))
    events.append(send(len(offsets), 99, kind="fail"))
    time = len(events)
    for consumer in "xy":
        row_index = 0
        for size in draw(st.lists(st.integers(0, 4), max_size=6)):
            records = [
                (offsets[i], i) for i in range(row_index, min(row_index + size, len(offsets)))
            ]
            events.append(poll(time, *records, process=consumer))
            time += 1
            row_index += size
    return events


@given(logs(), st.lists(st.integers(0, 99), max_size=4))
def test_a_correct_log_is_never_convicted(events: list[Event], cuts: list[int]) -> None:
    results = judge(OffsetLog(), events, cuts)
    assert [name for name, result in results.items() if result.findings] == []


def brute_force(events: Sequence[Event]) -> set[str]:
    """The anomalies by their definitions, one pair at a time."""
    sends = [event for event in events if event.f == "send" and event.kind == "ok"]
    polls = [event for event in events if event.f == "poll"]
    read = [record for poll in polls for record in records_of(poll)]
    values_read = {value for _, value in read}
    acknowledged = [(send.offset, send.value) for send in sends if send.offset is not None]
    known = [*acknowledged, *read]
    tells = {
        "lost-write": any(
            value not in values_read and any(other > offset for other, _ in read)
            for offset, value in acknowledged
        ),
        "inconsistent-offset": any(a[0] == b[0] and a[1] != b[1] for a in known for b in known),
        "duplicate": any(a[0] != b[0] and a[1] == b[1] for a in known for b in known),
        "dirty-read": any(
            event.kind == "fail" and event.value in values_read - {send.value for send in sends}
            for event in events
        ),
        "nonmonotonic-poll": any(
            after <= before for before, after in successive(polls, records_of)
        ),
        "poll-skip": any(
            before < offset < after
            for before, after in successive(polls, records_of)
            for offset, _ in known
        ),
        "nonmonotonic-send": any(after <= before for before, after in successive(sends, place_of)),
    }
    return {name for name, is_broken in tells.items() if is_broken}


def records_of(event: Event) -> Records:
    return list(zip(event.offsets or [], event.values or [], strict=True))


def place_of(event: Event) -> Records:
    return [] if event.offset is None else [(event.offset, 0)]


def successive(
    events: Sequence[Event], positions: Callable[[Event], Records]
) -> Iterator[tuple[int, int]]:
    """The offsets that each process was told of, one and the next."""
    for process in {event.process for event in events}:
        own = [
            offset for event in events if event.process == process for offset, _ in positions(event)
        ]
        yield from pairwise(own)


SMALL = st.integers(0, 3)
STEPS = st.one_of(
    st.tuples(
        st.just("send"), SMALL, st.one_of(st.none(), SMALL), st.sampled_from(["ok", "fail", "info"])
    ),
    st.tuples(st.just("poll"), st.lists(st.tuples(SMALL, SMALL), max_size=3)),
)


def history(steps: Sequence[tuple[object, ...]], processes: Sequence[str]) -> list[Event]:
    events = []
    for time, (step, process) in enumerate(zip(steps, processes, strict=False)):
        if step[0] == "send":
            _, value, offset, kind = step
            position = offset if kind == "ok" else None
            events.append(send(time, value, position, kind, process))  # type: ignore[arg-type]
        else:
            events.append(poll(time, *step[1], process=process))  # type: ignore[misc]
    return events


@given(
    st.lists(STEPS, max_size=6),
    st.lists(st.sampled_from("ab"), min_size=6, max_size=6),
    st.lists(st.integers(0, 9), max_size=3),
)
def test_it_agrees_with_the_definitions(
    steps: list[tuple[object, ...]], processes: list[str], cuts: list[int]
) -> None:
    events = history(steps, processes)
    results = judge(OffsetLog(), events, cuts)
    assert {name for name, result in results.items() if result.findings} == brute_force(events)
