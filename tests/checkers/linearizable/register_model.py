"""Random operations on registers and mutexes, and what they do to them."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from random import Random

from nemesis.checkers.breaks.operations import Call


def register_after(state: Hashable, call: Call) -> Iterable[Hashable]:
    if call.f == "write":
        return [call.value]
    if call.f == "cas":
        assert call.values is not None
        return [call.values[1]] if state == call.values[0] else []
    looked = call.outcome == "ok"
    return [state] if not looked or state == call.value else []


def mutex_after(state: Hashable, call: Call) -> Iterable[Hashable]:
    return [not state] if state == (call.f == "release") else []


def tiny(rng: Random, fs: str, *, distinct: bool) -> list[Call]:
    """Few operations at random: right or wrong."""
    calls = []
    for number in range(rng.randint(2, 6)):
        f = rng.choice(fs.split())
        start = rng.randint(0, 12)
        outcome = rng.choice(["ok"] * 6 + ["fail", "info", "none"])
        value = number if distinct and f == "write" else rng.choice([None, 0, 1, 2, 3])
        pair = (rng.randint(0, 2), rng.randint(0, 2))
        if f == "cas":
            calls.append(Call(f, start, start + rng.randint(0, 6), outcome, values=pair))
        elif f == "write":
            calls.append(Call(f, start, start + rng.randint(0, 6), outcome, value or 0))
        else:
            calls.append(Call(f, start, start + rng.randint(0, 6), outcome, value))
    return calls
