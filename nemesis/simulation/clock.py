"""``SimulatedWallClock``: a node's idea of the time of day, derived from virtual time.

True time is the epoch given plus the loop's time. A node's clock is off by an offset, which may be stepped (``skew``)
and may grow or shrink steadily (``drift``). Timers are the loop's and know nothing of this, as a monotonic clock does
not. Source: what NTP calls offset and frequency.
"""

from __future__ import annotations

from typing import Protocol

MS_PER_S = 1000
EPOCH_MS = 1_600_000_000_000
"""The true time when a simulated run begins, in milliseconds since 1970."""


class Timekeeper(Protocol):
    """The part of an event loop that tells the time."""

    def time(self) -> float:
        """Seconds since the start of the simulation."""


class SimulatedWallClock:
    """Implements ``nemesis.reference.ports.WallClock``: called, it returns milliseconds since 1970.

    It may be stepped back, as a real one may; it is never before 1970.
    """

    def __init__(self, loop: Timekeeper, epoch_ms: int) -> None:
        """``epoch_ms`` is the true time, in milliseconds since 1970, when the loop's time was zero."""
        self._loop = loop
        self._epoch_ms = epoch_ms
        self._offset_ms = 0.0
        """At ``_since_s``."""
        self._rate = 0.0
        self._since_s = 0.0

    def __call__(self) -> int:
        now_s = self._loop.time()
        return max(0, self._epoch_ms + round(now_s * MS_PER_S + self._offset_at(now_s)))

    @property
    def offset_ms(self) -> int:
        """How far the clock is ahead of true time now; negative behind it."""
        return round(self._offset_at(self._loop.time()))

    @property
    def rate(self) -> float:
        """Seconds gained in each second."""
        return self._rate

    def skew(self, offset_ms: float) -> None:
        """Step the clock: it is now this far ahead of true time, and goes on at its rate."""
        self._since_s = self._loop.time()
        self._offset_ms = offset_ms

    def drift(self, rate: float) -> None:
        """From now on gain ``rate`` seconds in each second (−0.5: half as fast); keep the offset gained so far."""
        now_s = self._loop.time()
        self._offset_ms, self._since_s = self._offset_at(now_s), now_s
        self._rate = rate

    def _offset_at(self, now_s: float) -> float:
        return self._offset_ms + (now_s - self._since_s) * MS_PER_S * self._rate
