"""Functional dependencies between columns of a row group: a reader computes a dependent column instead of decoding it.

In one stretch of a history a process either sends or polls, and a poll returns all offsets from its position on. In
most workloads all sends ask for the same acknowledgements. So the process determines ``f``, ``f`` determines ``acks``,
and the position and the number of values determine ``offsets``. A file records in its footer, for each row group, which
of these dependencies hold (``nemesis.history.statistics``); a reader decodes a column whose dependency does not hold,
as ``acks`` where sends ask for different acknowledgements.

Limit: a column that depends on more than ``MOST_WORDS`` words is not recorded.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, Final

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

MOST_WORDS: Final = 256
_COLUMNS: Final = (("f", "process"), ("acks", "f"))
_ABSENT: Final = -1

Numbered = tuple[np.ndarray[Any, Any], list[Any]]
"""Each row's value as a number from 0, and the values of these numbers."""
Numbers = Callable[[str], Numbered]
"""Returns a column of a row group as numbers."""
ValueByWord = dict[str, str | int | None]
"""By word of one column, the value that all rows with this word have in another column; ``None`` is unset."""


class Dependencies(msgspec.Struct, frozen=True):
    """The dependencies that hold in a row group. The names of the fields are part of the format on disk."""

    words: dict[str, tuple[str, ValueByWord]] = {}
    """By dependent column, the column of words that determines it, and its value for each word."""
    kinds: tuple[str, ...] = ()
    """The kinds of the rows; empty if they are not recorded."""
    offsets_run_on: bool = False
    """Whether ``offsets`` has in each row as many numbers as ``values``, from ``offset`` on."""


NO_DEPENDENCIES: Final = Dependencies()


def dependencies_of(rows: pa.Table, numbers: Numbers) -> Dependencies:
    """Return the dependencies that hold between the columns of these rows."""
    tables = {
        column: (of, _values_by_word(numbers(of), numbers(column))) for column, of in _COLUMNS
    }
    return Dependencies(
        {column: (of, table) for column, (of, table) in tables.items() if table is not None},
        tuple(numbers("kind")[1]),
        _run_on(rows),
    )


def _values_by_word(keyed: Numbered, valued: Numbered) -> ValueByWord | None:
    """The value for each word; None if a word has several values, a row has no word, or the words are too many."""
    (key, keys), (value, values) = keyed, valued
    if len(keys) > MOST_WORDS or None in keys:
        return None
    if len(values) == 1:
        return dict.fromkeys(keys, values[0])
    value_of_key = np.full(len(keys), _ABSENT)
    value_of_key[key] = value
    if (value_of_key[key] != value).any():
        return None
    return {
        word: values[index]
        for word, index in zip(keys, value_of_key.tolist(), strict=True)
        if index >= 0
    }


def _run_on(rows: pa.Table) -> bool:
    offsets, values = (rows.column(name) for name in ("offsets", "values"))
    if offsets.null_count == values.null_count == rows.num_rows:
        return True
    lengths = pc.fill_null(pc.list_value_length(offsets), 0).to_numpy()
    if (lengths != pc.fill_null(pc.list_value_length(values), 0).to_numpy()).any():
        return False
    full, positions = lengths > 0, rows.column("offset")
    if pc.list_flatten(offsets).null_count or positions.filter(pa.array(full)).null_count:
        return False
    first = pc.fill_null(positions, 0).to_numpy() - (np.cumsum(lengths) - lengths)
    numbers = np.repeat(first, lengths) + np.arange(lengths.sum())
    return bool((pc.list_flatten(offsets).to_numpy() == numbers).all())


def numbers_of(rows: pa.Table) -> Numbers:
    """Return the columns of these rows as numbers, each numbered once."""
    return cache(lambda name: numbered(rows.column(name)))


def numbered(column: pa.ChunkedArray) -> Numbered:
    """Return each row's value as a number from 0, and the values of these numbers."""
    if len(column) and column.null_count == len(column):
        return np.zeros(len(column), dtype=np.int64), [None]
    is_encoded = pa.types.is_dictionary(column.type)
    column = column.unify_dictionaries() if is_encoded else column.dictionary_encode()
    encoded = column.combine_chunks()
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.chunk(0)
    return _renumbered(encoded)


def _renumbered(encoded: pa.DictionaryArray) -> Numbered:
    """Number the values that rows have; a dictionary may contain others."""
    words = [*encoded.dictionary.to_pylist(), None]
    indices = encoded.indices
    code = (indices.fill_null(len(words) - 1) if indices.null_count else indices).to_numpy()
    is_used = np.bincount(code, minlength=len(words)) > 0
    if is_used[:-1].all() and not is_used[-1]:
        return code, words[:-1]
    number_of_code = np.cumsum(is_used) - 1
    return number_of_code[code], [word for word, used in zip(words, is_used, strict=True) if used]
