"""Futures and tasks that hash by count, and the handles that the loop queues.

Python hashes an object by its address, which differs between two runs; asyncio and its users keep futures and tasks
in sets and walk over them (``TaskGroup``, ``asyncio.wait``). A number drawn from the loop when an object is first
hashed makes such walks the same in every run.

The handles have slots of their own for everything they hold: nothing depends on the private fields of asyncio's.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextvars import Context
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from nemesis.simulation.node import Life


class Loop(Protocol):
    """What is needed of the loop here."""

    now: float

    def next_number(self) -> int: ...
    def timer_cancelled(self) -> None: ...


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
    """A task whose hash is a count; it knows its life and its context (which Python 3.11 does not tell)."""

    __slots__ = ("_number", "home", "life")
    _number: int
    life: Life
    home: Context

    def __hash__(self) -> int:
        try:
            return self._number
        except AttributeError:
            self._number = self.get_loop().next_number()  # type: ignore[attr-defined]
            return self._number


def nothing() -> None:
    """What a cancelled handle calls."""


class SimulationHandle(asyncio.Handle):
    """A callback in the queue of a life."""

    __slots__ = ("arguments", "callback", "home")

    def __init__(  # the base's fields are not used
        self, callback: Callable[..., object], arguments: tuple[Any, ...], home: Context
    ) -> None:
        self.callback = callback
        self.arguments = arguments
        self.home = home

    def cancel(self) -> None:
        self.callback = nothing
        self.arguments = ()

    def cancelled(self) -> bool:
        return self.callback is nothing

    def get_context(self) -> Context:
        return self.home

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.callback!r}>"


class SimulationTimer(asyncio.TimerHandle):
    """A callback with a deadline (virtual seconds); it goes to its life's queue when that has come."""

    __slots__ = ("arguments", "callback", "deadline", "home", "life", "loop")

    def __init__(
        self,
        deadline: float,
        callback: Callable[..., object],
        arguments: tuple[Any, ...],
        home: Context,
        life: Life,
        loop: Loop,
    ) -> None:
        self.deadline = deadline
        self.callback = callback
        self.arguments = arguments
        self.home = home
        self.life = life
        self.loop = loop

    def cancel(self) -> None:
        if self.callback is not nothing:
            self.callback = nothing
            self.arguments = ()
            if self.deadline > self.loop.now:  # else it has left the heap
                self.loop.timer_cancelled()

    def cancelled(self) -> bool:
        return self.callback is nothing

    def when(self) -> float:
        return self.deadline

    def get_context(self) -> Context:
        return self.home

    def __hash__(self) -> int:
        return hash(self.deadline)

    def __eq__(self, other: object) -> bool:
        return self is other

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.callback!r} at {self.deadline}>"
