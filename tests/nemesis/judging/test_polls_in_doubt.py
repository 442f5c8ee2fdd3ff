"""A record that no poll returned is not lost for certain, if a poll of unknown outcome may have returned it."""

from __future__ import annotations

import pytest

from nemesis.checkers.framework.model import Verdict
from tests.nemesis.judging.foreign_judge import history, verdict_of

TWO_SENDS = (
    "invoke 0 send [[:send :x 7]]",
    "ok 0 send [[:send :x [0 7]]]",
    "invoke 0 send [[:send :x 8]]",
    "ok 0 send [[:send :x [1 8]]]",
)
ASSIGNED_X = ("invoke 1 assign [:x]", "ok 1 assign [:x]")
SUBSCRIBED = (
    "invoke 1 subscribe [:x]",
    "ok 1 subscribe [:x]",
    "invoke 2 subscribe [:x]",
    "ok 2 subscribe [:x]",
)
PASSED_OVER = ("invoke 1 poll [[:poll]]", "ok 1 poll [[:poll {:x [[1 8]]}]]")
FULL_READ = ("invoke 3 poll [[:poll]]", "ok 3 poll [[:poll {:x [[0 7] [1 8]]}]]")
UNTIL_THE_END = ("invoke 1 poll [[:poll]]", "ok 1 poll [[:poll {}]]")


def in_doubt(process: int) -> tuple[str, str]:
    return f"invoke {process} poll [[:poll]]", f"info {process} poll [[:poll]]"


@pytest.mark.parametrize(
    "lines",
    [
        (*TWO_SENDS, *in_doubt(1), *PASSED_OVER),
        (*TWO_SENDS, *ASSIGNED_X, *in_doubt(1), *PASSED_OVER),
        # Subscribers share their positions.
        (*TWO_SENDS, *SUBSCRIBED, *in_doubt(2), *PASSED_OVER),
        (*TWO_SENDS, *SUBSCRIBED, "invoke 2 poll [[:poll]]", *PASSED_OVER),
        # The offset of the record is unknown.
        (
            TWO_SENDS[0],
            "ok 0 send [[:send :x 7]]",
            *TWO_SENDS[2:],
            *ASSIGNED_X,
            *in_doubt(1),
            *PASSED_OVER,
            *UNTIL_THE_END,
        ),
        # The record is of a transaction in doubt.
        (
            "invoke 0 txn [[:send :x 7] [:send :y 9]]",
            "info 0 txn [[:send :x 7] [:send :y 9]]",
            "invoke 2 poll [[:poll]]",
            "ok 2 poll [[:poll {:y [[0 9]]}]]",
            "invoke 3 send [[:send :x 8]]",
            "ok 3 send [[:send :x [1 8]]]",
            *in_doubt(1),
            *PASSED_OVER,
        ),
    ],
)
def test_a_poll_of_unknown_outcome_may_have_returned_what_its_consumer_passed_over(
    lines: tuple[str, ...],
) -> None:
    assert verdict_of(history(*lines), "kafka") is Verdict.UNKNOWN
    assert verdict_of(history(*lines, *FULL_READ), "kafka") is not Verdict.INVALID


@pytest.mark.parametrize("polls", [in_doubt(1), (*SUBSCRIBED, *in_doubt(2))])
def test_a_consumer_without_a_poll_of_unknown_outcome_proves_the_loss(
    polls: tuple[str, ...],
) -> None:
    assigned = ("invoke 4 assign [:x]", "ok 4 assign [:x]", "invoke 4 poll [[:poll]]")
    certain = (*assigned, "ok 4 poll [[:poll {:x [[1 8]]}]]")
    lines = (*TWO_SENDS, *polls, *PASSED_OVER)
    assert verdict_of(history(*lines, *certain), "kafka") is Verdict.INVALID


@pytest.mark.parametrize(
    "polls",
    [
        PASSED_OVER,
        # It ended with fail, so it returned nothing; or it is of another consumer, or began later.
        ("invoke 1 poll [[:poll]]", "fail 1 poll [[:poll]]", *PASSED_OVER),
        (*in_doubt(2), *PASSED_OVER),
        (*ASSIGNED_X, *in_doubt(2), *PASSED_OVER),
        (*PASSED_OVER, *in_doubt(1)),
        # It reports what it returned.
        ("invoke 1 poll [[:poll]]", "info 1 poll [[:poll {:x [[1 8]]}]]"),
    ],
)
def test_a_lost_write_stays_one_if_no_poll_can_have_returned_it(polls: tuple[str, ...]) -> None:
    assert verdict_of(history(*TWO_SENDS, *polls), "kafka") is Verdict.INVALID
