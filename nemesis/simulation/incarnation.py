"""One process of a simulated node from its start to its death, the calls queued for it, and what death means.

Every callback belongs to the incarnation that is found in its context (``INCARNATION``), so whatever a node's main
coroutine starts, directly or not, is its own. No incarnation means the harness, which is outside the system: never
killed, never paused.

* Death runs nothing more of the incarnation: no callback, no ``finally``, no ``__del__``. Its tasks are kept to the
  end of the simulation, because dropping them would close their coroutines, which runs their ``finally``. The ports
  that an incarnation was given (disk, streams, tracer, ZooKeeper client) look at ``is_dead`` of *their* incarnation
  and do nothing then, whoever calls them. What death means outside of the process is registered with ``on_death`` (the
  network ends connections).
* A pause keeps the incarnation's callbacks in their queue; timers that come due meanwhile join it in order.

* Either may come in the middle of a turn (``Incarnation.strike_after``): ports count what a process does to the world
  outside (a write to disk, a line of its trace, bytes sent), and the strike comes between two of these.

Limit: a callback in the middle of which its own incarnation is killed or paused runs on to its next ``await``.
Killed, it does nothing more outside, because its ports are fenced; paused, it ends what it had begun, and the rest of
the turn waits.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from contextvars import Context, ContextVar
from typing import Any, Final

import msgspec


def nothing() -> None:
    """What a cancelled handle calls."""


CANCELLED: Final = (nothing,)


class SimulationHandle(msgspec.Struct, eq=False):
    """A call that is queued with an incarnation, or will be when its deadline has come (virtual seconds; 0: at once).

    It has the methods of ``asyncio.TimerHandle``; nothing depends on the private fields of asyncio's. A struct,
    because a run makes a hundred thousand of them.
    """

    call: tuple[Any, ...]
    """The callback and its arguments."""
    home: Context
    incarnation: Incarnation
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


class Incarnation:
    """One process of a node: its number counts the node's processes from 1."""

    __slots__ = (
        "_at_action",
        "_death_callbacks",
        "actions_left",
        "host",
        "is_dead",
        "is_paused",
        "is_queued",
        "is_stopped",
        "leave",
        "node",
        "number",
        "ready",
    )

    def __init__(self, node: str, host: str, number: int) -> None:
        self.node = node
        self.host = host
        self.number = number
        self.is_dead = False
        self.is_paused = False
        self.is_stopped = False
        """Dead or paused: the loop runs nothing of it."""
        self.is_queued = False
        """Whether the loop has it among the lives that are to run."""
        self.ready: deque[SimulationHandle] = deque()
        self.leave: Callable[[BaseException | None], None] = lambda _: None
        """Called by the loop when the process asks to end (``SystemExit``)."""
        self.actions_left: int | None = None
        """Until something strikes the process in the middle of its work; None: nothing is about to."""
        self._at_action: Callable[[], None] = _nothing_strikes
        self._death_callbacks: list[Callable[[], None]] = []

    def __repr__(self) -> str:
        return f"<Incarnation {self.number} of {self.node}>"

    def strike_after(self, actions: int, strike: Callable[[], None]) -> None:
        """Have ``strike`` called right before the process has acted that many times more, and acts again."""
        self.actions_left = actions
        self._at_action = strike

    def act(self) -> None:
        """A port of this incarnation is about to act. Ports ask ``actions_left`` first: it is None nearly always."""
        if self.actions_left is None:
            return
        self.actions_left -= 1
        if self.actions_left < 0:
            self.actions_left = None
            Context().run(self._at_action)

    def on_death(self, callback: Callable[[], None]) -> None:
        """Have this called when the incarnation ends, in the harness's context and in order of registration."""
        self._death_callbacks.append(callback)

    def die(self, bury: Callable[[Incarnation], None]) -> None:
        """End it. Dying twice changes nothing. ``bury`` keeps its tasks, so that nothing of them runs."""
        if self.is_dead:
            return
        self.is_dead = self.is_stopped = True
        bury(self)
        callbacks, self._death_callbacks = self._death_callbacks, []
        for callback in callbacks:
            Context().run(callback)


def _nothing_strikes() -> None:
    pass


INCARNATION: ContextVar[Incarnation | None] = ContextVar("INCARNATION", default=None)
"""The incarnation that the running code belongs to; None for the harness."""
