"""Random operations on a store of texts, and what they do to a text."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import replace
from random import Random

from nemesis.checkers.breaks.operations import Call
from nemesis.checkers.linearizable.key_values import LinearizableKeyValue
from tests.checkers.linearizable.random_objects import Model

A, B = ord("a"), ord("b")


Text = tuple[int, ...]


def applied(state: Hashable, call: Call) -> Iterable[Hashable]:
    assert isinstance(state, tuple)
    if call.f == "get":
        return (state,) if call.outcome != "ok" or call.values == state else ()
    return (call.values,) if call.f == "put" else ((*state, *(call.values or ())),)


def asked(rng: Random, number: int) -> Call:
    f = rng.choice(["put", "append", "append", "get", "get"])
    return Call(f, 0, 0, values=() if f == "get" else (A + rng.choice([0, 1, number]),))


def answered(state: Text, call: Call) -> Call:
    return replace(call, values=state) if call.f == "get" else call


def changed(rng: Random, call: Call) -> Call:
    values = [*(call.values or ()), *rng.choices((A, B), k=rng.randint(0, 1))]
    rng.shuffle(values)
    return replace(call, values=tuple(values[rng.randint(0, 1) :])) if call.f == "get" else call


MODEL = Model(LinearizableKeyValue, (), applied, asked, answered, changed)
