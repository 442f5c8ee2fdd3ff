"""The Arrow schema of a history: one column per field of ``Event``, and the order of rows.

Order of rows (every reader may rely on it). Rows are *partition-major*:

1. by ``topic``, rows without a topic first, then by ``partition``, rows without a partition
   first. So the history starts with everything that concerns no topic (faults, phases, sessions,
   elections of the controller, control requests), then for each topic what concerns it as a whole,
   then its partitions.
2. inside such a run by ``time``. ZooKeeper's rows carry time −1, so they come first in their
   run, by (``zxid``, ``seq``); everything else follows by the monotonic clock.
3. on equal times ``high-watermark`` goes last: an event that moves a log end offset and the high
   watermark that it allowed may carry the same nanosecond.
4. then by ``process``, ``incarnation`` and ``seq``, which is the order of writing inside a process.

Repeated words (kind, process, topic, ...) are dictionary-coded; lists are lists of int64, or of
strings for ``targets``. Offsets count records, ``time`` is in ns, ``wall_ms`` in ms.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from itertools import islice
from typing import Any, Final, get_args, get_origin, get_type_hints

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nemesis.history.events import FORMAT_VERSION, Event, Kind, Repeated, marks, plain

__all__ = [
    "COLUMNS",
    "FORMAT_VERSION",
    "REQUIRED",
    "SCHEMA",
    "WORD",
    "completed",
    "ordered",
    "set_columns",
    "table",
    "with_columns",
]

Array = np.ndarray[Any, np.dtype[np.int64]]

WORD: Final = pa.dictionary(pa.int32(), pa.string())
"""Strings that repeat often."""


def _type(hint: Any) -> pa.DataType:
    """The Arrow type of a field of ``Event``."""
    kind = plain(hint)
    if get_origin(kind) is list:
        return pa.list_(_type(get_args(kind)[0]))
    if kind is str:
        return WORD if any(isinstance(mark, Repeated) for mark in marks(hint)) else pa.string()
    return pa.bool_() if kind is bool else pa.int64()


REQUIRED: Final = frozenset({"time", "process", "kind", "seq"})
COLUMNS: Final = tuple(Event.__struct_fields__)
TRANSPOSED_EVENTS: Final = 256
FEW_ROWS: Final = 128 * 1024
"""Rows of a row group: as many unset values are kept for each type."""
SCHEMA: Final = pa.schema(
    [
        pa.field(name, _type(hint), nullable=name not in REQUIRED)
        for name, hint in get_type_hints(Event, include_extras=True).items()
    ]
)
"""One field per field of ``Event``, in its order; its type follows from the annotation there."""
_TYPES: Final = tuple({field.type: None for field in SCHEMA})
WORD_COLUMNS: Final = frozenset(field.name for field in SCHEMA if field.type == WORD)
NUMBER_LISTS: Final = frozenset(
    field.name for field in SCHEMA if field.type == pa.list_(pa.int64())
)


def table(events: Iterable[Event]) -> pa.Table:
    """Return the events as a table of ``SCHEMA``, in the order given."""
    return completed(set_columns(events))


def set_columns(events: Iterable[Event]) -> pa.Table:
    """Return the events as a table of the columns that any of them sets, in the order given."""
    columns = {
        field.name: _array(values, field.type)
        for field, values in zip(SCHEMA, _transposed(events), strict=True)
        # Most columns are unset in most histories.
        if field.name in REQUIRED or values.count(None) < len(values)
    }
    fields = [SCHEMA.field(name) for name in columns]
    return pa.Table.from_arrays([*columns.values()], schema=pa.schema(fields))


def _array(values: list[Any], kind: pa.DataType) -> pa.Array:
    if kind == WORD:
        return pa.array(values, pa.string()).dictionary_encode()
    return pa.array(values, kind)


def _transposed(events: Iterable[Event]) -> list[list[Any]]:
    """The values of each field. A few hundred events at a time, or they fall out of the processor's cache."""
    columns: list[list[Any]] = [[] for _ in COLUMNS]
    remaining = iter(events)
    while block := list(map(msgspec.structs.astuple, islice(remaining, TRANSPOSED_EVENTS))):
        for column, values in zip(columns, zip(*block, strict=True), strict=True):
            column.extend(values)
    return columns


