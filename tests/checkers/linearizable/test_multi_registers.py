"""Transactions over several registers: smallest breaks, every order of random histories, and Knossos' form."""

from __future__ import annotations

import pytest

from nemesis.checkers.breaks import objects as breaks
from nemesis.checkers.breaks.operations import Call, events
from nemesis.checkers.framework.model import Verdict
from nemesis.checkers.initial_values import NIL
from nemesis.checkers.linearizable.multi_registers import LinearizableMultiRegister
from tests.checkers.histories import only
from tests.checkers.linearizable.multi_register_model import (
    MODEL,
    READ,
    WRITE,
    flat,
)
from tests.checkers.linearizable.random_objects import disagreements
from tests.nemesis.judging.foreign_judge import judged

NAME = "linearizable-multi-register"


def test_a_transaction_that_sees_another_one_in_part() -> None:
    fractured, unwritten = breaks.LINEARIZABLE_MULTI_REGISTER
    (finding,) = only(LinearizableMultiRegister(), fractured, NAME).findings
    assert finding.sentence == (
        "transaction (read 1 of 5, read 0 of 6) of the object fits into no order with the operations that ended "
        "before it: it was {5: 1, 6: 1} then."
    )
    assert only(LinearizableMultiRegister(), unwritten, NAME).finding_count == 1


def test_random_histories_are_judged_as_by_trying_out_every_order() -> None:
    assert list(disagreements(MODEL, range(300))) == []


@pytest.mark.nightly
def test_ten_thousand_random_histories() -> None:
    assert list(disagreements(MODEL, range(10_000))) == []


def line(kind: str, value: str, process: int = 0) -> str:
    return f"{{:process {process}, :type :{kind}, :f :txn, :value {value}}}\n"


WRITES = line("invoke", "[[:write :x 1] [:write :y 2]]") + line(
    "ok", "[[:write :x 1] [:write :y 2]]"
)


@pytest.mark.parametrize(
    ("read", "expected"),
    [
        ("[[:read :x 1] [:read :y 2]]", Verdict.VALID),
        ("[[:read :x nil] [:read :y 2]]", Verdict.VALID),
        ("[[:r :x 1] [:r :y 1]]", Verdict.INVALID),
        ("[[:read :x 0] [:write :y 3]]", Verdict.INVALID),
    ],
)
def test_knossos_histories(read: str, expected: Verdict) -> None:
    history = WRITES + line("invoke", read.replace("0", "nil")) + line("ok", read)
    assert judged(history, "multi-register", initial="0").verdict is expected


@pytest.mark.parametrize(
    "read", ["", line("invoke", "[[:read :x nil]]", 1) + line("ok", "[[:read :x nil]]", 1)]
)
def test_a_history_in_which_no_value_was_read_proves_nothing(read: str) -> None:
    outcome = judged(WRITES + read, "multi-register")
    assert [(r.verdict, r.checked) for r in outcome.results] == [(Verdict.UNKNOWN, 0)]


def test_an_initial_value_that_is_not_stated() -> None:
    history = line("invoke", "[[:read :x nil]]") + line("ok", "[[:read :x 0]]") + WRITES
    outcome = judged(history, "multi-register")
    assert outcome.verdict is Verdict.UNKNOWN
    assert "pass --initial 0" in outcome.results[0].findings[0].sentence
    assert judged(history, "multi-register", initial="0").verdict is Verdict.VALID
    assert judged(history, "multi-register", initial="nil").verdict is Verdict.INVALID


def test_a_read_of_its_own_write_does_not_show_the_initial_value() -> None:
    history = "".join(
        line("invoke", asked) + line("ok", answered)
        for asked, answered in (
            ("[[:read :y nil]]", "[[:read :y 0]]"),
            ("[[:write :x 5] [:read :x nil]]", "[[:write :x 5] [:read :x 5]]"),
            ("[[:write :y 6]]", "[[:write :y 6]]"),
        )
    )
    outcome = judged(history, "multi-register")
    assert outcome.verdict is Verdict.UNKNOWN
    assert "pass --initial 0" in outcome.results[0].findings[0].sentence


def test_registers_that_no_transaction_connects_are_judged_apart() -> None:
    calls = [
        Call("txn", 1, 99, micro_operations=flat([(WRITE, key, key + value)]))
        for key in (1, 2, 3)
        for value in range(6)
    ]
    wrong = Call("txn", 100, 101, micro_operations=flat([(READ, 2, 50)]))
    check = LinearizableMultiRegister(initial=NIL)
    (finding,) = only(check, events(*calls, wrong), NAME).findings
    assert "read 50 of 2" in finding.sentence
