"""Each operator: from which source to which mutants, and what its probe counts.

The counters are compared with the original: *effective* counts the calls in which the mutant did something else.
"""

from __future__ import annotations

import ast
import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nemesis.mutants.probe import Probe
from tests.nemesis.mutants.generated.examples import example, mutants

LESS = "def f(a, b):\n    return a < b\n"


@pytest.mark.parametrize(("operator", "mutant"), [("boundary", "a <= b"), ("comparison", "a > b")])
@given(a=st.integers(0, 3), b=st.integers(0, 3))
def test_a_comparison_is_effective_when_its_answer_differs(
    operator: str, mutant: str, a: int, b: int
) -> None:
    changed = example(operator, LESS, mutant)
    answer = changed["f"](a, b)
    assert answer is eval(mutant)
    assert changed.counts == (1, int(answer is not (a < b)))


@pytest.mark.parametrize(
    ("text", "mutant"),
    [
        ("a == b", "a != b"),
        ("a is b", "a is not b"),
        ("a in b", "a not in b"),
        ("a >= b", "a <= b"),
    ],
)
def test_the_comparison_has_another_operator(text: str, mutant: str) -> None:
    assert mutants("comparison", f"def f(a, b):\n    return {text}\n") == [mutant]


@given(a=st.integers(0, 3), b=st.integers(0, 3), c=st.integers(0, 3))
def test_a_chain_of_comparisons_changes_at_one_link(a: int, b: int, c: int) -> None:
    changed = example("boundary", "def f(a, b, c):\n    return a <= b < c\n", "a <= b <= c")
    answer = changed["f"](a, b, c)
    assert answer is (a <= b <= c)
    assert changed.counts == (1, int(answer is not (a <= b < c)))


def test_operands_are_evaluated_once_and_in_their_sequence() -> None:
    changed = example(
        "boundary", "def f(g):\n    return g('left') < g('right')\n", "g('left') <= g('right')"
    )
    calls: list[str] = []

    def g(name: str) -> str:
        calls.append(name)
        return name

    changed["f"](g)
    assert calls == ["left", "right"]


def test_a_chain_with_a_call_is_not_changed() -> None:
    assert mutants("boundary", "def f(a, g):\n    return 0 <= a < g()\n") == []


GUARD = """
def f(a):
    if a < 0:
        return "negative"
    return "other"
"""


def test_a_dropped_guard_is_effective_when_its_condition_holds() -> None:
    changed = example("dropped-guard", GUARD, "pass")
    assert [changed["f"](a) for a in (1, -1)] == ["other", "other"]
    assert changed.counts == (2, 1)


def test_an_if_with_else_or_without_an_exit_is_not_a_guard() -> None:
    assert (
        mutants(
            "dropped-guard", "def f(a):\n    if a:\n        return 1\n    else:\n        return 2\n"
        )
        == []
    )
    assert mutants("dropped-guard", "def f(a):\n    if a:\n        a.go()\n") == []


def test_a_part_of_a_condition_is_ignored() -> None:
    text = "def f(a, b):\n    if a and b:\n        return 1\n    return 0\n"
    assert mutants("ignored-condition", text) == ["b", "a"]
    changed = example("ignored-condition", text, "a")
    assert [changed["f"](*both) for both in ((1, 1), (1, 0), (0, 0))] == [1, 1, 0]
    assert changed.counts == (2, 1)  # the third call does not ask for b
    assert (
        ast.unparse(changed.change.node) == "b"
    )  # only where b is evaluated is the change reached


def test_a_value_that_is_chosen_by_or_is_not_a_condition() -> None:
    assert mutants("ignored-condition", "def f(a, b):\n    return a or b\n") == []


def test_a_filter_of_a_comprehension_is_ignored() -> None:
    changed = example(
        "ignored-condition", "def f(a):\n    return [b for b in a if b > 1]\n", "True"
    )
    assert changed["f"]([1, 2, 3]) == [1, 2, 3]
    assert changed.counts == (3, 1)


CELL = """
class Cell:
    def __init__(self):
        self.value = 1
        self.items = {1}
    def store(self, value):
        self.value = value
    def reset(self):
        self.value = 0
    def clear(self):
        self.items.clear()
    def add(self, item):
        self.items.add(item)
"""


@pytest.mark.parametrize(
    ("operator", "method", "arguments", "counts"),
    [
        ("dropped-statement", "store", (2,), (1, 1)),
        ("dropped-statement", "store", (1,), (1, 0)),
        ("missing-reset", "reset", (), (1, 1)),
        ("skipped-effect", "add", (2,), (1, 1)),
        ("skipped-effect", "add", (1,), (1, 0)),
    ],
)
def test_a_statement_is_left_out(
    operator: str, method: str, arguments: tuple[Any, ...], counts: tuple[int, int]
) -> None:
    text = CELL.replace("        self.items.clear()\n", "        return None\n")
    cell_mutant = example(operator, text, "pass")
    cell = cell_mutant["Cell"]()
    getattr(cell, method)(*arguments)
    assert (cell.value, cell.items) == (1, {1})
    assert cell_mutant.counts == counts


def test_clearing_an_empty_container_would_have_had_no_effect() -> None:
    changed = example("missing-reset", "def f(a):\n    a.clear()\n", "pass")
    for items in ([], [1]):
        changed["f"](items)
    assert changed.counts == (2, 1)


