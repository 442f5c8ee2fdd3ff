"""Futures and tasks that hash by count.

Python hashes an object by its address, which differs between two runs; asyncio and its users keep futures and tasks
in sets and walk over them (``TaskGroup``, ``asyncio.wait``). A number drawn from the loop when an object is first
hashed makes such walks the same in every run.
"""

from __future__ import annotations

import asyncio
from contextvars import Context
from typing import Any

from nemesis.simulation.incarnation import Incarnation


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
    """A task whose hash is a count; it knows its incarnation and its context (which Python 3.11 does not tell).

    ``number`` is to be set before ``__init__``, which puts the task into asyncio's set of all tasks.
    """

    __slots__ = ("home", "incarnation", "number")
    number: int
    incarnation: Incarnation
    home: Context

    def __hash__(self) -> int:
        return self.number
