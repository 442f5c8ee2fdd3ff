"""Texts that are put, appended to and read: smallest breaks, every order of random histories, and Porcupine's form."""

from __future__ import annotations

import re
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nemesis.checkers.breaks import objects as breaks
from nemesis.checkers.breaks.operations import Call, events
from nemesis.checkers.framework.model import Verdict
from nemesis.checkers.linearizable.key_values import LinearizableKeyValue
from tests.checkers.histories import judge, only
from tests.checkers.linearizable.key_value_model import (
    MODEL,
    A,
    B,
    applied,
)
from tests.checkers.linearizable.objects import Drawn, has_order, true_histories
from tests.checkers.linearizable.random_objects import disagreements, random_calls
from tests.nemesis.judging.foreign_judge import judged


def test_a_history_without_gets_proves_nothing() -> None:
    calls = events(Call("append", 1, 2, "ok", values=(A,)))
    result = only(LinearizableKeyValue(), calls, "linearizable-key-value")
    assert (result.verdict, result.checked) == (Verdict.UNKNOWN, 0)


def test_an_append_that_a_later_get_lacks() -> None:
    lost, swapped = breaks.LINEARIZABLE_KEY_VALUE
    (finding,) = only(LinearizableKeyValue(), lost, "linearizable-key-value").findings
    assert finding.sentence == (
        'get "" of the object fits into no order with the operations that ended before it: it was "a" then.'
    )
    (finding,) = only(LinearizableKeyValue(), swapped, "linearizable-key-value").findings
    assert finding.key == "key 7"
    assert finding.sentence.endswith('it was "ab" then.')
    assert 'The last of them to change it was append "b" (from 3 ns to 4 ns).' in finding.steps


def test_random_histories_are_judged_as_by_trying_out_every_order() -> None:
    assert list(disagreements(MODEL, range(300))) == []


@pytest.mark.nightly
def test_ten_thousand_random_histories() -> None:
    assert list(disagreements(MODEL, range(10_000))) == []


def test_what_ended_before_a_misfit_has_an_order_and_with_it_there_is_none() -> None:
    convicted = 0
    for seed in range(300):
        calls = random_calls(MODEL, Random(seed))
        (result,) = judge(LinearizableKeyValue(), events(*calls)).values()
        for finding in result.findings:
            convicted += 1
            end = int(re.findall(r"to ([\d,]+) ns\) needs", finding.steps[-1])[0])
            # What began later does not matter, and what had not ended is in doubt.
            until = [call for call in calls if call.start <= end]
            assert not has_order([_known_at(end, call) for call in until], (), applied)
            earlier = [_known_at(end - 1, call) for call in until if call.start <= end - 1]
            ends = [call.finish for call in calls if call.outcome == "ok"]
            if ends.count(end) == 1:
                assert has_order(earlier, (), applied)
    assert convicted > 40


def _known_at(time: int, call: Call) -> Call:
    is_over = (call.finish or 0) <= time or call.outcome != "ok"
    return call if is_over else replace(call, outcome="info")


def step(draw: st.DrawFn, drawn: Drawn) -> Call:
    if draw(st.booleans()):
        drawn.held.append(A + drawn.number)
        return Call("append", drawn.start, drawn.finish, values=(A + drawn.number,), key=drawn.key)
    return Call("get", drawn.start, drawn.finish, values=tuple(drawn.held), key=drawn.key)


def everything(start: int, finish: int, *values: int, key: int) -> Call:
    return Call("get", start, finish, values=values, key=key)


@given(true_histories(step, everything))
def test_a_true_history_is_valid(calls: list[Call]) -> None:
    assert only(LinearizableKeyValue(), events(*calls), "linearizable-key-value").verdict == "valid"


def line(kind: str, f: str, key: str, value: str, process: int = 0) -> str:
    return f'{{:process {process}, :type :{kind}, :f :{f}, :key "{key}", :value {value}}}\n'


def test_porcupines_histories() -> None:
    history = line("invoke", "append", "4", '"x 0 1 y"') + line("ok", "append", "4", '"x 0 1 y"')
    get = line("invoke", "get", "4", "nil")
    right = judged(history + get + line("ok", "get", "4", '"x 0 1 y"'), "key-value")
    assert right.verdict is Verdict.VALID
    wrong = judged(history + get + line("ok", "get", "4", '""'), "key-value")
    assert wrong.verdict is Verdict.INVALID
    other = line("invoke", "get", "5", "nil") + line("ok", "get", "5", '""')
    assert judged(history + other, "key-value").verdict is Verdict.VALID
    tuples = history.replace(':key "4", :value "x 0 1 y"', ':value ["4" "x 0 1 y"]')
    assert judged(tuples + get + line("ok", "get", "4", '""'), "key-value").verdict is wrong.verdict


def test_a_text_that_is_not_text_is_damage() -> None:
    history = line("invoke", "put", "4", "7") + line("ok", "put", "4", "7")
    outcome = judged(history, "key-value")
    assert outcome.verdict is Verdict.UNKNOWN
    assert "put without a text" in outcome.problems[0]


def test_the_bound_of_the_search_is_unknown() -> None:
    calls = [Call("append", 1, 99, values=(A + number,)) for number in range(9)]
    calls.append(Call("get", 100, 101, values=(B, A, A)))
    outcome = only(LinearizableKeyValue(limit=-195), events(*calls), "linearizable-key-value")
    assert outcome.verdict is Verdict.UNKNOWN
    assert "gave up" in outcome.findings[0].sentence
