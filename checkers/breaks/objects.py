"""The smallest histories that break the properties of objects: registers, mutexes, texts, sets, queues."""

from __future__ import annotations

from typing import Final

from nemesis.checkers.breaks.operations import Call, events
from nemesis.history.events import Event


def _history(*calls: Call) -> tuple[Event, ...]:
    return tuple(events(*calls))


_WRITE: Final = Call("write", 10, 20, value=1)
LINEARIZABLE_REGISTER: Final = (
    _history(Call("read", 3, 4, value=6)),
    _history(_WRITE, Call("read", 30, 40)),
    _history(Call("write", 1, 2, "fail", value=5, key=7), Call("read", 3, 4, value=5, key=7)),
    _history(Call("read", 1, 2, value=5), Call("write", 3, 4, value=5)),
    _history(_WRITE, Call("write", 30, 40, value=2), Call("read", 50, 60, value=1)),
)
LINEARIZABLE_CAS_REGISTER: Final = (
    _history(Call("write", 1, 2, value=5), Call("cas", 3, 4, values=(6, 7))),
)
LINEARIZABLE_MUTEX: Final = (_history(Call("acquire", 1, 2), Call("acquire", 5, 6)),)

_A, _B = (ord(letter) for letter in "ab")
LINEARIZABLE_KEY_VALUE: Final = (
    _history(Call("append", 1, 2, values=(_A,)), Call("get", 3, 4, values=())),
    _history(
        Call("put", 1, 2, values=(_A,), key=7),
        Call("append", 3, 4, values=(_B,), key=7),
        Call("get", 5, 6, values=(_B, _A), key=7),
    ),
)

_R, _W = range(2)
_ONES: Final = (_W, 5, 1, 1, _W, 6, 1, 1)
LINEARIZABLE_MULTI_REGISTER: Final = (
    _history(
        Call("txn", 1, 2, micro_operations=(_W, 5, 1, 0, _W, 6, 1, 0)),
        Call("txn", 3, 4, micro_operations=_ONES),
        Call("txn", 5, 6, micro_operations=(_R, 5, 1, 1, _R, 6, 1, 0)),
    ),
    _history(
        Call("txn", 1, 2, micro_operations=_ONES),
        Call("txn", 3, 4, micro_operations=(_R, 5, 1, 7)),
    ),
)

_ADD: Final = Call("add", 1, 2, value=5)
SET_LOST: Final = (
    _history(_ADD, Call("read", 3, 4, values=())),
    _history(
        Call("add", 1, 2, "info", value=5, key=3),
        Call("read", 3, 4, values=(5,), key=3),
        Call("read", 5, 6, values=(), key=3),
    ),
    _history(_ADD, Call("add", 3, 4, value=6), Call("read", 1, 2, values=())),
    _history(_ADD, Call("read", 3, 9, values=(5,)), Call("read", 4, 5, values=())),
)
SET_UNEXPECTED: Final = (
    _history(Call("read", 3, 4, values=(6,))),
    _history(Call("add", 1, 2, "fail", value=5), Call("read", 3, 4, values=(5,))),
    _history(Call("read", 1, 2, values=(5,)), Call("add", 3, 4, value=5)),
)
SET_DUPLICATE: Final = (_history(_ADD, Call("read", 3, 4, values=(5, 5))),)
SET_STALE: Final = (_history(_ADD, Call("read", 3, 4, values=()), Call("read", 5, 6, values=(5,))),)
SET_ORDER: Final = (
    _history(_ADD, Call("add", 3, 4, value=6), Call("read", 1, 9, values=(6,))),
    _history(
        Call("add", 1, 9, value=5),
        Call("add", 1, 9, value=6),
        Call("read", 1, 9, values=(5,)),
        Call("read", 1, 9, values=(6,)),
    ),
)

_ENQUEUE: Final = Call("enqueue", 1, 2, value=5)
QUEUE_LOST: Final = (
    _history(Call("enqueue", 1, 2, value=5, key=7), Call("drain", 3, 4, values=(), key=7)),
    _history(Call("enqueue", 1, 2, value=5, key=1), Call("drain", 3, 4, values=(), key=2)),
)
QUEUE_UNEXPECTED: Final = (
    _history(Call("dequeue", 3, 4, value=6)),
    _history(Call("enqueue", 1, 2, "fail", value=5), Call("drain", 3, 4, values=(5,))),
    _history(Call("dequeue", 1, 2, value=5), Call("enqueue", 3, 4, value=5)),
)
QUEUE_DUPLICATE: Final = (
    _history(_ENQUEUE, Call("dequeue", 3, 4, value=5), Call("dequeue", 5, 6, value=5)),
)
_ENQUEUES: Final = (_ENQUEUE, Call("enqueue", 3, 4, value=6))
QUEUE_ORDER: Final = (
    _history(*_ENQUEUES, Call("dequeue", 5, 6, value=6)),
    _history(*_ENQUEUES, Call("dequeue", 5, 6, value=6), Call("dequeue", 7, 8, value=5)),
)
QUEUE_EMPTY: Final = (_history(_ENQUEUE, Call("dequeue", 3, 4), Call("dequeue", 5, 6, value=5)),)