def ordered(rows: pa.Table) -> pa.Table:
    """Return the rows in the order that this module documents; columns may be missing. The sort is stable."""
    if rows.num_rows == 0 or is_in_order(rows):
        return rows
    rows = rows.unify_dictionaries().combine_chunks()
    return rows.take(pa.array(_positions(rows)))


def is_in_order(rows: pa.Table) -> bool:
    """Whether the time of rows without topics grows from row to row, so that no other column counts.

    Columns may be missing: they are unset.
    """
    present = [name for name in ("topic", "partition") if name in rows.column_names]
    if any(rows.column(name).null_count < rows.num_rows for name in present):
        return False
    time = _numbers(rows, "time")
    return bool(rows.num_rows and time[0] >= 0 and (np.diff(time) > 0).all())


def completed(rows: pa.Table) -> pa.Table:
    """Return rows of some of the columns with all columns of ``SCHEMA``; the others are unset."""
    return pa.Table.from_arrays(_columns(rows, SCHEMA), schema=SCHEMA)


def with_columns(rows: pa.Table, names: Sequence[str]) -> pa.Table:
    """Return rows with these columns of ``SCHEMA``; those that the rows do not have are unset."""
    fields = [SCHEMA.field(name) for name in names]
    return pa.Table.from_arrays(_columns(rows, fields), schema=pa.schema(fields))


def _columns(rows: pa.Table, fields: Iterable[pa.Field]) -> list[pa.ChunkedArray | pa.Array]:
    present = frozenset(rows.column_names)
    unset = {kind: _unset(kind, rows.num_rows) for kind in _TYPES}
    return [
        rows.column(field.name) if field.name in present else unset[field.type] for field in fields
    ]


def _unset(kind: pa.DataType, count: int) -> pa.Array:
    """Unset values; those of a row group share their memory."""
    return _few_unset(kind).slice(0, count) if count <= FEW_ROWS else pa.nulls(count, kind)


@cache
def _few_unset(kind: pa.DataType) -> pa.Array:
    return pa.nulls(FEW_ROWS, kind)


def _positions(rows: pa.Table) -> Array:
    """The row numbers in order. ``np.lexsort`` takes its most significant key last."""
    time = _numbers(rows, "time")
    zookeeper = time < 0
    last = _ranks(rows, "kind", only=Kind.HIGH_WATERMARK.value)
    keys = (
        _numbers(rows, "seq"),
        _numbers(rows, "incarnation"),
        _ranks(rows, "process"),
        last,
        np.where(zookeeper, _numbers(rows, "zxid"), 0),
        time,
        _numbers(rows, "partition"),
        _ranks(rows, "topic"),
    )
    return np.lexsort(keys)


def _numbers(rows: pa.Table, name: str) -> Array:
    """A column of integers with −1 where it is unset (no key column is negative otherwise but
    time).
    """
    if name not in rows.column_names:
        return np.full(rows.num_rows, -1)
    filled = pc.fill_null(rows.column(name), -1)
    return np.asarray(filled.to_numpy(), dtype=np.int64)


def _ranks(rows: pa.Table, name: str, *, only: str | None = None) -> Array:
    """The alphabetical rank of each word, −1 where unset; with ``only``, 1 for that word and 0 for
    others.
    """
    if name not in rows.column_names:
        return np.full(rows.num_rows, -1)
    chunk = rows.column(name).combine_chunks()
    if isinstance(chunk, pa.ChunkedArray):
        chunk = chunk.chunk(0)
    words = chunk.dictionary.to_pylist()
    if only is not None:
        rank = np.array([int(word == only) for word in words] + [0], dtype=np.int64)
    else:
        rank = np.empty(len(words) + 1, dtype=np.int64)
        rank[np.array(sorted(range(len(words)), key=words.__getitem__), dtype=np.int64)] = (
            np.arange(len(words))
        )
        rank[-1] = -1
    codes = np.asarray(pc.fill_null(chunk.indices, -1).to_numpy(zero_copy_only=False))
    ranks: Array = rank[codes]
    return ranks
