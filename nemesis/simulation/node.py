"""Nodes and their lives: what SIGKILL, SIGSTOP and SIGCONT mean for tasks that share one thread.

A *life* is one process of a node, from its start to its death. Every callback belongs to the life that is found in its
context (``LIFE``), so whatever a node's main coroutine starts, directly or not, is its own. No life means the harness,
which is outside the system: never killed, never paused.

* Death runs nothing more of the life: no callback, no ``finally``, no ``__del__``. Its tasks are kept to the end of
  the simulation, because dropping them would close their coroutines, which runs their ``finally``. The ports that a
  life was given (disk, streams, tracer, ZooKeeper client) look at ``is_dead`` of *their* life and do nothing then,
  whoever calls them. What death means outside of the process is told by ``on_death`` (the network ends connections).
* A pause keeps the life's callbacks in their queue; timers that come due meanwhile join it in order.

* Either may come in the middle of a turn (``Life.strike_after``): ports count what a process does to the world outside
  (a write to disk, a line of its trace, bytes sent), and the strike comes between two of these.

Limit: a callback in the middle of which its own life is killed or paused runs on to its next ``await``. Killed, it does
nothing more outside, because its ports are fenced; paused, it ends what it had begun, and the rest of the turn waits.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Coroutine
from contextvars import Context, ContextVar, copy_context
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from nemesis.simulation.task import SimulationHandle, SimulationTask

if TYPE_CHECKING:
    from nemesis.simulation.loop import SimulationLoop


class Life:
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
        return f"<Life {self.number} of {self.node}>"

    def strike_after(self, actions: int, strike: Callable[[], None]) -> None:
        """Have ``strike`` called right before the process has acted that many times more, and acts again."""
        self.actions_left = actions
        self._at_action = strike

    def act(self) -> None:
        """A port of this life is about to do something. Ports ask ``actions_left`` first: it is None nearly always."""
        if self.actions_left is None:
            return
        self.actions_left -= 1
        if self.actions_left < 0:
            self.actions_left = None
            Context().run(self._at_action)

    def on_death(self, callback: Callable[[], None]) -> None:
        """Have this called when the life ends, in the harness's context and in order of registration."""
        self._death_callbacks.append(callback)

    def die(self, loop: SimulationLoop) -> None:
        """End it. Dying twice changes nothing."""
        if self.is_dead:
            return
        self.is_dead = self.is_stopped = True
        loop.bury(self)
        callbacks, self._death_callbacks = self._death_callbacks, []
        for callback in callbacks:
            Context().run(callback)


def _nothing_strikes() -> None:
    pass


LIFE: ContextVar[Life | None] = ContextVar("LIFE", default=None)
"""The life that the running code belongs to; None for the harness."""


@dataclass(frozen=True, slots=True)
class Exit:
    """How a main coroutine ended by itself, and when (virtual seconds). No error: it returned."""

    error: BaseException | None
    at: float


class Node:
    """A machine on which one process after another may run."""

    def __init__(self, loop: SimulationLoop, name: str, host: str) -> None:
        self._loop = loop
        self.name = name
        self.host = host
        self.life: Life | None = None
        """The present life, or the last one."""
        self.exit: Exit | None = None
        """What ended the last life by itself; None while it lives and when it was killed."""
        self._lives = 0
        self._main: SimulationTask | None = None
        """Kept: a main coroutine that waits on a future of its own is held by nobody else."""

    @property
    def is_alive(self) -> bool:
        """Whether a process exists (a paused one does)."""
        return self.life is not None and not self.life.is_dead

    def start(self, main: Callable[[], Coroutine[Any, Any, None]]) -> Life:
        """Begin a new life, which ends when ``main`` does. Raises RuntimeError when there is one already."""
        if self.is_alive:
            raise RuntimeError(f"{self.name} runs already")
        self._lives += 1
        life = Life(self.name, self.host, self._lives)
        self.life, self.exit = life, None
        life.leave = lambda error: self._leave(life, error)
        context = copy_context()
        context.run(LIFE.set, life)
        name = f"{self.name}#{life.number}"
        task = self._main = self._loop.create_task(context.run(main), name=name, context=context)
        task.add_done_callback(lambda ended: self._leave(life, _error_of(ended)), context=Context())
        return life

    def kill(self) -> None:
        """SIGKILL. Killing a dead node changes nothing."""
        if self.life is not None:
            self.life.die(self._loop)

    def terminate(self) -> None:
        """SIGTERM: the main coroutine is cancelled, and the process ends with it. A dead node is left as it is."""
        if self.is_alive and self._main is not None:
            self._main.cancel()

    def pause(self) -> None:
        """SIGSTOP. Raises RuntimeError when there is no process."""
        life = self._living()
        life.is_paused = life.is_stopped = True

    def resume(self) -> None:
        """SIGCONT: what was deferred runs, in order. Raises RuntimeError when there is no process."""
        life = self._living()
        if life.is_paused:
            life.is_paused = life.is_stopped = False
            self._loop.wake(life)

    def _living(self) -> Life:
        if self.life is None or self.life.is_dead:
            raise RuntimeError(f"{self.name} does not run")
        return self.life

    def _leave(self, life: Life, error: BaseException | None) -> None:
        if not life.is_dead:
            self.exit = Exit(error, self._loop.time())
            life.die(self._loop)


def _error_of(task: SimulationTask | Any) -> BaseException | None:
    if task.cancelled():
        return None
    error: BaseException | None = task.exception()
    return error
