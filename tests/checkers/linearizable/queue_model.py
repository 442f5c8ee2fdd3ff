"""Random operations on a queue that keeps order, and what they do to its values."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import replace
from random import Random
from typing import Any

from nemesis.checkers.breaks.operations import Call
from nemesis.checkers.linearizable.queues import FifoQueue
from tests.checkers.linearizable.random_objects import Model


def applied(state: Hashable, call: Call) -> Iterable[Hashable]:
    assert isinstance(state, tuple)
    if call.f == "enqueue":
        return ((*state, call.value),)
    if call.f == "drain":
        return ((),) if call.outcome != "ok" or call.values == state else ()
    if call.outcome != "ok":
        return (state[1:],) if state else (state,)
    if call.value is None:
        return () if state else (state,)
    return (state[1:],) if state[:1] == (call.value,) else ()


def step(state: Hashable, call: Call) -> Iterable[Hashable]:
    """Return the queues after a step, each with the steps of drains that were taken."""
    assert isinstance(state, tuple)
    queue, taken = state
    if call.f == "dequeue" and call.values is not None:
        drain, position = call.values
        if position and (drain, position - 1) not in taken:
            return ()
        taken = taken | {(drain, position)}
    return tuple((after, taken) for after in applied(queue, replace(call, values=None)))


def without_drains(calls: Sequence[Call]) -> list[Call]:
    """Return the calls with dequeues instead of drains: of each value that a drain returned, and one of an empty queue.

    The ``values`` of such a dequeue are the number of its drain and its position there. A drain in doubt is as many
    dequeues in doubt as there are values.
    """
    several: list[Call] = []
    for number, call in enumerate(calls):
        if call.f != "drain":
            several.append(call)
        elif call.outcome == "ok":
            several += [
                replace(call, f="dequeue", values=(number, position), value=value)
                for position, value in enumerate([*(call.values or ()), None])
            ]
        elif call.outcome != "fail":
            puts = sum(put.f == "enqueue" and put.outcome != "fail" for put in calls)
            several += [replace(call, f="dequeue", values=None)] * puts
    return several


def asked(rng: Random, number: int) -> Call:
    if rng.random() < 0.15:
        return Call("drain", 0, 0)
    if rng.random() < 0.5:
        return Call("enqueue", 0, 0, value=rng.choice([number, number, 1]))
    return Call("dequeue", 0, 0)


def answered(state: Any, call: Call) -> Call:
    if call.f == "enqueue" or call.outcome != "ok":
        return call
    if call.f == "drain":
        return replace(call, values=state)
    return replace(call, value=state[0] if state else None)


def changed(rng: Random, call: Call) -> Call:
    if call.f == "drain" and call.outcome == "ok":
        values = tuple(call.values or ())
        return replace(call, values=rng.choice([values[1:], values[::-1]]))
    is_answer = call.f == "dequeue" and call.outcome == "ok"
    return replace(call, value=rng.choice([None, *range(7)])) if is_answer else call


MODEL = Model(
    FifoQueue, (), applied, asked, answered, changed, without_drains, ((), frozenset()), step
)
