"""Which numbers some of a list of amounts make together.

Reachable numbers are closed intervals, disjoint, not adjacent, in rising order. An amount maps the set S to the union
of S and S + amount. A shift keeps the order of intervals, so a merge of two sorted lists suffices. Small amounts soon
fill one interval. Large ones may double the intervals each time. So the set is given up beyond ``MAX_INTERVALS``, if
the shared ``Budget`` is spent, or if the amounts together reach 2^62. What still holds then: a number below the least
sum or above the largest one is not reachable, and neither is one that is not a multiple of the greatest common divisor.
These three are Python's integers, which do not overflow.
"""

from __future__ import annotations

from collections.abc import Iterable
from copy import copy
from dataclasses import dataclass
from math import gcd
from typing import Final

import numpy as np

from nemesis.checkers.framework.segment import Numbers

MAX_INTERVALS: Final = 2**16
STEP_COST: Final = 64
"""A step with one interval takes as long as this many further intervals."""
MAX_WORK: Final = 10**8
"""Intervals that are computed for one history, at most."""
LIMIT: Final = 2**62


@dataclass(slots=True)
class Budget:
    """How many intervals may still be computed."""

    left: int = MAX_WORK


class SubsetSums:
    """The sums of any of the amounts that were added, 0 among them."""

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self._low = self._high = 0
        self._divisor = 0
        self._intervals: tuple[Numbers, Numbers] | None = (np.zeros(1, np.int64),) * 2

    def and_also(self, amounts: Iterable[int]) -> SubsetSums:
        """Return the sums of these amounts and any of some others."""
        sums = copy(self)
        for amount in amounts:
            sums.add(amount)
        return sums

    def add(self, amount: int) -> None:
        """Let the sums have this amount, or not."""
        if amount == 0:
            return
        self._low += min(amount, 0)
        self._high += max(amount, 0)
        self._divisor = gcd(self._divisor, amount)
        if self._intervals is not None:
            self._intervals = self._with(amount, *self._intervals)

    def has(self, number: int) -> bool | None:
        """Return whether a number is one of the sums; None if that is not known."""
        if not self._low <= number <= self._high:
            return False
        if self._divisor and number % self._divisor:
            return False
        if self._intervals is None:
            return None
        lows, highs = self._intervals
        index = int(np.searchsorted(lows, number, side="right")) - 1
        return bool(highs[index] >= number)

    def intervals(self, count: int) -> tuple[list[tuple[int, int]], bool]:
        """Return the first intervals, at most this many, and whether these are all; the outermost bounds if unknown."""
        if self._intervals is None:
            return [(self._low, self._high)], False
        lows, highs = self._intervals
        first = zip(lows[:count].tolist(), highs[:count].tolist(), strict=True)
        return list(first), len(lows) <= count

    def _with(self, amount: int, lows: Numbers, highs: Numbers) -> tuple[Numbers, Numbers] | None:
        self._budget.left -= STEP_COST + len(lows)
        is_small = max(abs(self._low), abs(self._high)) < LIMIT
        if not is_small or self._budget.left < 0:
            return None
        starts = np.concatenate([lows, lows + amount])
        by_start = np.argsort(starts, kind="stable")
        starts = starts[by_start]
        ends = np.maximum.accumulate(np.concatenate([highs, highs + amount])[by_start])
        # An interval begins where no earlier one reaches the number before it.
        is_first = np.concatenate([[True], starts[1:] > ends[:-1] + 1])
        is_last = np.concatenate([is_first[1:], [True]])
        if np.count_nonzero(is_first) > MAX_INTERVALS:
            return None
        return starts[is_first], ends[is_last]
