"""The part ``traces``: what brokers trace, while they trace it, so that a fault can strike at an event."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from nemesis.history.events import Event


class Traces(Protocol):
    """The live traces of all brokers."""

    async def first(self, matches: Callable[[Event], bool], *, timeout_s: float) -> Event | None:
        """Return the first event traced from now on that matches, within milliseconds; None if none came in time.

        ``matches`` is called with every event of a broker, in the order of each broker's trace.
        """
