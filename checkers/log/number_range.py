"""From the smallest of some numbers to the largest, both included."""

from __future__ import annotations

import numpy as np

from nemesis.checkers.framework.segment import Numbers

Span = tuple[int, int]


def span_of(numbers: Numbers) -> Span | None:
    """The span of these numbers; None of none."""
    return (int(numbers.min()), int(numbers.max())) if len(numbers) else None


def wider(span: Span | None, other: Span) -> Span:
    """The span of two."""
    return other if span is None else (min(span[0], other[0]), max(span[1], other[1]))


def meet(span: Span | None, other: Span) -> bool:
    """Whether they have a number in common."""
    return span is not None and span[0] <= other[1] and span[1] >= other[0]


def has_any(numbers: Numbers, span: Span | None) -> bool:
    """Whether one of the numbers (sorted) lies there."""
    if span is None:
        return False
    low, high = np.searchsorted(numbers, span[0]), np.searchsorted(numbers, span[1], "right")
    return bool(low < high)
