"""Values to shares of a height, and where an axis has its ticks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from nemesis.reports.sampling import Floats

MAX_DECADES = 6
"""An axis with more powers of ten has a tick at every second one."""
FEWEST_STEPS = 4
"""With steps this short, a linear axis always has a second tick."""


@dataclass(frozen=True, slots=True)
class Scale:
    """The values at the bottom and at the top of a panel."""

    low: float
    high: float
    is_logarithmic: bool = False
    is_whole: bool = False
    """Whether only whole numbers are values."""

    def shares(self, values: Any) -> Floats:
        """Return for each value where it lies: 0 at the bottom, 1 at the top."""
        array = np.asarray(values, dtype=np.float64)
        low, high = self.low, self.high
        if self.is_logarithmic:
            array = np.log10(np.maximum(array, low))
            low, high = np.log10(low), np.log10(high)
        return np.asarray(np.clip((array - low) / max(high - low, 1e-12), 0.0, 1.0))

    def ticks(self, most: int = 5) -> list[tuple[float, str]]:
        """Return (share of the height, label) of each tick."""
        values = self._decades() if self.is_logarithmic else self._rounded(most)
        shares = self.shares(values).tolist()
        return [(share, f"{value:,.10g}") for share, value in zip(shares, values, strict=True)]

    def _decades(self) -> list[float]:
        first, last = round(np.log10(self.low)), round(np.log10(self.high))
        step = 1 if last - first <= MAX_DECADES else 2
        return [10.0**power for power in range(first, last + 1, step)]

    def _rounded(self, most: int) -> list[float]:
        step = rounded_step(self.high - self.low, most)
        if self.is_whole:
            step = max(1.0, step)
        values = multiples(self.low, self.high, step)
        # A single tick states no scale.
        return values if len(values) > 1 or most >= FEWEST_STEPS else self._rounded(FEWEST_STEPS)


def linear(values: Sequence[float], *, is_whole: bool = False, headroom: float = 0.08) -> Scale:
    """Return a scale from 0, or the smallest value if that is far above, to a little above the largest."""
    low, high = float(min(values, default=0)), float(max(values, default=1))
    low = 0.0 if low <= high / 2 else low
    room = max(high - low, 1.0 if is_whole else 1e-9) * headroom
    return Scale(low if low == 0 else low - room, high + room, is_whole=is_whole)


def logarithmic(values: Floats, least: float) -> Scale:
    """Return a scale of whole powers of ten around all values; those below ``least`` lie at its bottom."""
    bounded = np.maximum(values, least)
    low = int(np.floor(np.log10(bounded.min())))
    high = int(np.ceil(np.log10(bounded.max())))
    return Scale(10.0**low, 10.0 ** max(high, low + 1), is_logarithmic=True)


def time_ticks(duration_s: float, most: int = 10) -> list[tuple[float, str]]:
    """Return (seconds, label) of the ticks of the time axis."""
    step = rounded_step(duration_s, most)
    return [(value, f"{value:,.10g}") for value in multiples(0.0, duration_s, step)]


def rounded_step(span: float, most: int) -> float:
    """Return a round distance (1, 2 or 5 times a power of ten) that makes at most ``most`` steps of a span."""
    smallest = max(span, 1e-9) / most
    power = 10.0 ** np.floor(np.log10(smallest))
    return float(next(power * step for step in (1, 2, 5, 10) if power * step >= smallest * 0.999))


def multiples(low: float, high: float, step: float) -> list[float]:
    """Return the multiples of a step from ``low`` to ``high``, without the dust of floating point."""
    first, last = int(np.ceil(low / step - 1e-9)), int(np.floor(high / step + 1e-9))
    return [float(f"{number * step:.10g}") for number in range(first, last + 1)]
