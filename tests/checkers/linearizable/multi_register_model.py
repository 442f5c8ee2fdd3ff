"""Random transactions over several registers, and what they do to the registers."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import replace
from random import Random
from typing import Any

from nemesis.checkers.breaks.operations import Call
from nemesis.checkers.linearizable.multi_registers import LinearizableMultiRegister
from tests.checkers.linearizable.random_objects import Model

READ, WRITE = range(2)


KEYS = 3


def micros(call: Call) -> Iterator[tuple[int, int, int]]:
    flat = call.micro_operations or ()
    return zip(flat[::4], flat[1::4], flat[3::4], strict=True)


def flat(entries: Iterable[tuple[int, int, int]]) -> tuple[int, ...]:
    return tuple(number for f, key, value in entries for number in (f, key, 1, value))


def applied(state: Hashable, call: Call) -> Iterable[Hashable]:
    assert isinstance(state, tuple)
    values = list(state)
    for f, key, value in micros(call):
        if f == WRITE:
            values[key] = value
        elif call.outcome == "ok" and values[key] != value:
            return ()
    return (tuple(values),)


def asked(rng: Random, number: int) -> Call:
    keys = rng.sample(range(KEYS), rng.randint(1, 2))
    entries = [(rng.choice([READ, WRITE]), key, rng.randint(1, 3)) for key in keys]
    return Call("txn", 0, 0, micro_operations=flat(entries))


def answered(state: Any, call: Call) -> Call:
    values = list(state)
    entries = []
    for f, key, value in micros(call):
        values[key] = value if f == WRITE else values[key]
        entries.append((f, key, values[key]))
    return replace(call, micro_operations=flat(entries))


def changed(rng: Random, call: Call) -> Call:
    entries = [
        (f, key, value if f == WRITE else rng.randint(0, 3)) for f, key, value in micros(call)
    ]
    return replace(call, micro_operations=flat(entries))


MODEL = Model(
    lambda: LinearizableMultiRegister(initial=0), (0,) * KEYS, applied, asked, answered, changed
)
