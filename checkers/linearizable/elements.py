"""Elements of collections: which there are, and in which answers they stand.

An element is a value of a key; elements have small numbers (``ids``). Answers that are lists (a read of a set, a drain
of a queue) are kept flat: one entry for each element, with the row that says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nemesis.checkers.framework.segment import Mask, Numbers, Segment
from nemesis.checkers.linearizable.object_operations import (
    FAIL,
    NO_ROW,
    OK,
    UNSET,
    Operations,
    sequence_numbers,
)

COLUMN: Final = "values"
NONE: Final = -1
"""No position."""


@dataclass(frozen=True, slots=True)
class Listed:
    """What lists say, element by element, in their order."""

    row: Numbers
    """The row whose list it stands in."""
    value: Numbers


def listed(segment: Segment, fs: Sequence[str], column: str = COLUMN) -> Listed:
    """The elements in the lists of the operations of these names."""
    indices = np.flatnonzero(segment.is_word("f", tuple(fs)))
    if not len(indices) or column not in segment.columns.names:
        return Listed(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64))
    lists = segment.take(indices).columns.arrow(column)
    chunk = pa.concat_arrays(lists.chunks) if lists.num_chunks != 1 else lists.chunk(0)
    lengths = pc.fill_null(pc.list_value_length(chunk), 0).to_numpy(zero_copy_only=False)
    values = pc.fill_null(chunk.flatten(), UNSET).to_numpy(zero_copy_only=False)
    return Listed(np.repeat(segment.rows[indices], lengths), values.astype(np.int64))


def all_listed(parts: Sequence[Listed]) -> Listed:
    return Listed(
        np.concatenate([part.row for part in parts]), np.concatenate([part.value for part in parts])
    )


def answers(operations: Operations, lists: Listed) -> tuple[Numbers, Numbers]:
    """Return (operations, values): what successful operations answered, element by element."""
    done = np.flatnonzero((operations.outcome == OK) & (operations.completed != NO_ROW))
    done = done[np.argsort(operations.completed[done], kind="stable")]
    rows = operations.completed[done]
    index = np.searchsorted(rows, lists.row)
    is_answer = np.append(rows, NO_ROW)[index] == lists.row
    return done[index[is_answer]], lists.value[is_answer]


@dataclass(frozen=True, slots=True)
class Numbering:
    """Numbers of the elements that some arrays name."""

    ids: list[Numbers]
    """For each array, the ids of its entries."""
    key: Numbers
    """For each id. What follows likewise."""
    value: Numbers

    def __len__(self) -> int:
        return len(self.key)


def numbered(*arrays: tuple[Numbers, Numbers]) -> Numbering:
    """Number the elements that these arrays of keys and values name; ids are in the order of keys, then values."""
    key = np.concatenate([keys for keys, _ in arrays])
    value = np.concatenate([values for _, values in arrays])
    keys, _ = sequence_numbers(key)
    values, most = sequence_numbers(value)
    _, first, ids = np.unique(keys * max(most, 1) + values, return_index=True, return_inverse=True)
    cuts = np.cumsum([len(array_keys) for array_keys, _ in arrays])[:-1]
    return Numbering(list(np.split(ids.astype(np.int64), cuts)), key[first], value[first])


def first_of(ids: Numbers, by: Numbers, positions: Numbers, count: int) -> Numbers:
    """For each id the position whose ``by`` is smallest."""
    permutation = np.lexsort((positions, by, ids))[::-1]
    first_positions = np.full(count, NONE, dtype=np.int64)
    first_positions[ids[permutation]] = positions[permutation]
    return first_positions


def values_at(column: Numbers, positions: Numbers, missing: int) -> Numbers:
    """The column's values at these positions, ``missing`` where the position is ``NONE``."""
    if not len(column):
        return np.full(len(positions), missing, dtype=np.int64)
    return np.where(positions == NONE, missing, column[positions])


@dataclass(frozen=True, slots=True)
class Puts:
    """For each element, the operations that put it into its collection: positions, or ``NONE``."""

    succeeded: Numbers
    """The successful put that ended first."""
    attempted: Numbers
    """The put that did not certainly fail and began first."""
    failed: Numbers
    """The put that certainly failed and began first."""
    attempt_count: Numbers
    """The number of puts that did not certainly fail."""

    @classmethod
    def of(cls, operations: Operations, puts: Numbers, ids: Numbers, count: int) -> Puts:
        """``puts``: positions of operations; ``ids``: the element of each; ``count``: how many elements there are."""

        def first(chosen: Mask, by: Numbers) -> Numbers:
            return first_of(ids[chosen], by[puts[chosen]], puts[chosen], count)

        outcome = operations.outcome[puts]
        is_attempt = outcome != FAIL
        return cls(
            succeeded=first(outcome == OK, operations.finish),
            attempted=first(is_attempt, operations.start),
            failed=first(~is_attempt, operations.start),
            attempt_count=np.bincount(ids[is_attempt], minlength=count),
        )
