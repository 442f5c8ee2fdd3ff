"""The columns of some rows, as arrays: decoded once, however many parts of the rows are looked at.

The idea: a row group is cut into parts, by kind for each check and by partition inside a check, some hundred of them.
A part copies nothing until a column is asked for; its numbers and words are then picked out of the arrays of the rows
that it was cut out of. Only the rows of a file itself are read and decoded, a column when somebody first asks for it:
most checks find no rows of theirs in most row groups, and many columns say the same in all rows of one, which the file
tells without being read.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from history.reader import Uniform
from history.schema import SCHEMA

Numbers = np.ndarray[Any, np.dtype[np.int64]]
Place = Numbers | slice
"""Positions of rows, or a stretch of them."""

UNSET: Final = np.iinfo(np.int64).min
UNSET_LAST: Final = np.iinfo(np.int64).max
MAX_SPAN: Final = 2**20
"""Values of a key column that lie further apart are numbered by sorting them."""
_UNSET: Final = Uniform(None)
_TYPES: Final = {field.name: field.type for field in SCHEMA}


class Rows(Protocol):
    """Where columns come from: ``history.reader.RowGroup`` is such."""

    def read(self, columns: Sequence[str] | None = None) -> pa.Table: ...

    def uniform(self, column: str) -> Uniform | None: ...


class Columns:
    """Columns of equal length. ``of`` makes those of a table or a row group, ``part`` those of some of the rows."""

    def __init__(
        self, length: int, names: tuple[str, ...], source: Rows | Columns, at: Place
    ) -> None:
        self.length = length
        self.names = names
        self._source = source
        """What these were cut out of, and ``at``, where."""
        self._at = at
        self._arrow: dict[str, pa.ChunkedArray] = {}
        self._uniform: dict[str, Uniform | None] = {}
        self._numbers: dict[tuple[str, int], Numbers] = {}
        self._codes: dict[str, tuple[Numbers, list[str]]] = {}
        self._dense: dict[str, Numbers] = {}

    @classmethod
    def of(cls, rows: Rows, length: int, names: Sequence[str]) -> Columns:
        """All rows, of which these columns may be asked for."""
        return cls(length, tuple(names), rows, slice(None))

    def part(self, length: int, at: Place, names: tuple[str, ...] | None = None) -> Columns:
        """The rows at these places, with all columns or these."""
        return Columns(length, self.names if names is None else names, self, at)

    def arrow(self, name: str) -> pa.ChunkedArray:
        """A column as Arrow has it. Raises KeyError for a column that it has not."""
        if name not in self.names:
            raise KeyError(name)
        if name not in self._arrow:
            if isinstance(self._source, Columns):
                column, at = self._source.picked(name, self._at)
                is_stretch = isinstance(at, slice)
                self._arrow[name] = column[at] if is_stretch else column.take(pa.array(at))
            else:
                self._arrow[name] = self._source.read([name]).column(0)
        return self._arrow[name]

    def fetch(self, names: Sequence[str]) -> None:
        """Read these columns of a row group now, in one go, which takes half the time of one after the other."""
        if isinstance(self._source, Columns):
            self._source.fetch(names)
            return
        missing = [name for name in names if name not in self._arrow and self.uniform(name) is None]
        if missing:
            table = self._source.read(missing)
            self._arrow.update((name, table.column(name)) for name in missing)

    def picked(self, name: str, at: Place) -> tuple[pa.ChunkedArray, Place]:
        """A column that is at hand, and which of its rows are those at these places."""
        if name in self._arrow or not isinstance(self._source, Columns):
            return self.arrow(name), at
        return self._source.picked(name, _composed(self._at, at, self.length))

    def uniform(self, name: str) -> Uniform | None:
        """What all rows say, if that is known without looking at them."""
        if name not in self._uniform:
            self._uniform[name] = self._source.uniform(name) if name in self.names else _UNSET
        return self._uniform[name]

    def type(self, name: str) -> pa.DataType:
        """The Arrow type of a column that it has."""
        return self._source.type(name) if isinstance(self._source, Columns) else _TYPES[name]

    def numbers(self, name: str, missing: int) -> Numbers:
        """An integer column, with ``missing`` where it is unset."""
        if (name, missing) not in self._numbers:
            told = self.uniform(name)
            if told is not None:
                value = missing if told.value is None else told.value
                array = np.full(self.length, value, dtype=np.int64)
            elif isinstance(self._source, Columns):
                array = self._source.numbers(name, missing)[self._at]
            else:
                column = self.arrow(name)
                column = pc.fill_null(column, missing) if column.null_count else column
                array = np.asarray(column.to_numpy(), dtype=np.int64)
            self._numbers[name, missing] = array
        return self._numbers[name, missing]

    def codes(self, name: str) -> tuple[Numbers, list[str]]:
        """A column of words as (codes, words), −1 where it is unset. There may be words that no row says."""
        if name not in self._codes:
            told = self.uniform(name)
            if told is not None:
                is_set = told.value is not None
                codes = np.full(self.length, 0 if is_set else -1, dtype=np.int64)
                self._codes[name] = (codes, [told.value] if is_set else [])
            elif isinstance(self._source, Columns):
                codes, words = self._source.codes(name)
                self._codes[name] = (codes[self._at], words)
            else:
                self._codes[name] = _encoded(self.arrow(name))
        return self._codes[name]

    def dense_codes(self, name: str) -> Numbers:
        """Small numbers from 0, equal for equal values of the column; unset has a number of its own."""
        if name not in self._dense:
            if self.uniform(name) is not None:
                self._dense[name] = np.zeros(self.length, dtype=np.int64)
            elif isinstance(self._source, Columns):
                self._dense[name] = self._source.dense_codes(name)[self._at]
            elif pa.types.is_integer(self.type(name)):
                self._dense[name] = _small(self.numbers(name, UNSET))
            else:
                self._dense[name] = self.codes(name)[0] + 1
        return self._dense[name]

    def values(self, name: str) -> list[Any]:
        """Any column as Python values, ``None`` where it is unset."""
        if (told := self.uniform(name)) is not None:
            return [told.value] * self.length
        if pa.types.is_dictionary(self.type(name)):
            codes, words = self.codes(name)
            lookup = [*words, None]
            return [lookup[code] for code in codes.tolist()]
        return self.arrow(name).to_pylist()  # type: ignore[no-any-return]


def _composed(outer: Place, inner: Place, length: int) -> Place:
    """Which rows of a source the places ``inner`` of the ``length`` rows at ``outer`` are."""
    if not isinstance(outer, slice):
        return outer[inner]
    start = outer.start or 0
    if not isinstance(inner, slice):
        return inner + start
    first, last, _ = inner.indices(length)
    return slice(start + first, start + last)


def _small(values: Numbers) -> Numbers:
    """Numbers from 0, equal for equal values. Sorting is avoided: the values of a key column mostly lie together."""
    is_set = values != UNSET
    lowest = values.min(initial=UNSET_LAST, where=is_set)
    highest = values.max(initial=lowest, where=is_set)
    if int(highest) - int(lowest) < MAX_SPAN:
        return np.where(is_set, values - lowest + 1, 0)
    return np.unique(values, return_inverse=True)[1].astype(np.int64)


def _encoded(column: pa.ChunkedArray) -> tuple[Numbers, list[str]]:
    """A column of words as codes, −1 where it is unset, and the words."""
    array = column.unify_dictionaries().combine_chunks()
    if isinstance(array, pa.ChunkedArray):
        array = pa.concat_arrays(array.chunks) if array.num_chunks else pa.array([])
    if not pa.types.is_dictionary(array.type):
        array = array.cast(pa.string()).dictionary_encode()
    indices = pc.fill_null(array.indices, -1) if array.null_count else array.indices
    codes = indices.to_numpy(zero_copy_only=False)
    return codes.astype(np.int64), array.dictionary.to_pylist()
