"""Planting: aliases, decorators, properties, closures, coroutines; and that nothing is left behind."""

from __future__ import annotations

import ast
import asyncio
import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from types import FunctionType

import pytest

from nemesis.mutants.base import MutantError
from nemesis.mutants.generated.draw import all_mutations, drawn, mutations_of
from nemesis.mutants.generated.line_coverage import recorded_lines
from nemesis.mutants.generated.mutation import Mutation
from nemesis.mutants.generated.planting import functions_by_code, is_plantable, planted
from nemesis.mutants.generated.sources import COLUMNS, functions, import_name, position
from nemesis.mutants.probe import NAME, Probe
from nemesis.reference.controller import election
from nemesis.reference.log import log_retention
from nemesis.reference.model import LeaderAndIsr


def mutants_of(module: str, function: str) -> list[Mutation]:
    [source] = [item for item in functions(module) if item.qualname == function]
    return list(mutations_of(source))


def mutant(module: str, function: str, operator: str, text: str) -> Mutation:
    return next(
        m
        for m in mutants_of(module, function)
        if m.operator == operator and m.change.mutant == text
    )


@contextmanager
def counted(mutation: Mutation) -> Iterator[Probe]:
    probe = Probe()
    with planted(mutation, probe):
        yield probe


def test_a_planted_mutant_acts_until_the_block_ends() -> None:
    state = LeaderAndIsr(1, 4, (1, 2))
    off = next(
        m
        for m in mutants_of("controller/election", "new_leader_and_isr")
        if m.operator == "off-by-one"
    )
    correct = election.new_leader_and_isr(state, 2, (2,)).leader_epoch
    alias = election.new_leader_and_isr
    with counted(off) as probe:
        assert alias(state, 2, (2,)).leader_epoch != correct
    assert (probe.reached, probe.effective) == (1, 1)
    assert election.new_leader_and_isr(state, 2, (2,)).leader_epoch == correct
    assert not hasattr(election, NAME)


def test_every_kind_of_function_is_found_again() -> None:
    """The functions of all modules exist: those behind decorators, properties and ``super()``, and coroutines."""
    known = functions_by_code()
    missing = {
        (m.module, m.function)
        for m in all_mutations()
        if (import_name(m.module), m.function, m.function_line) not in known
    }
    assert missing == set()


def test_drawn_mutants_keep_the_kind_of_their_function() -> None:
    for mutation in drawn(all_mutations(("cluster/*", "controller/election")), seed=1, count=40):
        key = (import_name(mutation.module), mutation.function, mutation.function_line)
        [*targets] = functions_by_code()[key]
        before = [target.__code__ for target in targets]
        with planted(mutation, Probe()):
            for target in targets:
                assert_alike(target, before[0].co_flags)
        assert [target.__code__ for target in targets] == before


def assert_alike(target: FunctionType, flags: int) -> None:
    kinds = inspect.CO_COROUTINE | inspect.CO_GENERATOR | inspect.CO_ASYNC_GENERATOR
    assert target.__code__.co_flags & kinds == flags & kinds


def test_a_mutant_without_its_function_plants_nothing() -> None:
    from dataclasses import replace

    gone = replace(mutants_of("controller/election", "new_leader_and_isr")[0], function_line=1)
    with pytest.raises(MutantError, match="expected a function"), planted(gone, Probe()):
        pass


def test_a_change_of_a_generator_into_a_function_is_not_planted() -> None:
    for mutation in mutants_of("controller/election", "new_leader_and_isr"):
        assert is_plantable(mutation)


def test_executed_code_is_recorded_with_its_position() -> None:
    state = LeaderAndIsr(1, 4, (1, 2))
    with recorded_lines() as recorded:
        election.new_leader_and_isr(state, 2, (2,))
    executed = recorded()
    first = inspect.getsourcelines(election.new_leader_and_isr)[1]
    length = len(inspect.getsourcelines(election.new_leader_and_isr)[0])
    assert executed.keys() == {"controller/election"}
    lines = {number // COLUMNS for number in executed["controller/election"]}
    assert lines <= set(range(first, first + length))


def test_a_branch_that_is_not_evaluated_is_not_reached() -> None:
    text = "def f(a, b):\n    return a and [c for c in b]\n"
    [function] = functions("m", ast.parse(text))
    [compare] = [n for n in function.nodes if isinstance(n, ast.Name) and n.id == "b"]
    [element] = [n for n in function.nodes if isinstance(n, ast.ListComp)]
    assert function.unit_of(compare) == position(element)
    assert function.unit_of(element.elt) == position(element.elt)
    [first] = [n for n in function.nodes if isinstance(n, ast.Name) and n.id == "a"]
    assert function.unit_of(first) == position(function.node.body[0])


def test_a_coroutine_stays_one_while_lines_are_recorded() -> None:
    with recorded_lines():
        coroutines = [
            function
            for group in functions_by_code().values()
            for function in group
            if asyncio.iscoroutinefunction(function)
        ]
    assert coroutines
    assert all(map(asyncio.iscoroutinefunction, coroutines))
    assert log_retention.deletable_segments.__code__.co_name == "deletable_segments"
