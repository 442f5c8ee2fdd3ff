"""Whether a node's machine has power, and what waits for it to come back.

A machine without power sends nothing: no end of stream, no reset, no answer to a call. Its peers send again, ever
less often, as TCP does: the pause doubles each time, so that the next attempt after the power is back comes within as
long as it has been tried in vain. Then a kernel answers that knows nothing of the old connections.

Limit: nobody's kernel gives up; the callers' own time-outs are shorter (Linux tries two minutes for a call, fifteen for
what was sent).
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import Context
from random import Random
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nemesis.simulation.loop import SimulationLoop


class Power:
    """Of one node's machine."""

    __slots__ = ("_loop", "_rng", "_waiting", "is_on")

    def __init__(self, loop: SimulationLoop, rng: Random) -> None:
        self.is_on = True
        self._loop = loop
        self._rng = rng
        self._waiting: dict[Callable[[], None], float] = {}

    def off(self) -> None:
        """Have none from now on."""
        self.is_on = False

    def on(self) -> None:
        """Have it again: what was tried in vain is tried again, each at its time. No change if there was power."""
        self.is_on = True
        waiting, self._waiting = self._waiting, {}
        for attempt, since in waiting.items():
            pause_s = self._rng.random() * (self._loop.now - since)
            self._loop.call_later(pause_s, attempt, context=Context())

    def call_again(self, attempt: Callable[[], None]) -> None:
        """Have this called, in the harness's context, when it can arrive; twice the same is called once."""
        self._waiting.setdefault(attempt, self._loop.now)
