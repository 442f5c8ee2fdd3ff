"""Random operations on a set, and what they do to it."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace
from random import Random

from nemesis.checkers.breaks.operations import Call
from nemesis.checkers.linearizable.sets import LinearizableSet
from tests.checkers.linearizable.random_objects import Model


def after(held: Hashable, call: Call) -> list[Hashable]:
    """What may be in a set after an operation that found this in it."""
    assert isinstance(held, frozenset)
    if call.f == "add":
        return [held | {call.value}]
    return [held] if call.outcome != "ok" or held == set(call.values or ()) else []


def asked(rng: Random, number: int) -> Call:
    return Call("add", 0, 0, value=number % 4) if rng.random() < 0.5 else Call("read", 0, 0)


def answered(state: Hashable, call: Call) -> Call:
    assert isinstance(state, frozenset)
    return call if call.f == "add" else replace(call, values=tuple(sorted(state)))


def changed(rng: Random, call: Call) -> Call:
    if call.f == "add":
        return call
    return replace(call, values=tuple(sorted({*(call.values or ())} ^ {rng.randint(0, 3)})))


MODEL = Model(LinearizableSet, frozenset(), after, asked, answered, changed)
