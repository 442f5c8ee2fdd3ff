"""The two searches, as pure functions of a test.

``fewest`` is delta debugging (Zeller and Hildebrandt, "Simplifying and isolating failure-inducing input", 2002): try
large parts alone, then leave out large parts, then ever smaller ones. At its end no single item can be left out.
``lowest`` halves an interval.

A test takes candidates and returns the index of the first that counts, so that it may try several at the same time. It
should remember what it was asked: the searches ask the same again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import chain, pairwise
from typing import Final, TypeVar

T = TypeVar("T")

FirstOf = Callable[[Iterable[list[T]]], int | None]
"""Returns the index of the first candidate that counts; None when none does."""

MAX_PARTS_ALONE: Final = 8
"""Smaller parts are hardly ever enough alone."""


def fewest(items: Sequence[T], first_of: FirstOf[T]) -> list[T]:
    """Return a subsequence that counts and of which no single item can be left out. ``items`` must count."""
    left = list(items)
    if not left or first_of([[]]) is not None:
        return []
    parts = 2
    while len(left) > 1:
        parts = min(parts, len(left))
        chunks = _split(left, parts)
        alone = first_of(chunks) if parts <= MAX_PARTS_ALONE else None
        if alone is not None:
            left, parts = chunks[alone], 2
            continue
        before = len(left)
        left = _leave_out(chunks, first_of)
        if len(left) == before == parts:
            break
        parts *= 2
    return left


def _leave_out(chunks: list[list[T]], first_of: FirstOf[T]) -> list[T]:
    """Leave out one chunk after the other, where what remains counts."""
    kept: list[list[T]] = []
    undecided = chunks
    while undecided:
        rests = (
            list(chain(*kept, *undecided[:index], *undecided[index + 1 :]))
            for index in range(len(undecided))
        )
        needless = first_of(rests)
        if needless is None:
            break
        kept += undecided[:needless]
        undecided = undecided[needless + 1 :]
    return list(chain(*kept, *undecided))


def _split(items: list[T], parts: int) -> list[list[T]]:
    bounds = [len(items) * index // parts for index in range(parts + 1)]
    return [items[begin:end] for begin, end in pairwise(bounds)]


def lowest(low: int, high: int, counts: Callable[[int], bool]) -> int:
    """Return the lowest number that counts, from ``low`` to ``high``, which must count.

    ``low`` is tried first. If what counts has gaps, the answer counts all the same, but a lower one may, too.
    """
    if low >= high or counts(low):
        return min(low, high)
    while high - low > 1:
        middle = (low + high) // 2
        if counts(middle):
            high = middle
        else:
            low = middle
    return high
