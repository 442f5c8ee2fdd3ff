"""The part ``traces`` of the simulation: the record in memory calls whoever waits, at the instant of the event."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from nemesis.history.events import Event
from nemesis.simulation.memory_record import MemoryRecord


class SimulationTraces:
    """Implements ``nemesis.interfaces.traces.Traces``."""

    def __init__(self, record: MemoryRecord) -> None:
        self._record = record

    async def first(self, matches: Callable[[Event], bool], *, timeout_s: float) -> Event | None:
        matched: asyncio.Future[Event] = asyncio.get_running_loop().create_future()

        def watch(event: Event) -> None:
            if event.incarnation is not None and not matched.done() and matches(event):
                matched.set_result(event)

        with self._record.watched(watch):
            try:
                return await asyncio.wait_for(matched, timeout_s)
            except TimeoutError:
                return None
