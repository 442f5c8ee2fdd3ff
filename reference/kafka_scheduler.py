"""Work of a broker that comes in time: each job is one named task that runs a function, again and again or once.

A job that raises is logged and runs again at its next turn: a failed checkpoint must not stop the following
ones. Turns are counted from the end of the one before, so a slow job never overlaps itself.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any

from nemesis.reference.ports import Job

_logger = logging.getLogger(__name__)


class KafkaScheduler:
    """Starts jobs on the running loop and ends them together."""

    def __init__(self, on_turn: Callable[[str], None] | None = None) -> None:
        """``on_turn`` is called with the name of a recurring job before each of its turns."""
        self._on_turn = on_turn
        self._tasks: dict[asyncio.Task[None], None] = {}

    def schedule(self, name: str, job: Job, *, period_s: float) -> None:
        """Run ``job`` every ``period_s`` seconds, for the first time after one period."""
        self._start(name, self._repeat(name, job, period_s))

    def schedule_once(self, name: str, job: Job, *, delay_s: float) -> None:
        """Run ``job`` after that many seconds, unless ``shutdown`` comes before."""
        self._start(name, _run_once(name, job, delay_s))

    async def shutdown(self) -> None:
        """Cancel every job and wait until it is gone."""
        tasks, self._tasks = list(self._tasks), {}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _start(self, name: str, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work, name=name)
        self._tasks[task] = None
        task.add_done_callback(lambda done: self._tasks.pop(done, None))

    async def _repeat(self, name: str, job: Job, period_s: float) -> None:
        while True:
            await asyncio.sleep(period_s)
            if self._on_turn is not None:
                self._on_turn(name)
            await _attempt(name, job)


async def _run_once(name: str, job: Job, delay_s: float) -> None:
    await asyncio.sleep(delay_s)
    await _attempt(name, job)


async def _attempt(name: str, job: Job) -> None:
    try:
        done = job()
        if done is not None:
            await done
    except Exception:
        _logger.exception("the job %s failed", name)
