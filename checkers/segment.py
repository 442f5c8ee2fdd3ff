"""A run of consecutive rows of a history, as checkers see it.

The idea: an engine reads one row group with pyarrow and hands every checker a ``Segment`` of the
rows whose kinds it asked for. The columns are numpy arrays for folds that are vectorised, and
``Event`` records for code that is clearer row by row. Row order is that of ``history.schema``.

Only the columns that some checker asked for have been read; a column nobody asked for reads as
unset. The columns ``time``, ``process``, ``kind`` and ``seq`` are always there.

Every row has a number, its position in the history. Checkers keep row numbers, not events:
``proof(row)`` in a finding is replaced by the whole event when the findings are final.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from history.events import Event

Numbers = np.ndarray[Any, np.dtype[np.int64]]
Mask = np.ndarray[Any, np.dtype[np.bool_]]
Key = tuple[Any, ...]

ALWAYS = ("time", "process", "kind", "seq")
"""Columns that every segment has."""

PROOF_ROW = "row"


def proof(row: int) -> dict[str, Any]:
    """A placeholder for the event in this row of the history, for ``Finding.events``."""
    return {PROOF_ROW: int(row)}


class Segment:
    """Rows of a history, in history order. Its arrays must not be written to."""

    def __init__(self, table: pa.Table, rows: Numbers) -> None:
        self.table = table
        self.rows = rows
        """The row number of each row, in the whole history."""
        self._numbers: dict[tuple[str, int], Numbers] = {}
        self._codes: dict[str, tuple[Numbers, list[str]]] = {}
        self._only: dict[tuple[frozenset[str], frozenset[str]], Segment] = {}

    @classmethod
    def starting_at(cls, table: pa.Table, first_row: int) -> Segment:
        """A segment of consecutive rows, the first of which has this number."""
        return cls(table, np.arange(first_row, first_row + table.num_rows, dtype=np.int64))

    def __len__(self) -> int:
        return len(self.rows)

    def numbers(self, name: str, missing: int = -1) -> Numbers:
        """An integer column, with ``missing`` where it is unset."""
        if (name, missing) not in self._numbers:
            if name in self.table.column_names:
                column = pc.fill_null(self.table.column(name), missing)
                array = np.asarray(column.to_numpy(), dtype=np.int64)
            else:
                array = np.full(len(self), missing, dtype=np.int64)
            self._numbers[name, missing] = array
        return self._numbers[name, missing]

    def codes(self, name: str) -> tuple[Numbers, list[str]]:
        """A column of words as (codes, words): row ``i`` says ``words[codes[i]]``; −1 where it is
        unset.
        """
        if name not in self._codes:
            if name not in self.table.column_names:
                self._codes[name] = (np.full(len(self), -1, dtype=np.int64), [])
            else:
                array = self.table.column(name).unify_dictionaries().combine_chunks()
                if isinstance(array, pa.ChunkedArray):
                    array = pa.concat_arrays(array.chunks) if array.num_chunks else pa.array([])
                if not pa.types.is_dictionary(array.type):
                    array = array.cast(pa.string()).dictionary_encode()
                codes = pc.fill_null(array.indices, -1).to_numpy(zero_copy_only=False)
                self._codes[name] = (codes.astype(np.int64), array.dictionary.to_pylist())
        return self._codes[name]

    def values(self, name: str) -> list[Any]:
        """Any column as Python values, ``None`` where it is unset."""
        if name not in self.table.column_names:
            return [None] * len(self)
        column = self.table.column(name)
        if pa.types.is_dictionary(column.type):
            codes, words = self.codes(name)
            lookup = [*words, None]
            return [lookup[code] for code in codes.tolist()]
        return column.to_pylist()  # type: ignore[no-any-return]

    def is_kind(self, *kinds: str) -> Mask:
        """For each row, whether it is of one of these kinds."""
        return self.is_word("kind", kinds)

    def is_word(self, name: str, wanted: Collection[str]) -> Mask:
        """For each row, whether the column says one of these words; unset says none."""
        codes, words = self.codes(name)
        hit = np.array([word in wanted for word in words] + [False], dtype=np.bool_)
        return hit[codes]

    def only(self, kinds: Iterable[str], columns: Iterable[str] | None = None) -> Segment:
        """The rows of these kinds, with these columns beside the usual ones (default: all).

        The answer is kept: many checkers ask for the same kinds.
        """
        names = self.table.column_names
        wanted = frozenset(names if columns is None else (*ALWAYS, *columns))
        chosen = frozenset(str(kind) for kind in kinds)
        if (chosen, wanted) not in self._only:
            part = Segment(self.table.select([name for name in names if name in wanted]), self.rows)
            self._only[chosen, wanted] = part.where(self.is_word("kind", chosen))
        return self._only[chosen, wanted]

    def where(self, mask: Mask) -> Segment:
        """The rows where the mask is true."""
        if mask.all():
            return self
        return self.take(np.flatnonzero(mask))

    def take(self, positions: Numbers) -> Segment:
        """The rows at these positions of this segment (not row numbers), in the order given."""
        return Segment(self.table.take(pa.array(positions)), self.rows[positions])

    def slice(self, start: int, stop: int) -> Segment:
        """The rows at positions ``start`` up to, not including, ``stop``; copies nothing."""
        return Segment(self.table.slice(start, stop - start), self.rows[start:stop])

    def events(self, *columns: str) -> Iterator[tuple[int, Event]]:
        """Yield (row number, event) of every row, with the given columns set, or all that were
        read.
        """
        names = dict.fromkeys((*ALWAYS, *(columns or self.table.column_names)))
        present = [name for name in names if name in self.table.column_names]
        for row, values in zip(
            self.rows.tolist(),
            zip(*(self.values(name) for name in present), strict=True),
            strict=True,
        ):
            yield row, Event(**dict(zip(present, values, strict=True)))

    def by(self, *columns: str) -> Iterator[tuple[Key, Segment]]:
        """Yield (key, its rows) for each distinct value of these columns, in order of first
        appearance.

        A key holds the columns' values, ``None`` where unset. Rows keep their order. Keys that the
        history's order brings together, such as ``by("topic", "partition")``, cost a slice; others
        a selection.
        """
        if not len(self):
            return
        group = self._group_numbers(columns)
        changes = np.flatnonzero(np.diff(group)) + 1
        starts = np.concatenate(([0], changes))
        stops = np.concatenate((changes, [len(self)]))
        if len(np.unique(group[starts])) == len(starts):
            pieces = [self.slice(int(a), int(b)) for a, b in zip(starts, stops, strict=True)]
        else:
            order = np.argsort(group, kind="stable")
            cuts = np.flatnonzero(np.diff(group[order])) + 1
            positions = sorted(np.split(order, cuts), key=lambda piece: int(piece[0]))
            pieces = [self.take(piece) for piece in positions]
        for piece in pieces:
            first = piece.slice(0, 1)
            yield tuple(first.values(name)[0] for name in columns), piece

    def _group_numbers(self, columns: tuple[str, ...]) -> Numbers:
        """One number per row, equal for equal keys."""
        group = np.zeros(len(self), dtype=np.int64)
        for name in columns:
            codes = self._dense_codes(name)
            group = group * (int(codes.max()) + 1) + codes
            group = np.unique(group, return_inverse=True)[1].astype(np.int64)
        return group

    def _dense_codes(self, name: str) -> Numbers:
        """Small numbers from 0, equal for equal values of the column; unset has a number of its
        own.
        """
        if name in self.table.column_names and pa.types.is_integer(
            self.table.schema.field(name).type
        ):
            unset = np.iinfo(np.int64).min
            inverse = np.unique(self.numbers(name, unset), return_inverse=True)[1]
            return inverse.astype(np.int64)
        return self.codes(name)[0] + 1
