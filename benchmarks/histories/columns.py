"""Columns of the history's schema from numpy arrays, without a Python object per value.

A part of a generated history is a mapping from column to Arrow array, made by the functions below; ``rows`` completes
it to a table of ``nemesis.history.schema.SCHEMA``. Columns that are left out are unset.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nemesis.history.schema import SCHEMA, WORD

Array = np.ndarray[Any, Any]


def numbers(values: Array, is_set: Array | None = None) -> pa.Array:
    """A column of integers, unset where ``is_set`` is false."""
    mask = None if is_set is None else ~is_set
    return pa.array(np.asarray(values, dtype=np.int64), mask=mask)


def number(value: int, count: int) -> pa.Array:
    """The same integer in every row."""
    return pa.array(np.full(count, value, dtype=np.int64))


def words(codes: Array, vocabulary: Sequence[str], is_set: Array | None = None) -> pa.Array:
    """A column of words: row ``i`` says ``vocabulary[codes[i]]``, nothing where ``is_set`` is false."""
    mask = None if is_set is None else ~is_set
    indices = pa.array(np.asarray(codes, dtype=np.int32), mask=mask)
    return pa.DictionaryArray.from_arrays(indices, pa.array(list(vocabulary), pa.string()))


def word(value: str, count: int) -> pa.Array:
    """The same word in every row."""
    return words(np.zeros(count, dtype=np.int32), [value])


def same_list(items: Sequence[int], is_set: Array) -> pa.Array:
    """The same list of integers in every row where ``is_set`` is true."""
    ends = np.cumsum(is_set) * len(items)
    offsets = np.concatenate(([0], ends)).astype(np.int32)
    repeated = np.tile(np.asarray(items, dtype=np.int64), int(is_set.sum()))
    return pa.ListArray.from_arrays(pa.array(offsets), pa.array(repeated), mask=pa.array(~is_set))


def lists(lengths: Array, items: Array, is_set: Array) -> pa.Array:
    """A column of lists: row ``i`` has the next ``lengths[i]`` of ``items``; unset where ``is_set`` is false."""
    offsets = np.concatenate(([0], np.cumsum(np.where(is_set, lengths, 0)))).astype(np.int32)
    values = pa.array(np.asarray(items, dtype=np.int64))
    return pa.ListArray.from_arrays(pa.array(offsets), values, mask=pa.array(~is_set))


def rows(columns: Mapping[str, pa.Array]) -> pa.Table:
    """A table of the history's schema."""
    count = len(next(iter(columns.values())))
    unknown = columns.keys() - set(SCHEMA.names)
    if unknown:
        raise KeyError(f"a history has no column {min(unknown)!r}")
    return pa.Table.from_arrays(
        [columns.get(field.name, pa.nulls(count, field.type)) for field in SCHEMA], schema=SCHEMA
    )


def by_time(tables: Sequence[pa.Table]) -> pa.Table:
    """The rows of tables that are sorted by time, in the order of their times; on equal times the earlier table's."""
    filled = [table for table in tables if table.num_rows]
    if len(filled) == 1:
        return filled[0]
    joined = pa.concat_tables(filled).unify_dictionaries().combine_chunks()
    permutation = pa.array(np.argsort(joined.column("time").to_numpy(), kind="stable"))
    columns = [
        column if column.null_count == len(column) else column.take(permutation)
        for column in joined.columns
    ]
    return pa.Table.from_arrays(columns, schema=joined.schema)


def replaced(table: pa.Table, row: int, **values: Any) -> pa.Table:
    """The table with other values in one row."""
    is_row = pa.array(np.arange(table.num_rows) == row)
    for name, value in values.items():
        index, field = table.schema.get_field_index(name), table.schema.field(name)
        plain = pa.string() if field.type == WORD else field.type
        column = table.column(name).cast(plain)
        changed = pc.if_else(is_row, pa.scalar(value, plain), column)
        if field.type == WORD:
            changed = changed.dictionary_encode()
        table = table.set_column(index, field, changed)
    return table
