"""Random operations on a queue that keeps order, and what they do to its values."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import replace
from random import Random
from typing import Any

from nemesis.checkers.breaks.operations import Call
from nemesis.checkers.linearizable import FifoQueue
from tests.checkers.linearizable.random_objects import Model


def applied(state: Hashable, call: Call) -> Iterable[Hashable]:
    assert isinstance(state, tuple)
    if call.f == "enqueue":
        return ((*state, call.value),)
    if call.outcome == "info":
        return (state[1:],) if state else (state,)
    if call.value is None:
        return () if state else (state,)
    return (state[1:],) if state[:1] == (call.value,) else ()


def asked(rng: Random, number: int) -> Call:
    if rng.random() < 0.5:
        return Call("enqueue", 0, 0, value=rng.choice([number, number, 1]))
    return Call("dequeue", 0, 0)


def answered(state: Any, call: Call) -> Call:
    if call.f == "enqueue" or call.outcome != "ok":
        return call
    return replace(call, value=state[0] if state else None)


def changed(rng: Random, call: Call) -> Call:
    is_answer = call.f == "dequeue" and call.outcome == "ok"
    return replace(call, value=rng.choice([None, *range(7)])) if is_answer else call


MODEL = Model(FifoQueue, (), applied, asked, answered, changed)
