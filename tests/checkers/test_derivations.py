"""Exactly once: what a correct cluster does is not convicted, what is open is ``unknown``, what is broken is named."""

from __future__ import annotations

from nemesis.checkers import CHECKERS
from nemesis.checkers.breaks.events import history, started
from nemesis.checkers.breaks.transactions_read import (
    EXACTLY_ONCE,
    OUTPUT,
    committed_poll,
    derived,
    position_read,
    position_sent,
    request,
)
from nemesis.checkers.framework.engine import run_checks
from nemesis.checkers.framework.model import Result, Verdict
from nemesis.history.events import Event
from nemesis.history.memory import history_of

COMMIT, ABORT = "commit-transaction", "abort-transaction"
V, U, I = Verdict.VALID, Verdict.UNKNOWN, Verdict.INVALID  # noqa: E741
BEGIN = [*position_read(0, -1), *committed_poll(2, 0, {0: 1, 1: 2}, 1)]
"""The group has no position, and its producer reads two records of t-0."""


def judged(*parts: Event | list[Event]) -> Result:
    check = CHECKERS["exactly-once"].check()
    results = run_checks(history_of(history(*parts)).row_groups, [check])
    return next(result for result in results if result.property == "exactly-once")


def transformed(
    time: int, transaction: int, *, outcome: str = "ok", end: str = COMMIT, value: int = 8
) -> list[Event]:
    """Both records of t-0 are derived in one transaction with position 2."""
    return [
        *derived(time, value, 1, 2 * transaction, transaction),
        *derived(time + 2, value + 1, 2, 2 * transaction + 1, transaction),
        *position_sent(time + 4, 2, transaction),
        *request(time + 6, end, transaction, outcome=outcome),
    ]


def input_read(time: int) -> list[Event]:
    """A reader of committed records is given the input again."""
    return committed_poll(time, 0, {0: 1, 1: 2}, 1)


def output_read(time: int, *values: int, first: int = 2) -> list[Event]:
    """A reader of committed records reads u-0 to its end, and is given these values from this offset on."""
    records = {first + index: value for index, value in enumerate(values)}
    return committed_poll(time, 0, records, 20, **OUTPUT)


def test_input_that_is_derived_in_a_committed_transaction_is_counted() -> None:
    result = judged(BEGIN, transformed(4, 1), input_read(20), output_read(22, 8, 9))
    assert (result.verdict, result.checked) == (V, 2)


def test_nothing_is_decided_without_a_committed_position() -> None:
    result = judged(BEGIN, transformed(4, 1, end=ABORT), input_read(20), output_read(22))
    assert (result.verdict, result.checked) == (U, 0)


def test_input_of_an_aborted_transaction_is_derived_again() -> None:
    again = transformed(20, 2, value=18)
    result = judged(BEGIN, transformed(4, 1, end=ABORT), again, input_read(40))
    assert (result.verdict, result.checked) == (V, 2)


def test_a_commit_in_doubt_may_take_effect() -> None:
    in_doubt = transformed(4, 1, outcome="info")
    assert judged(BEGIN, in_doubt, input_read(20), output_read(22, 8, 9)).verdict is V
    assert judged(BEGIN, in_doubt, position_read(20, 2), input_read(22)).verdict is U


def test_a_commit_in_doubt_may_have_no_effect() -> None:
    in_doubt = transformed(4, 1, outcome="info")
    again = [*position_read(16, -1), *transformed(20, 2, value=18)]
    assert judged(BEGIN, in_doubt, again, input_read(40)).verdict is V
    assert judged(BEGIN, in_doubt, input_read(40), output_read(42)).checked == 0


def test_what_may_be_committed_is_unknown_until_readers_have_passed_over_it() -> None:
    """Position 2 is the committed one, so that the commit took effect for it."""
    passed = [*BEGIN, *transformed(4, 1, outcome="info"), *position_read(20, 2), *input_read(22)]
    unknown = judged(passed)
    assert unknown.verdict is U
    assert {finding.verdict for finding in unknown.findings} == {U}
    assert judged(passed, committed_poll(24, 0, {}, 1, **OUTPUT)).verdict is U
    convicted = judged(passed, output_read(24))
    assert convicted.verdict is I
    assert len(convicted.findings) == 2


def test_input_below_the_first_known_position_is_not_judged() -> None:
    began = [*position_read(0, 1), *committed_poll(2, 1, {1: 2}, 1)]
    later = [*derived(4, 9, 2, 0), *position_sent(6, 2), *request(8, COMMIT)]
    result = judged(began, later, input_read(10))
    assert (result.verdict, result.checked) == (V, 1)


def test_input_behind_the_last_position_is_not_judged() -> None:
    first = [*derived(4, 8, 1, 0), *position_sent(6, 1), *request(8, COMMIT)]
    result = judged(BEGIN, first, input_read(10))
    assert (result.verdict, result.checked) == (V, 1)


def test_input_that_retention_may_have_removed_before_is_not_judged() -> None:
    """Another reader was given it before the producer came there, and no reader afterwards."""
    began = [*committed_poll(0, 0, {0: 1, 1: 2}, 1), *position_read(2, -1)]
    later = [*derived(4, 9, 2, 0), *position_sent(6, 2), *request(8, COMMIT)]
    assert judged(began, later).checked == 0
    assert judged(began, later, committed_poll(10, 1, {1: 2}, 1)).verdict is V
    assert judged(began, later, input_read(10)).verdict is I


def test_input_that_stands_at_two_offsets_is_derived_twice() -> None:
    """A producer without idempotence wrote value 1 again."""
    began = [*position_read(0, -1), *committed_poll(2, 0, {0: 1, 1: 1}, 1)]
    both = [*derived(4, 8, 1, 0), *derived(6, 9, 1, 1), *position_sent(8, 2), *request(10, COMMIT)]
    assert judged(began, both, committed_poll(12, 0, {0: 1, 1: 1}, 1)).findings == ()


def test_another_group_may_derive_the_same_input() -> None:
    other = transformed(20, 2, value=18)
    for event in other:
        event.group = "h" if event.group else None
    assert judged(BEGIN, transformed(4, 1), other, input_read(40)).verdict is V


def test_where_acknowledged_records_may_be_lost_it_is_reported_and_allowed() -> None:
    check = CHECKERS["exactly-once"].check()
    for broken in EXACTLY_ONCE:
        rows = history_of((*history(started(0, 1, unclean=True)), *broken)).row_groups
        results = {result.property: result for result in run_checks(rows, [check])}
        assert results["exactly-once"].verdict is V
        assert results["exactly-once"].findings


def test_an_injected_break_in_a_long_chain_is_found() -> None:
    def step(number: int, *, position: int | None = None) -> list[Event]:
        time, end = 10 * number, number + 1
        return [
            *committed_poll(time, number, {number: number}, number),
            *derived(time + 2, 1000 + number, number, number, number),
            *position_sent(time + 4, end if position is None else position, number),
            *request(time + 6, COMMIT, number),
        ]

    final = committed_poll(900, 0, {number: number for number in range(21)}, 20)
    chain = [event for number in range(20) for event in step(number)]
    complete = judged(position_read(0, -1), chain, final)
    assert (complete.verdict, complete.checked) == (V, 20)
    skipped = [event for number in range(20) if number != 7 for event in step(number)]
    assert [finding.key for finding in judged(position_read(0, -1), skipped, final).findings] == [
        "t-0"
    ]
    twice = [*derived(800, 5000, 7, 50, 99), *position_sent(802, 8, 99), *request(804, COMMIT, 99)]
    assert judged(position_read(0, -1), chain, twice, final).verdict is I