def test_constructors_keep_their_assignments() -> None:
    text = "class Cell:\n    def __init__(self):\n        self.value = None\n"
    assert mutants("missing-reset", text) == mutants("dropped-statement", text) == []


def test_a_left_out_await_leaves_a_coroutine() -> None:
    changed = example("skipped-effect", "async def f(g):\n    await g()\n    return 1\n", "pass")
    assert asyncio.run(changed["f"](None)) == 1
    assert changed.counts == (1, 1)


def test_calls_of_loggers_and_tracers_are_never_changed() -> None:
    text = """
    class A:
        def f(self, a):
            _logger.info("%s", a < 1)
            self._tracer.event(a + 1)
            self.trace(a)
            self._trace_append(a)
            raise ValueError(a < 1)
    """
    for operator in ("boundary", "skipped-effect", "off-by-one"):
        assert mutants(operator, text) == []


def test_neighbours_are_swapped_when_that_may_matter() -> None:
    text = "def f(a):\n    a.append(1)\n    a.append(2)\n"
    changed = example("swapped-order", text, "a.append(2); a.append(1)")
    items: list[int] = []
    changed["f"](items)
    assert items == [2, 1]
    assert changed.counts == (1, 1)


@pytest.mark.parametrize(
    "body",
    [
        "a = b.c; d = a + 1",  # the second needs the first
        "b.c = 1; b.d = 2",  # they commute
    ],
)
def test_neighbours_that_commute_or_depend_on_each_other_stay(body: str) -> None:
    assert mutants("swapped-order", f"def f(b):\n    {body}\n") == []


def test_off_by_one_changes_small_numbers() -> None:
    text = "def f(a):\n    return a + 1\n"
    assert mutants("off-by-one", text) == ["a + 2", "a + 0"]
    changed = example("off-by-one", text, "a + 2")
    assert changed["f"](1) == 3
    assert changed.counts == (1, 1)


def test_off_by_one_in_a_comparison_is_effective_when_the_answer_differs() -> None:
    changed = example("off-by-one", "def f(a):\n    return a > 0\n", "a > 1")
    assert [changed["f"](a) for a in (0, 1, 2)] == [False, False, True]
    assert changed.counts == (3, 1)


def test_off_by_one_computes_a_value_once() -> None:
    text = "class B:\n    offset: int = 5\n\ndef f(batches: list[B], g):\n    return g(batches.pop().offset)\n"
    names = mutants("off-by-one", text)
    assert "g(batches.pop().offset - 1)" in names, names
    changed = example("off-by-one", text, "g(batches.pop().offset - 1)")
    batches = [changed["B"]()]
    assert (changed["f"](batches, int), batches) == (4, [])
    assert changed.counts == (1, 1)


def test_factors_and_truth_values_are_not_off_by_one() -> None:
    assert mutants("off-by-one", "def f(a, g):\n    g(True)\n    return a * 10\n") == []


@pytest.mark.parametrize(("mutant", "result"), [("a_ms * 10", 50), ("a_ms / 10", 0)])
def test_a_time_out_is_longer_or_shorter(mutant: str, result: int) -> None:
    changed = example("time-out", "def f(a_ms):\n    return a_ms\n", mutant)
    assert changed["f"](5) == result
    assert changed["f"](None) is None
    assert changed.counts == (2, 1)


def test_a_time_of_day_is_not_a_time_out() -> None:
    assert mutants("time-out", "def f(now_ms):\n    return now_ms\n") == []


def test_the_wrong_variable_of_the_same_type() -> None:
    text = "def f(a: int, b: int, c: str):\n    return [a]\n"
    changed = example("wrong-variable", text, "[b]")
    assert changed["f"](1, 2, "") == [2]
    assert changed["f"](1, 1, "") == [1]
    assert changed.counts == (2, 1)
    assert mutants("wrong-variable", text) == ["[b]"]


def test_a_variable_of_another_branch_is_not_used() -> None:
    text = """
    def f(a: int, g):
        if a:
            b: int = 2
            g(b)
        return [a]
    """
    assert mutants("wrong-variable", text) == ["g(a)"]


STALE = """
async def f(cell, change):
    await change(cell)
    return cell.value
"""


def test_a_stale_read_uses_the_value_of_the_beginning() -> None:
    class Cell:
        value = 1

    async def change(cell: Any) -> None:
        cell.value += 1

    async def rest(_cell: Any) -> None:
        return

    changed = example("stale-read", STALE, "cell.value as it was at the function's begin")
    assert asyncio.run(changed["f"](Cell(), change)) == 1
    assert asyncio.run(changed["f"](Cell(), rest)) == 1
    assert changed.counts == (2, 1)


def test_a_value_that_could_not_be_read_at_the_beginning_is_not_stale() -> None:
    class Cell:
        pass

    async def change(cell: Any) -> None:
        cell.value = 1

    changed = example("stale-read", STALE, "cell.value as it was at the function's begin")
    assert asyncio.run(changed["f"](Cell(), change)) == 1
    assert changed.counts == (1, 0)


def test_a_mutant_that_raises_where_the_original_does_not_is_effective() -> None:
    probe = Probe()
    probe.original(1)  # evaluating the mutant's value then raises, so it is never compared
    assert probe.effective == 1
