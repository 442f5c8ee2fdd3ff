"""The objects whose histories are searched: a register with compare-and-set, and a mutex."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from checkers.linearizable.operations import UNSET
from checkers.linearizable.search import Effect, Model, State

READ: Final = "read"
WRITE: Final = "write"
CAS: Final = "cas"
ACQUIRE: Final = "acquire"
RELEASE: Final = "release"

FREE: Final = 0
HELD: Final = 1


def _register(state: State, effect: Effect) -> Collection[State]:
    if effect.f == WRITE:
        return (effect.value,)
    if state != effect.value:
        return ()
    return (effect.new if effect.f == CAS else state,)


def _mutex(state: State, effect: Effect) -> Collection[State]:
    if effect.f == ACQUIRE:
        return (HELD,) if state == FREE else ()
    return (FREE,) if state == HELD else ()


REGISTER: Final = Model(UNSET, _register, frozenset({READ}))
"""States are values, ``UNSET`` at first. A read needs its value, a compare-and-set its first."""

MUTEX: Final = Model(FREE, _mutex, frozenset())
"""It has no owner, as that of Knossos: whoever releases it, it must be held."""
