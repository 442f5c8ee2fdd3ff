"""The smallest histories that break the properties of counters, ids, banks, and values in sequence."""

from __future__ import annotations

from typing import Final

from nemesis.checkers.breaks.operations import Call, events
from nemesis.history.events import Event


def _history(*calls: Call) -> tuple[Event, ...]:
    return tuple(events(*calls))


_ADD: Final = Call("add", 1, 2, value=1)
COUNTER_BOUNDS: Final = (
    _history(_ADD, Call("read", 3, 4, value=0)),
    _history(Call("read", 1, 2, value=1), Call("add", 3, 4, value=1)),
    _history(Call("add", 1, 2, "fail", value=1, key=7), Call("read", 3, 4, value=1, key=7)),
)
COUNTER_MONOTONIC: Final = (
    _history(
        Call("add", 1, 2, "info", value=1),
        Call("read", 3, 4, value=1),
        Call("read", 5, 6, value=0),
    ),
)
COUNTER_SUM: Final = (
    _history(Call("add", 1, 2, value=2), Call("read", 3, 4, value=1)),
    _history(Call("read", 1, 2, value=1), Call("add", 3, 4, value=1)),
    _history(Call("add", 1, 2, "fail", value=-1, key=7), Call("read", 3, 4, value=-1, key=7)),
)
COUNTER_FINAL: Final = (
    _history(_ADD, Call("final-read", 3, 4, value=0)),
    _history(
        _ADD,
        Call("add", 1, 2, "info", value=-2),
        Call("final-read", 3, 4, value=-2),
    ),
)
UNIQUE_IDS: Final = (_history(Call("generate", 1, 2, value=7), Call("generate", 1, 2, value=7)),)

_READ: Final = Call("read", 1, 2, values=(0, 5, 1, 5))
_NIL: Final = 2**62
"""What stands for a balance that is not a number."""
BANK_TOTAL: Final = (_history(_READ, Call("read", 3, 4, values=(0, 4, 1, 5))),)
BANK_ACCOUNTS: Final = (
    _history(_READ, _READ, Call("read", 3, 4, values=(0, 10))),
    _history(_READ, _READ, Call("read", 3, 4, values=(0, 5, 1, 5, 2, 0))),
    _history(Call("read", 3, 4, values=(0, _NIL))),
)
BANK_NEGATIVE: Final = (_history(Call("read", 1, 2, values=(0, -1, 1, 11))),)

_INSERTS: Final = (Call("write", 1, 2, value=1), Call("write", 3, 4, value=2))
CAUSAL_REVERSE: Final = (
    _history(*_INSERTS, Call("read", 3, 4, values=(2,))),
    _history(
        Call("write", 1, 2, value=1, key=7),
        Call("write", 3, 4, "info", value=2, key=7),
        Call("read", 3, 9, values=(2,), key=7),
    ),
)
_ABSENT: Final = -1
SEQUENTIAL: Final = (_history(Call("read", 1, 2, values=(8, _ABSENT), key=3)),)

MONOTONIC_KEYS: Final = (
    _history(Call("read", 1, 2, values=(0, 1, 1, 2)), Call("read", 3, 4, values=(0, 2, 1, 1))),
    _history(
        Call("read", 1, 2, values=(0, 1, 1, 2)),
        Call("inc", 3, 4, values=(1, 1, 2, 2)),
        Call("inc", 3, 4, values=(2, 1, 0, 2)),
    ),
)
PREDICATE_INSERTS: Final = (
    _history(
        Call("insert", 1, 2, values=(3, _ABSENT), key=1),
        Call("insert", 1, 2, values=(_ABSENT, 4), key=1),
    ),
)
