"""Planted bugs: each finds its place, changes what it says, and says loudly when its place is gone."""

from __future__ import annotations

import inspect
import subprocess
import sys
from inspect import Parameter

import pytest

from nemesis import mutants
from nemesis.checkers import CHECKERS
from nemesis.mutants.base import Mutant, MutantError, Replacement
from nemesis.mutants.chosen import choose_mutant

_POSITIONAL = {Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD}


@pytest.mark.parametrize("mutant", mutants.MUTANTS.values(), ids=lambda mutant: mutant.name)
def test_everything_that_a_mutant_replaces_exists(mutant: Mutant) -> None:
    for replacement in mutant.replacements:
        _, _, correct = replacement.resolve()
        assert replacement.make(correct) is not correct


@pytest.mark.parametrize("mutant", mutants.MUTANTS.values(), ids=lambda mutant: mutant.name)
def test_a_wrong_function_is_called_like_the_correct_one(mutant: Mutant) -> None:
    """Else its bug is an exception."""
    for replacement in mutant.replacements:
        _, _, correct = replacement.resolve()
        wrong = replacement.make(correct)
        if inspect.isfunction(correct) and inspect.isfunction(wrong):
            assert inspect.iscoroutinefunction(wrong) == inspect.iscoroutinefunction(correct)
            parameters = inspect.signature(correct).parameters.values()
            positional = [None for item in parameters if item.kind in _POSITIONAL]
            named = {item.name: None for item in parameters if item.kind is item.KEYWORD_ONLY}
            inspect.signature(wrong).bind(*positional, **named)


@pytest.mark.parametrize("mutant", mutants.MUTANTS.values(), ids=lambda mutant: mutant.name)
def test_the_property_that_must_catch_it_is_checked(mutant: Mutant) -> None:
    assert mutant.property in CHECKERS


def test_a_mutant_whose_place_is_gone_plants_nothing() -> None:
    class Place:
        kept = "correct"

    sys.modules["place_of_a_mutant"] = Place  # type: ignore[assignment]
    try:
        mutant = Mutant(
            name="late",
            property="hw-bounded",
            summary="",
            replacements=(
                Replacement("place_of_a_mutant", "kept", lambda _: "wrong"),
                Replacement("place_of_a_mutant", "gone", lambda _: "wrong"),
            ),
        )
        with pytest.raises(MutantError, match="has no gone"):
            mutant.plant()
    finally:
        del sys.modules["place_of_a_mutant"]
    assert Place.kept == "correct"


def test_an_unknown_mutant_is_named_with_the_known_ones() -> None:
    with pytest.raises(MutantError, match=r"'hm'.*truncate-to-hw"):
        choose_mutant("hm")


def test_planting_changes_the_process_that_asks_for_it_and_no_other() -> None:
    ask = (
        "from nemesis.reference.controller import election; from nemesis.reference.model import LeaderAndIsr;"
        "print(election.new_leader_and_isr(LeaderAndIsr(1, 4, (1, 2)), 2, (2,)).leader_epoch)"
    )
    plant = "from nemesis.mutants import MUTANTS; MUTANTS['leader-epoch-not-raised'].plant();"

    def output(program: str) -> str:
        return subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, check=True
        ).stdout.strip()

    assert output(ask) == "5"
    assert output(plant + ask) == "4"
