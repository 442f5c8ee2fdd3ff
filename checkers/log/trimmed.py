"""Some rows of a partition, their polls without most of their records: small enough to travel, and to be walked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from nemesis.checkers.framework.segment import ALWAYS, Mask, Numbers, Segment
from nemesis.checkers.log.partition_rows import Lists
from nemesis.history.schema import SCHEMA

_LISTS = ("offsets", "values")


@dataclass(frozen=True, slots=True)
class Trimmed:
    table: pa.Table
    rows: Numbers
    """Their row numbers in the history."""
    ends: dict[int, int] = field(default_factory=dict)
    """By row, behind the last record that a poll returned."""


def trimmed(
    segment: Segment, kept: Mask, columns: Sequence[str], values: Numbers, *, runs_on: bool
) -> Trimmed:
    """The rows to be kept, of their records those with these values (sorted); ``runs_on`` as of their ``Rows``."""
    indices = np.flatnonzero(kept)
    few = segment.take(indices)
    offsets = Lists.of_offsets(few, runs_on=runs_on)
    lists = {
        name: _lists(np.zeros(0, np.int64), np.zeros(len(indices), np.int64)) for name in _LISTS
    }
    if len(values):
        value_lists = Lists.of(few, "values")
        wanted = is_in(value_lists.flat, values)
        lengths = np.bincount(value_lists.owners[wanted], minlength=len(indices))
        held = offsets.flat[wanted], value_lists.flat[wanted]
        lists = {name: _lists(flat, lengths) for name, flat in zip(_LISTS, held, strict=True)}
    names = [name for name in SCHEMA.names if name in {*ALWAYS, *columns}]
    arrays = [lists[name] if name in lists else _column(few, name) for name in names]
    full = np.flatnonzero(offsets.lengths)
    ends = np.maximum.reduceat(offsets.flat, offsets.starts[full]) + 1 if len(full) else full
    return Trimmed(
        pa.table(arrays, names=names),
        few.rows,
        dict(zip(few.rows[full].tolist(), ends.tolist(), strict=True)),
    )


def joined(parts: Sequence[Trimmed]) -> tuple[Segment, dict[int, int]]:
    """The rows of all of them in history order, each once, and their ends. A row that is in several of them has the
    records that the last one has.
    """
    table = pa.concat_tables([part.table for part in parts]).unify_dictionaries()
    rows = np.concatenate([part.rows for part in parts])
    ends = {row: end for part in parts for row, end in part.ends.items()}
    backwards = rows[::-1]
    _, last = np.unique(backwards, return_index=True)
    last_indices = len(rows) - 1 - last
    segment = Segment.of_rows(table, rows)
    return segment.take(last_indices), ends


def is_in(numbers: Numbers, values: Numbers) -> Mask:
    """Which of the numbers are among the values (sorted)."""
    if not len(values):
        return np.zeros(len(numbers), dtype=np.bool_)
    indices = np.searchsorted(values, numbers)
    indices[indices == len(values)] = 0
    mask: Mask = values[indices] == numbers
    return mask


def _column(segment: Segment, name: str) -> pa.ChunkedArray:
    uniform = segment.columns.uniform(name)
    if uniform is None:
        return segment.columns.arrow(name)
    return pa.chunked_array([pa.array([uniform.value] * len(segment), SCHEMA.field(name).type)])


def _lists(flat: Numbers, lengths: Numbers) -> pa.ListArray:
    offsets = np.concatenate(([0], np.cumsum(lengths))).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), pa.array(flat))
