"""Nodes: machines on which one process (``incarnation.Incarnation``) after another runs.

An *incarnation* is one process of a node, from its start to its death: what SIGKILL, SIGTERM, SIGSTOP and SIGCONT mean
for tasks that share one thread.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from contextvars import Context, copy_context
from dataclasses import dataclass
from typing import Any

from nemesis.simulation.incarnation import INCARNATION, Incarnation
from nemesis.simulation.loop import SimulationLoop
from nemesis.simulation.task import SimulationTask


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
        self.incarnation: Incarnation | None = None
        """The present incarnation, or the last one."""
        self.exit: Exit | None = None
        """What ended the last incarnation by itself; None while it lives and when it was killed."""
        self._incarnations = 0
        self._main: SimulationTask | None = None
        """Kept: a main coroutine that waits on a future of its own is held by nobody else."""

    @property
    def is_alive(self) -> bool:
        """Whether a process exists (a paused one does)."""
        return self.incarnation is not None and not self.incarnation.is_dead

    def start(self, main: Callable[[], Coroutine[Any, Any, None]]) -> Incarnation:
        """Begin a new incarnation, which ends when ``main`` does. Raises RuntimeError when there is one already."""
        if self.is_alive:
            raise RuntimeError(f"{self.name} runs already")
        self._incarnations += 1
        incarnation = Incarnation(self.name, self.host, self._incarnations)
        self.incarnation, self.exit = incarnation, None
        incarnation.leave = lambda error: self._leave(incarnation, error)
        context = copy_context()
        context.run(INCARNATION.set, incarnation)
        name = f"{self.name}#{incarnation.number}"
        task = self._main = self._loop.create_task(context.run(main), name=name, context=context)
        task.add_done_callback(
            lambda ended: self._leave(incarnation, _error_of(ended)), context=Context()
        )
        return incarnation

    def kill(self) -> None:
        """SIGKILL. Killing a dead node changes nothing."""
        if self.incarnation is not None:
            self.incarnation.die(self._loop.bury)

    def terminate(self) -> None:
        """SIGTERM: the main coroutine is cancelled, and the process ends with it. A dead node is left as it is."""
        if self.is_alive and self._main is not None:
            self._main.cancel()

    def pause(self) -> None:
        """SIGSTOP. Raises RuntimeError when there is no process."""
        incarnation = self._living()
        incarnation.is_paused = incarnation.is_stopped = True

    def resume(self) -> None:
        """SIGCONT: what was deferred runs, in order. Raises RuntimeError when there is no process."""
        incarnation = self._living()
        if incarnation.is_paused:
            incarnation.is_paused = incarnation.is_stopped = False
            self._loop.wake(incarnation)

    def _living(self) -> Incarnation:
        if self.incarnation is None or self.incarnation.is_dead:
            raise RuntimeError(f"{self.name} does not run")
        return self.incarnation

    def _leave(self, incarnation: Incarnation, error: BaseException | None) -> None:
        if not incarnation.is_dead:
            self.exit = Exit(error, self._loop.time())
            incarnation.die(self._loop.bury)


def _error_of(task: SimulationTask | Any) -> BaseException | None:
    if task.cancelled():
        return None
    error: BaseException | None = task.exception()
    return error
