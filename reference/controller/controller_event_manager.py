"""The controller's event queue and the one task that processes it, named after Kafka's ``controller-event-thread``.

All that the controller does happens in this task, one event after the other. ``clear_and_put`` jumps the queue: what
was waiting is preempted, since a session that expired leaves nothing of it true. Source:
kafka.controller.ControllerEventManager.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Protocol

_logger = logging.getLogger(__name__)


class ControllerEvent(Protocol):
    def preempt(self) -> None:
        """Called instead of processing when the event is thrown out of the queue."""


class QueuedEvent:
    """An event and whether it is over: processed, failed or preempted."""

    def __init__(self, event: ControllerEvent) -> None:
        self.event = event
        self._over = asyncio.Event()

    async def await_over(self) -> None:
        await self._over.wait()

    def finish(self) -> None:
        self._over.set()

    def preempt(self) -> None:
        self.event.preempt()
        self._over.set()


class ControllerEventManager:
    """``process`` is awaited with one event at a time; an error that it lets out is logged, the next event follows."""

    def __init__(self, broker_id: int, process: Callable[[ControllerEvent], Awaitable[None]]):
        self._name = f"controller-event-thread-{broker_id}"
        self._process = process
        self._queue: deque[QueuedEvent] = deque()
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._closed = False

    @property
    def is_started(self) -> bool:
        """Whether events get processed; before, and after ``close``, nobody may wait for one."""
        return self._task is not None and not self._closed

    def start(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._run(), name=self._name)

    async def close(self) -> None:
        """Preempt what waits and end the task; the event under way is cancelled."""
        self._closed = True
        self._preempt_all()
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task

    def put(self, event: ControllerEvent) -> QueuedEvent:
        """Queue the event behind all others."""
        queued = QueuedEvent(event)
        if self._closed:
            queued.preempt()
        else:
            self._queue.append(queued)
            self._wake.set()
        return queued

    def clear_and_put(self, event: ControllerEvent) -> QueuedEvent:
        """Preempt all that waits and queue the event."""
        self._preempt_all()
        return self.put(event)

    def _preempt_all(self) -> None:
        while self._queue:
            self._queue.popleft().preempt()

    async def _run(self) -> None:
        while True:
            while not self._queue:
                self._wake.clear()
                await self._wake.wait()
            queued = self._queue.popleft()
            try:
                await self._process(queued.event)
            except asyncio.CancelledError:
                queued.preempt()
                raise
            except Exception:
                # One bad event must not stop the controller; what must make it resign is handled by process itself.
                _logger.exception("processing %s failed", queued.event)
            finally:
                queued.finish()
