"""How often something happens, over a sliding window of samples, and how long to wait until it is seldom enough.

As ``org.apache.kafka.common.metrics.stats.Rate`` and ``QuotaUtils`` do: the window consists of ``samples`` pieces of
``sample_s`` seconds; what lies in them is divided by the time that they cover, at least all but one of them in full,
so that a first burst is not taken for a high rate.
"""

from __future__ import annotations

from collections import deque
from typing import Final

QUOTA_WINDOW_NUM: Final = 11
"""Kafka's default of ``quota.window.num``."""
QUOTA_WINDOW_SIZE_S: Final = 1.0
"""Kafka's default of ``quota.window.size.seconds``."""


class Rate:
    """Of what is recorded, per second. Times are the event loop's, in seconds."""

    def __init__(
        self, *, samples: int = QUOTA_WINDOW_NUM, sample_s: float = QUOTA_WINDOW_SIZE_S
    ) -> None:
        self._count = samples
        self._sample_s = sample_s
        self._samples: deque[tuple[float, float]] = deque()
        """Begin and sum of each, oldest first."""

    def record(self, value: float, now: float) -> None:
        samples = self._samples
        if samples and now - samples[-1][0] < self._sample_s:
            begin, total = samples[-1]
            samples[-1] = (begin, total + value)
        else:
            samples.append((now, value))

    def measure(self, now: float) -> float:
        """The rate at this moment."""
        samples, whole_s = self._samples, self._count * self._sample_s
        while samples and now - samples[0][0] >= whole_s:
            samples.popleft()
        if not samples:
            return 0.0
        least_s = (self._count - 1) * self._sample_s
        elapsed_s = now - samples[0][0]
        full = int(elapsed_s / self._sample_s) * self._sample_s
        if full < least_s:
            elapsed_s += least_s - full
        return sum(total for _, total in samples) / max(elapsed_s, self._sample_s)

    def throttle_time_s(self, quota: float, now: float) -> float:
        """How long to be silent so that the rate comes down to the quota; 0 when it is not above it."""
        rate = self.measure(now)
        if rate <= quota:
            return 0.0
        return (rate - quota) / quota * self._count * self._sample_s
