"""Whether operations on one object can be put into an order, by searching for it.

For what zones cannot decide: a compare-and-set, a mutex, a register to which one value is written twice. The operations
go to ``possible.Possible`` in the order of their beginnings and ends; it keeps what may be true after each. Where
nothing is under way and the state is certain, that is one configuration, and the search begins again from there: so its
cost depends on how many operations overlap and how many are in doubt, and grows with the length of the history only in
proportion. Still it is exponential in those (the problem is NP-complete), hence the bound.

Source: Lowe, "Testing for linearizability" (2017); Knossos and Porcupine search the same space.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np

from nemesis.checkers.framework.segment import Mask, Numbers
from nemesis.checkers.linearizable.object_operations import FAIL, INFO, NEVER, OK, Operations
from nemesis.checkers.possible import Possible, TooManyConfigurations

LIMIT: Final = 200_000
"""Configurations that are tried beyond ``possible.FREE`` for each operation, before the search gives up."""

State = Any
"""Of an object: a number here, any hashable value in ``depth_search``."""


class Effect(NamedTuple):
    """What an operation does to the state of an object."""

    f: str
    needs: State | None
    """The state that it finds; None: any."""
    gives: State
    """The state that it leaves. Of an operation that only looks it is what it needs."""

    @property
    def looks(self) -> bool:
        return bool(self.needs == self.gives)


@dataclass(frozen=True, slots=True)
class Effects:
    """What operations do to the states of objects that are numbers. Arrays of one length."""

    needs: Numbers
    """The value that it finds."""
    is_needy: Mask
    """Whether it needs that value; a write finds any."""
    gives: Numbers

    @property
    def looks(self) -> Mask:
        looks: Mask = self.is_needy & (self.needs == self.gives)
        return looks

    def select(self, selection: Mask | Numbers) -> Effects:
        return Effects(self.needs[selection], self.is_needy[selection], self.gives[selection])


@dataclass(frozen=True, slots=True)
class Misfit:
    """The first operation, in the order of their ends, that fits into no order with those before."""

    position: int
    states: tuple[State, ...]
    """What the object can have been when it ended; empty if that is not known."""
    placed: int
    """How many operations ended before it, all of which fit."""
    last_placed: int | None
    """The position of the last of them that did not just look."""
    open: tuple[int, ...]
    """Positions of the operations that were under way or in doubt then."""


@dataclass(frozen=True, slots=True)
class GaveUp:
    """The bound was reached at the end of this operation."""

    position: int
    placed: int


def search(
    operations: Operations, effects: list[Effect], initial: State, limit: int
) -> Misfit | GaveUp | None:
    """Return where the operations of one object cannot go on, or None if they can be put into an order.

    ``effects`` has one for each operation. Operations that failed, and looks without an answer, count for nothing.
    """
    possible = Possible([initial], _apply, useful=_useful, limit=limit)
    looks = [effect.looks for effect in effects]
    is_in_doubt = (operations.outcome != OK).tolist()
    under_way: dict[int, None] = {}
    placed, last_placed = 0, None
    for position, is_end in starts_and_ends(operations, np.array(looks, dtype=np.bool_)):
        if not is_end:
            under_way[position] = None
            possible.invoked(
                position,
                effects[position],
                is_certain=not is_in_doubt[position],
                changes_state=not looks[position],
            )
            continue
        del under_way[position]
        try:
            if not possible.succeeded(position):
                return Misfit(position, _states(possible), placed, last_placed, tuple(under_way))
        except TooManyConfigurations:
            return GaveUp(position, placed)
        placed += 1
        last_placed = last_placed if looks[position] else position
    return None


def _apply(state: State, effect: Effect) -> Collection[State]:
    return (effect.gives,) if effect.needs is None or effect.needs == state else ()


def _useful(in_doubt: Collection[Effect], under_way: Collection[Effect]) -> Collection[Effect]:
    """Those that leave a state that another one needs: one that is under way, or one that is itself of use."""
    useful: dict[Effect, None] = {}
    wanted = {effect.needs for effect in under_way}
    while new := [effect for effect in in_doubt if effect.gives in wanted and effect not in useful]:
        useful.update(dict.fromkeys(new))
        wanted |= {effect.needs for effect in new}
    return useful


def _states(possible: Possible[State, Effect]) -> tuple[State, ...]:
    """What is possible, in numerical order; nothing if that takes too long to find out."""
    try:
        return tuple(sorted(possible.states()))
    except TooManyConfigurations:
        return ()


def starts_and_ends(operations: Operations, looks: Mask) -> list[tuple[int, bool]]:
    """Return (operation, whether it ends) by time; at equal times what begins is first, so that the two overlap."""
    counts = (operations.outcome != FAIL) & ~(looks & (operations.outcome == INFO))
    begun = np.flatnonzero(counts)
    ended = np.flatnonzero(counts & (operations.finish != NEVER))
    time = np.concatenate([operations.start[begun], operations.finish[ended]])
    is_end = np.repeat([False, True], [len(begun), len(ended)])
    permutation = np.lexsort((is_end, time))
    position = np.concatenate([begun, ended])[permutation]
    return list(zip(position.tolist(), is_end[permutation].tolist(), strict=True))
