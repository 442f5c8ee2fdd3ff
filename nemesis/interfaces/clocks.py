"""The part ``clocks``: the wall clock of each node is set by itself. Timers are not affected."""

from __future__ import annotations

from typing import Any, Protocol


class Clocks(Protocol):
    """The wall clocks of brokers and ZooKeeper servers. All coroutines raise ``RuntimeFailure``."""

    async def skew(self, node: str, *, offset_ms: int, drift: float) -> dict[str, Any]:
        """Set the node's wall clock ``offset_ms`` from true time, gaining ``drift`` seconds per second from now on.

        Returns what the clock then shows: ``{"offset_ms": ..., "drift": ...}``.
        """

    async def correct(self, node: str) -> dict[str, Any]:
        """Set the node's wall clock right; returns what ``skew`` returns."""
