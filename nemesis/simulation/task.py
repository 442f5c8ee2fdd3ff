"""Futures and tasks that hash by count, and the handles that the loop queues.

Python hashes an object by its address, which differs between two runs; asyncio and its users keep futures and tasks
in sets and walk over them (``TaskGroup``, ``asyncio.wait``). A number drawn from the loop when an object is first
hashed makes such walks the same in every run.

The handles are ours, too: nothing depends on the private fields of asyncio's.
"""

from __future__ import annotations

import asyncio
from contextvars import Context
from typing import TYPE_CHECKING, Any, Final

import msgspec

if TYPE_CHECKING:
    from nemesis.simulation.node import Life


class SimulationFuture(asyncio.Future[Any]):
    """A future whose hash is a count."""

    __slots__ = ("_number",)
    _number: int

    def __hash__(self) -> int:
        try:
            return self._number
        except AttributeError:
            self._number = self.get_loop().next_number()  # type: ignore[attr-defined]
            return self._number


class SimulationTask(asyncio.Task[Any]):
    """A task whose hash is a count; it knows its life and its context (which Python 3.11 does not tell).

    ``number`` is to be set before ``__init__``, which puts the task into asyncio's set of all tasks.
    """

    __slots__ = ("home", "life", "number")
    number: int
    life: Life
    home: Context

    def __hash__(self) -> int:
        return self.number


def nothing() -> None:
    """What a cancelled handle calls."""


CANCELLED: Final = (nothing,)


class SimulationHandle(msgspec.Struct, eq=False):
    """A call that is queued with a life, or will be when its deadline has come (virtual seconds; 0: at once).

    It has the methods of ``asyncio.TimerHandle``. A struct, because a run makes a hundred thousand of them.
    """

    call: tuple[Any, ...]
    """The callback and its arguments."""
    home: Context
    life: Life
    deadline: float = 0.0

    def cancel(self) -> None:
        self.call = CANCELLED

    def cancelled(self) -> bool:
        return self.call is CANCELLED

    def when(self) -> float:
        return self.deadline

    def get_context(self) -> Context:
        return self.home

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.call[0]!r} at {self.deadline}>"
