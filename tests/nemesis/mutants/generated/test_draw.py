"""The draw: repeatable, a smaller one is the beginning of a larger one, and names are unique."""

from __future__ import annotations

import ast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nemesis.mutants.generated.draw import all_mutations, drawn, mutations_of
from nemesis.mutants.generated.sources import functions, module_names
from nemesis.support.errors import UsageError

SOME = all_mutations(("controller/election", "controller/isr_changes", "log/log_retention"))


def test_names_are_unique() -> None:
    assert len({mutation.name for mutation in SOME}) == len({m.key for m in SOME}) == len(SOME)


@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 2**32), count=st.integers(1, 12))
def test_a_smaller_draw_begins_a_larger_one(seed: int, count: int) -> None:
    small = [mutation.name for mutation in drawn(SOME, seed=seed, count=count)]
    large = [mutation.name for mutation in drawn(reversed(SOME), seed=seed, count=count + 8)]
    assert large[: len(small)] == small
    assert len(set(large)) == len(large)


def test_each_operator_gets_the_same_share() -> None:
    operators = [mutation.operator for mutation in drawn(SOME, seed=3, count=9)]
    assert len(set(operators)) == 9


def test_another_function_changes_nothing_about_a_mutant() -> None:
    text = "def f(a):\n    return a < 1\n"
    names = [
        [(m.key, m.rank(1)) for f in functions("m", ast.parse(source)) for m in mutations_of(f)]
        for source in (text, "def g():\n    return 1\n\n\n" + text)
    ]
    assert set(names[0]) <= set(names[1])


def test_a_change_of_the_function_changes_the_digest() -> None:
    digests = [
        {m.digest for f in functions("m", ast.parse(source)) for m in mutations_of(f)}
        for source in (
            "def f(a):\n    return a < 1\n",
            "def f(a):\n    a += 1\n    return a < 1\n",
        )
    ]
    assert not digests[0] & digests[1]


def test_modules_are_chosen_by_globs() -> None:
    assert module_names(("reference/controller/elec*.py",)) == ["controller/election"]
    assert "cluster/partition" in module_names(("cluster/",))
    assert "protocol/codec" not in module_names(("*",))
    with pytest.raises(UsageError, match="--module nothing/"):
        module_names(("nothing/",))
