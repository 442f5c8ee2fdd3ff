"""What a file tells of what clients do: columns that follow from others and need not be decoded
(``nemesis.history.statistics``).

In one stretch of a history a process either sends or polls, all sends ask for the same acknowledgements, and a poll
returns all offsets from its position on. Who knows the process, or the position and how many values there are, knows
the rest. A file says of each row group where that is so.

Limit: a column that follows from more than ``MOST_WORDS`` words is not told.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

MOST_WORDS: Final = 256
_COLUMNS: Final = (("f", "process"), ("acks", "f"))
_NOT_MET: Final = -1

Said = dict[str, str | int | None]
"""By word, what all rows with it say in another column; ``None`` is unset."""


class Follows(msgspec.Struct, frozen=True):
    """What is told of a row group."""

    words: dict[str, tuple[str, Said]] = {}
    """By column, the column of words that it follows from, and what goes with each."""
    kinds: tuple[str, ...] = ()
    """The kinds that there are; none if they are not told."""
    offsets_run_on: bool = False
    """Whether ``offsets`` has in each row as many numbers as ``values``, from ``offset`` on."""


NOTHING: Final = Follows()


def follows(rows: pa.Table) -> Follows:
    """Look at the rows of a row group."""
    told = {column: (of, _said(rows, column, of)) for column, of in _COLUMNS}
    return Follows(
        {column: (of, said) for column, (of, said) in told.items() if said is not None},
        tuple(pc.unique(rows.column("kind")).to_pylist()),
        _run_on(rows),
    )


def _said(rows: pa.Table, column: str, of: str) -> Said | None:
    """What goes with each word; None if several things go with one, or there are too many, or a row has none."""
    (key, keys), (value, values) = numbered(rows.column(of)), numbered(rows.column(column))
    if len(keys) > MOST_WORDS or None in keys:
        return None
    said = np.full(len(keys), _NOT_MET)
    said[key] = value
    if (said[key] != value).any():
        return None
    return {word: values[at] for word, at in zip(keys, said.tolist(), strict=True) if at >= 0}


def _run_on(rows: pa.Table) -> bool:
    offsets, values = (rows.column(name) for name in ("offsets", "values"))
    lengths = pc.fill_null(pc.list_value_length(offsets), 0).to_numpy()
    if (lengths != pc.fill_null(pc.list_value_length(values), 0).to_numpy()).any():
        return False
    full, positions = lengths > 0, rows.column("offset")
    if pc.list_flatten(offsets).null_count or positions.filter(pa.array(full)).null_count:
        return False
    first = pc.fill_null(positions, 0).to_numpy() - (np.cumsum(lengths) - lengths)
    numbers = np.repeat(first, lengths) + np.arange(lengths.sum())
    return bool((pc.list_flatten(offsets).to_numpy() == numbers).all())


def numbered(column: pa.ChunkedArray) -> tuple[np.ndarray[Any, Any], list[Any]]:
    """Each row's value as a number from 0, and the values of these numbers."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    encoded = column.dictionary_encode(null_encoding="encode").combine_chunks()
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.chunk(0)
    return encoded.indices.to_numpy().astype(np.int64), encoded.dictionary.to_pylist()
