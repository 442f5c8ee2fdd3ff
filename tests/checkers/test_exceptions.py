"""No broker raises an exception that it does not foresee."""

from __future__ import annotations

from nemesis.checkers.breaks.events import broker
from nemesis.checkers.exceptions import UnforeseenExceptions
from nemesis.checkers.framework.model import Verdict
from nemesis.history.events import Event
from tests.checkers.histories import finding, judge, only

NAME = "no-unforeseen-exception"


def watched(time: int, node: int) -> Event:
    return broker(time, node, "exceptions-watched")


def raised(time: int, node: int, error: str) -> Event:
    return broker(time, node, "unforeseen-exception", error=error)


def test_brokers_that_record_their_exceptions_and_have_none() -> None:
    result = only(UnforeseenExceptions(), [watched(1, 1), watched(2, 2)])
    assert (result.verdict, result.checked, result.unit) == (Verdict.VALID, 2, "broker processes")


def test_a_history_of_brokers_that_do_not_record_them_is_unknown() -> None:
    old = [broker(1, 1, "broker-started"), broker(2, 1, "broker-registered")]
    assert only(UnforeseenExceptions(), old).verdict is Verdict.UNKNOWN


def test_each_exception_of_a_broker_is_one_finding_however_often_it_was_raised() -> None:
    first, other = raised(3, 2, "KeyError: 7"), raised(5, 2, "ValueError")
    events = [watched(1, 2), first, raised(4, 2, "KeyError: 7"), other]
    for cut in range(len(events)):
        result = judge(UnforeseenExceptions(), events, [cut])[NAME]
        assert result.findings == (
            finding(
                NAME,
                "broker-2",
                "Broker 2 raised an unexpected exception 2 times: KeyError: 7.",
                first,
            ),
            finding(
                NAME,
                "broker-2",
                "Broker 2 raised an unexpected exception: ValueError.",
                other,
            ),
        )
