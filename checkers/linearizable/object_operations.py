"""Client operations as columns: one entry per operation, made of its invocation and its completion (``joining``).

An operation without a completion is as one of unknown outcome (``info``): it ends ``NEVER``. One without an invocation
(half a history) may have begun at any time: ``ALWAYS``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from itertools import pairwise
from typing import Any, Final

import numpy as np

from nemesis.checkers.framework.segment import Mask, Numbers

UNSET: Final = np.iinfo(np.int64).min
"""A value or key that the history does not state."""
NEVER: Final = np.iinfo(np.int64).max
ALWAYS: Final = -NEVER

OK: Final = 1
FAIL: Final = 2
INFO: Final = 3
INVOKE: Final = 0

NO_ROW: Final = -1
WORTH_COMPILED: Final = 16_384
"""Rows that are worth importing compiled code for."""
MOST_BITS: Final = 63
"""Of a number that is not negative."""
SPARSE: Final = 8
"""Numbers are looked up in an array if they span at most this many positions for each."""

Codes = np.ndarray[Any, np.dtype[np.int8]]


@dataclass(frozen=True, slots=True)
class Operations:
    """Columns of equal length."""

    f: Codes
    """Positions in the list of names that ``pairs`` was given."""
    outcome: Codes
    """``OK``, ``FAIL`` or ``INFO``."""
    key: Numbers
    value: Numbers
    """What the completion says, else the invocation."""
    start: Numbers
    finish: Numbers
    invoked: Numbers
    """Row numbers in the history; −1 without such a row."""
    completed: Numbers

    def __len__(self) -> int:
        return len(self.f)

    def select(self, selection: Mask | Numbers) -> Operations:
        """The operations where the mask is true, or at these positions, in their order."""
        return Operations(*(getattr(self, column.name)[selection] for column in fields(self)))


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows of client operations, as columns."""

    f: Codes
    outcome: Codes
    key: Numbers
    value: Numbers
    time: Numbers
    row: Numbers
    op: Numbers

    def __len__(self) -> int:
        return len(self.f)

    def select(self, selection: Mask | Numbers) -> Rows:
        return Rows(*(getattr(self, column.name)[selection] for column in fields(self)))


def sequence_numbers(numbers: Numbers) -> tuple[Numbers, int]:
    """Small numbers from 0, equal for equal numbers and in their order; and a bound that all are below."""
    if not len(numbers):
        return numbers, 0
    if is_one_number(numbers):
        return np.broadcast_to(np.int64(0), len(numbers)), 1
    low, high = int(numbers.min()), int(numbers.max())
    if high - low < SPARSE * len(numbers):
        return numbers - low, high - low + 1
    if (high - low).bit_length() + len(numbers).bit_length() < MOST_BITS:
        return _numbered_by_sorting(numbers - low)
    distinct, inverse = np.unique(numbers, return_inverse=True)
    return inverse.astype(np.int64), len(distinct)


def _numbered_by_sorting(numbers: Numbers) -> tuple[Numbers, int]:
    """The same for numbers from 0 with so few bits that each can be sorted together with its position.

    numpy sorts numbers themselves several times as fast as their positions.
    """
    shift = len(numbers).bit_length()
    together = (numbers << shift) | np.arange(len(numbers))
    together.sort()
    is_next = np.diff(together >> shift) != 0
    ids = np.empty(len(numbers), dtype=np.int64)
    ids[together & ((1 << shift) - 1)] = np.concatenate(([0], np.cumsum(is_next)))
    return ids, int(np.count_nonzero(is_next)) + 1


def in_history_order(operations: Operations) -> Operations:
    """The operations in the order of their first rows."""
    return operations.select(np.argsort(_first_rows(operations), kind="stable"))


def by_key(operations: Operations) -> Iterator[Operations]:
    """Yield the operations of each key, keys and operations in the order of the history."""
    permutation = np.lexsort((operations.completed, _first_rows(operations), operations.key))
    ordered = operations.select(permutation)
    cuts = np.flatnonzero(np.diff(ordered.key)) + 1
    edges = [0, *cuts.tolist(), len(ordered)]
    pieces = [ordered.select(np.arange(a, b)) for a, b in pairwise(edges)]
    yield from sorted(pieces, key=lambda piece: int(_first_rows(piece)[0]))


def _first_rows(operations: Operations) -> Numbers:
    return np.where(operations.invoked == NO_ROW, operations.completed, operations.invoked)


def last_of(ids: Numbers, positions: Numbers, count: int) -> Numbers:
    """For each id the last of its positions, −1 without one."""
    last = np.full(count, NO_ROW, dtype=np.int64)
    last[ids] = positions
    return last


def is_one_number(column: Numbers) -> bool:
    """Whether one number is stored for all places of a column."""
    return column.strides == (0,)
