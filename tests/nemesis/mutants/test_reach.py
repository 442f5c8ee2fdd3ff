"""A planted bug is counted: how often it was reached, and how often it acted, as far as that can be known."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from nemesis.mutants import MUTANTS
from nemesis.mutants.base import Mutant, Replacement
from nemesis.mutants.chosen import ChosenMutant
from nemesis.mutants.reach import ReachCounts
from nemesis.running.simulated.run import Simulation, trace_hash
from nemesis.running.simulated.specification import SimulationSpec
from nemesis.scenarios import scenario

LIMIT = "limit_of_a_log"


class Log:
    size = 7
    """A constant."""

    def __init__(self, end: int) -> None:
        self.end = end

    def bounded(self, offset: int) -> int:
        if offset < 0:
            raise ValueError(offset)
        return min(offset, self.end)

    @property
    def is_empty(self) -> bool:
        return self.end == 0

    @staticmethod
    def doubled(offset: int) -> int:
        return 2 * offset

    async def wait(self) -> int:
        return self.end


@pytest.fixture(autouse=True)
def _module() -> Iterator[None]:
    sys.modules[LIMIT] = Log  # type: ignore[assignment]
    yield
    del sys.modules[LIMIT]


def mutant(attribute: str, make: Callable[[Any], Any], *, is_comparable: bool = False) -> Mutant:
    replacement = Replacement(LIMIT, attribute, make, is_comparable=is_comparable)
    return Mutant(name="a", property="b", summary="c", replacements=(replacement,))


def unbounded(_correct: Any) -> Callable[[Any, int], int]:
    return lambda _log, offset: offset


def test_calls_are_counted_and_results_are_compared_if_the_bug_permits_it() -> None:
    with mutant("bounded", unbounded, is_comparable=True).planted() as reach:
        assert reach.counts() == ReachCounts(reached=0, acted=0)
        assert [Log(3).bounded(offset) for offset in (1, 3, 5)] == [1, 3, 5]
    assert reach.counts() == ReachCounts(reached=3, acted=1)
    assert Log(3).bounded(5) == 3
    assert reach.counts().reached == 3


def test_without_permission_only_calls_are_counted() -> None:
    with mutant("bounded", unbounded).planted() as reach:
        assert Log(3).bounded(5) == 5
    assert reach.counts() == ReachCounts(reached=1, acted=None)


def test_an_exception_of_one_side_is_another_result() -> None:
    with mutant("bounded", unbounded, is_comparable=True).planted() as reach:
        assert Log(3).bounded(-1) == -1
    assert reach.counts() == ReachCounts(reached=1, acted=1)

    def raising(_correct: Any) -> Callable[[Any, int], int]:
        def bounded(_log: Any, offset: int) -> int:
            raise KeyError(offset)

        return bounded

    with mutant("bounded", raising, is_comparable=True).planted() as reach:
        with pytest.raises(KeyError):
            Log(3).bounded(1)
        with pytest.raises(KeyError):
            Log(3).bounded(-1)
    assert reach.counts() == ReachCounts(reached=2, acted=1)


def test_properties_static_methods_and_coroutines_are_counted() -> None:
    with mutant("is_empty", lambda _: property(lambda _log: True)).planted() as reach:
        assert Log(3).is_empty
    assert reach.counts().reached == 1
    with mutant("doubled", lambda _: staticmethod(lambda offset: offset)).planted() as reach:
        assert Log(3).doubled(4) == Log.doubled(4) == 4
    assert reach.counts().reached == 2

    def never(_correct: Any) -> Callable[[Any], Any]:
        async def wait(_log: Any) -> int:
            return 0

        return wait

    with mutant("wait", never).planted() as reach:
        assert asyncio.run(Log(3).wait()) == 0
    assert reach.counts() == ReachCounts(reached=1, acted=None)


def test_what_is_not_called_is_not_counted() -> None:
    with mutant("size", lambda _: 8).planted() as reach:
        assert Log.size == 8
    assert reach.counts() == ReachCounts(reached=None, acted=None)


def test_a_bug_of_two_parts_has_acted_only_if_both_can_be_compared() -> None:
    part = mutant("bounded", unbounded, is_comparable=True)
    other = mutant("size", lambda _: 8)
    both = replace(part, replacements=(*part.replacements, *other.replacements))
    with both.planted() as reach:
        Log(3).bounded(5)
    assert reach.counts() == ReachCounts(reached=1, acted=None)


@pytest.mark.parametrize("name", ["hw-follows-leader-leo", "acknowledge-before-replication"])
def test_counting_does_not_change_a_run(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = scenario.override(
        scenario.load(MUTANTS[name].scenario), runtime="simulation", time_limit_s=15
    )
    spec = SimulationSpec(
        scenario=chosen, seed=1, plan=(), mutant=ChosenMutant(name), max_operations=20
    )

    def run() -> tuple[str, ReachCounts]:
        simulation = Simulation(spec)
        simulation.execute()
        assert simulation.reach is not None
        return trace_hash(simulation.record.entries), simulation.reach.counts()

    counted_hash, counts = run()
    assert counts.reached is not None
    assert counts.reached > 0
    plant = Mutant.plant
    monkeypatch.setattr(Mutant, "plant", lambda mutant, _reach: plant(mutant))
    assert run() == (counted_hash, ReachCounts(reached=None, acted=None))
