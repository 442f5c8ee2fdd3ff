"""The columns of some rows, as arrays: decoded once, however many parts of the rows are looked at.

The idea: a row group is cut into parts, by kind for each check and by partition inside a check, some hundred of them.
A part copies nothing until a column is asked for; its numbers and words are then picked out of the arrays of the rows
that it was cut out of. Only the rows of a file itself are decoded from Arrow.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

Numbers = np.ndarray[Any, np.dtype[np.int64]]
Place = Numbers | slice
"""Positions of rows, or a stretch of them."""

UNSET = np.iinfo(np.int64).min


class Columns:
    """Columns of equal length. ``of`` makes those of a table, ``part`` those of some of the rows."""

    def __init__(
        self, length: int, names: tuple[str, ...], source: Columns | None, at: Place
    ) -> None:
        self.length = length
        self.names = names
        self._source = source
        """What these were cut out of, and ``at``, where."""
        self._at = at
        self._arrow: dict[str, pa.ChunkedArray] = {}
        self._numbers: dict[tuple[str, int], Numbers] = {}
        self._codes: dict[str, tuple[Numbers, list[str]]] = {}
        self._dense: dict[str, Numbers] = {}

    @classmethod
    def of(cls, table: pa.Table) -> Columns:
        columns = cls(table.num_rows, tuple(table.column_names), None, slice(None))
        columns._arrow.update(zip(table.column_names, table.columns, strict=True))
        return columns

    def part(self, length: int, at: Place, names: tuple[str, ...] | None = None) -> Columns:
        """The rows at these places, with all columns or these."""
        return Columns(length, self.names if names is None else names, self, at)

    def arrow(self, name: str) -> pa.ChunkedArray:
        """A column as Arrow has it. Raises KeyError for a column that it has not."""
        if name not in self._arrow:
            if self._source is None or name not in self.names:
                raise KeyError(name)
            column = self._source.arrow(name)
            is_stretch = isinstance(self._at, slice)
            self._arrow[name] = column[self._at] if is_stretch else column.take(pa.array(self._at))
        return self._arrow[name]

    def type(self, name: str) -> pa.DataType:
        """The Arrow type of a column that it has."""
        return self.arrow(name).type if self._source is None else self._source.type(name)

    def numbers(self, name: str, missing: int) -> Numbers:
        """An integer column, with ``missing`` where it is unset."""
        if (name, missing) not in self._numbers:
            if name not in self.names:
                array = np.full(self.length, missing, dtype=np.int64)
            elif self._source is not None:
                array = self._source.numbers(name, missing)[self._at]
            else:
                column = pc.fill_null(self.arrow(name), missing)
                array = np.asarray(column.to_numpy(), dtype=np.int64)
            self._numbers[name, missing] = array
        return self._numbers[name, missing]

    def codes(self, name: str) -> tuple[Numbers, list[str]]:
        """A column of words as (codes, words), −1 where it is unset. There may be words that no row says."""
        if name not in self._codes:
            if name not in self.names:
                self._codes[name] = (np.full(self.length, -1, dtype=np.int64), [])
            elif self._source is not None:
                codes, words = self._source.codes(name)
                self._codes[name] = (codes[self._at], words)
            else:
                self._codes[name] = _encoded(self.arrow(name))
        return self._codes[name]

    def dense_codes(self, name: str) -> Numbers:
        """Small numbers from 0, equal for equal values of the column; unset has a number of its own."""
        if name not in self._dense:
            if name not in self.names:
                self._dense[name] = np.zeros(self.length, dtype=np.int64)
            elif self._source is not None:
                self._dense[name] = self._source.dense_codes(name)[self._at]
            elif pa.types.is_integer(self.type(name)):
                inverse = np.unique(self.numbers(name, UNSET), return_inverse=True)[1]
                self._dense[name] = inverse.astype(np.int64)
            else:
                self._dense[name] = self.codes(name)[0] + 1
        return self._dense[name]

    def values(self, name: str) -> list[Any]:
        """Any column as Python values, ``None`` where it is unset."""
        if name not in self.names:
            return [None] * self.length
        if pa.types.is_dictionary(self.type(name)):
            codes, words = self.codes(name)
            lookup = [*words, None]
            return [lookup[code] for code in codes.tolist()]
        return self.arrow(name).to_pylist()  # type: ignore[no-any-return]


def _encoded(column: pa.ChunkedArray) -> tuple[Numbers, list[str]]:
    """A column of words as codes, −1 where it is unset, and the words."""
    array = column.unify_dictionaries().combine_chunks()
    if isinstance(array, pa.ChunkedArray):
        array = pa.concat_arrays(array.chunks) if array.num_chunks else pa.array([])
    if not pa.types.is_dictionary(array.type):
        array = array.cast(pa.string()).dictionary_encode()
    codes = pc.fill_null(array.indices, -1).to_numpy(zero_copy_only=False)
    return codes.astype(np.int64), array.dictionary.to_pylist()
