"""causal-reverse: smallest breaks, every pair of writes looked at, all orders tried out, and Jepsen's histories."""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from hypothesis import given
from hypothesis import strategies as st

from nemesis.checkers.breaks import totals as breaks
from nemesis.checkers.breaks.operations import Call, events
from nemesis.checkers.framework.model import Verdict
from nemesis.checkers.linearizable.causal_reverse import CausalReverse
from tests.checkers.histories import judge
from tests.checkers.linearizable.objects import KEYS, Drawn, broken, has_order, true_histories
from tests.nemesis.judging.foreign_judge import judged


def test_a_value_that_is_read_without_an_older_one() -> None:
    plain, keyed = breaks.CAUSAL_REVERSE
    (finding,) = judge(CausalReverse(), plain)["causal-reverse"].findings
    assert finding.sentence == (
        "A read of the object returned 2 without 1, which had been written before the write of 2 began."
    )
    assert judge(CausalReverse(), keyed)["causal-reverse"].findings[0].key == "key 7"


def test_writes_of_other_objects_or_at_the_same_time_prove_nothing() -> None:
    first, read = Call("write", 1, 4, value=1), Call("read", 8, 9, values=(2,))
    assert broken(CausalReverse(), first, Call("write", 4, 6, value=2), read) == {}
    assert broken(CausalReverse(), first, Call("write", 5, 6, value=2), read) != {}
    assert broken(CausalReverse(), first, Call("write", 5, 6, value=2, key=7), read) == {}
    again = Call("write", 2, 3, "info", value=2)
    assert broken(CausalReverse(), first, again, Call("write", 5, 6, value=2), read) == {}


def line(kind: str, f: str, value: str, process: int = 0) -> str:
    return f"{{:type :{kind} :process {process} :f :{f} :value {value}}}\n"


def test_jepsens_histories() -> None:
    writes = "".join(
        line("invoke", "write", f"[5 {value}]") + line("ok", "write", f"[5 {value}]")
        for value in (1, 2)
    )
    read = line("invoke", "read", "[5 nil]")
    assert (
        judged(writes + read + line("ok", "read", "[5 #{2}]"), "causal-reverse").verdict
        is Verdict.INVALID
    )
    for answer in ("#{1 2}", "[1]", "#{}"):
        history = writes + read + line("ok", "read", f"[5 {answer}]")
        assert judged(history, "causal-reverse").verdict is Verdict.VALID
    assert judged(writes, "causal-reverse").verdict is Verdict.UNKNOWN


def inserts() -> st.SearchStrategy[list[Call]]:
    times = st.tuples(st.integers(1, 20), st.integers(1, 9))
    outcome = st.sampled_from(["ok", "ok", "ok", "info", "fail"])
    write = st.builds(
        lambda time, outcome, value: Call("write", time[0], sum(time), outcome, value),
        times,
        outcome,
        st.integers(0, 3),
    )
    read = st.builds(
        lambda time, outcome, values: Call("read", time[0], sum(time), outcome, values=values),
        times,
        outcome,
        st.lists(st.integers(0, 3), max_size=3).map(tuple),
    )
    return st.lists(st.one_of(write, read), max_size=7)


def inserted(state: Hashable, call: Call) -> Iterable[Hashable]:
    assert isinstance(state, frozenset)
    if call.f == "write":
        return (state | {call.value},)
    return (state,) if call.outcome != "ok" or set(call.values or ()) == state else ()


def is_reversed(calls: list[Call]) -> bool:
    """Whether a read lacks a write that had ended before all writes of another value of it began."""
    writes = [call for call in calls if call.f == "write" and call.outcome != "fail"]
    return any(
        older.outcome == "ok"
        and older.value not in (read.values or ())
        and any(write.value == value for write in writes)
        and all((older.finish or 0) < write.start for write in writes if write.value == value)
        for read in calls
        if read.f == "read" and read.outcome == "ok"
        for value in read.values or ()
        for older in writes
    )


@given(inserts())
def test_looking_at_every_pair_and_every_order_agrees(calls: list[Call]) -> None:
    verdict = judge(CausalReverse(), events(*calls))["causal-reverse"].verdict
    assert (verdict is Verdict.INVALID) == is_reversed(calls)
    if verdict is Verdict.INVALID:
        assert not has_order(calls, frozenset(), inserted)


def step(draw: st.DrawFn, drawn: Drawn) -> Call:
    if draw(st.booleans()):
        drawn.held.append(drawn.number)
        return Call("write", drawn.start, drawn.finish, value=drawn.number, key=drawn.key)
    return Call("read", drawn.start, drawn.finish, values=tuple(drawn.held), key=drawn.key)


def all_of(start: int, finish: int, *values: int, key: int) -> Call:
    return Call("read", start, finish, values=values, key=key)


@given(true_histories(step, all_of))
def test_a_true_history_is_valid(calls: list[Call]) -> None:
    result = judge(CausalReverse(), events(*calls))["causal-reverse"]
    assert result.verdict is Verdict.VALID
    assert result.checked == sum(call.f == "read" for call in calls) >= len(KEYS)
