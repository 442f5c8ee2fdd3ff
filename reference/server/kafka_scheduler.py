"""Recurring work of a broker: each job is one named task that runs a function again and again.

A job that raises is logged and runs again at its next turn: a failed checkpoint must not stop the following
ones. Turns are counted from the end of the one before, so a slow job never overlaps itself.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

_logger = logging.getLogger(__name__)

Job = Callable[[], Awaitable[None] | None]
"""What it returns is awaited before the next period begins."""


class KafkaScheduler:
    """Starts jobs on the running loop and ends them together."""

    def __init__(self) -> None:
        self._tasks: list[asyncio.Task[None]] = []

    def schedule(self, name: str, job: Job, *, period_s: float) -> None:
        """Run ``job`` every ``period_s`` seconds, for the first time after one period."""
        task = asyncio.get_running_loop().create_task(_repeat(name, job, period_s), name=name)
        self._tasks.append(task)

    async def shutdown(self) -> None:
        """Cancel every job and wait until it is gone."""
        tasks, self._tasks = self._tasks, []
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _repeat(name: str, job: Job, period_s: float) -> None:
    while True:
        await asyncio.sleep(period_s)
        try:
            done = job()
            if done is not None:
                await done
        except Exception:
            _logger.exception("the job %s failed; it runs again in %s s", name, period_s)
