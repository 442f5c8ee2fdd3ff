"""A send without a completion is in doubt: a poll that returned its record shows that it took effect."""

from __future__ import annotations

import pytest

from nemesis.checkers.breaks.log_operations import Polled, Sent, Txn, transactions
from nemesis.checkers.cycles.log_transactions import LogTransactions
from nemesis.history.events import Event
from tests.checkers.histories import judge

POLLED = Txn(1, 10, [Polled("x", [(0, 5), (1, 1)])], "1")


def broken(events: list[Event]) -> set[str]:
    """Return the properties with findings, which no cut of the history changes."""
    results = judge(LogTransactions(), events)
    for cut in range(1, len(events)):
        assert judge(LogTransactions(), events, [cut]) == results
    assert judge(LogTransactions(), events, range(len(events))) == results
    return {name for name, result in results.items() if result.findings}


def without_completion(events: list[Event], process: str) -> list[Event]:
    return [event for event in events if event.process != process or event.kind == "invoke"]


@pytest.mark.parametrize(("began", "names"), [(5, set()), (20, {"G1c-realtime"})])
def test_a_record_that_was_polled_before_its_send_began(began: int, names: set[str]) -> None:
    events = transactions(POLLED, Txn(began, 90, [Sent("x", 1, 1)], "2"))
    assert broken(without_completion(events, "2")) == names


def test_a_failed_send_is_not_in_doubt() -> None:
    assert broken(transactions(POLLED, Txn(20, 90, [Sent("x", 1, 1)], "2", "fail"))) == set()


def test_two_transactions_of_a_process_without_completions_stay_apart() -> None:
    """The poll returned a record of each. One of them began after the poll, which the other one does not excuse."""
    events = transactions(
        Txn(1, 90, [Sent("x", 1, None)], "2"),
        Txn(1, 10, [Polled("x", [(1, 1)]), Polled("y", [(0, 2)])], "1"),
        Txn(20, 95, [Sent("y", 2, None)], "2"),
    )
    assert broken(without_completion(events, "2")) == {"G1c-realtime"}
