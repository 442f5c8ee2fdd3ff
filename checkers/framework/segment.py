"""A run of consecutive rows of a history, as checkers see it.

The idea: an engine reads one row group with pyarrow and hands every checker a ``Segment`` of the
rows whose kinds it asked for. The columns are numpy arrays for folds that are vectorised, and
``Event`` records for code that is clearer row by row. Row order is that of ``nemesis.history.schema``.

A column is read when it is first asked for; one that no checker has named reads as unset. The
columns ``time``, ``process``, ``kind`` and ``seq`` are always there.

Every row has a number, its position in the history. Checkers keep row numbers, not events:
``proof(row)`` in a finding is replaced by the whole event when the findings are final.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from nemesis.checkers.framework.arrays import Mask, Numbers
from nemesis.checkers.framework.columns import Columns, RowSelection
from nemesis.history.events import Event
from nemesis.history.memory import MemoryRowGroup
from nemesis.history.row_group import RowGroup
from nemesis.history.schema import SCHEMA

__all__ = ["ALWAYS", "PROOF_ROW", "Key", "Mask", "Numbers", "Segment", "proof"]

Key = tuple[Any, ...]

ALWAYS = ("time", "process", "kind", "seq")
"""Columns that every segment has."""

PROOF_ROW = "row"
MAX_DISTINCT = 2**40
"""Keys that are numbered without gaps only when there might be more of them than this."""


def proof(row: int) -> dict[str, Any]:
    """A placeholder for the event in this row of the history, for ``Finding.events``."""
    return {PROOF_ROW: int(row)}


class Segment:
    """Rows of a history, in history order. Its arrays must not be written to."""

    def __init__(self, columns: Columns) -> None:
        self.columns = columns
        self._only: dict[tuple[frozenset[str], frozenset[str]], Segment] = {}

    @classmethod
    def of(cls, group: RowGroup, columns: Iterable[str] = SCHEMA.names) -> Segment:
        """All rows of a row group; of these columns only those are read that are asked for."""
        return cls(Columns.of(group, group.rows, tuple(columns)))

    @classmethod
    def starting_at(cls, table: pa.Table, first_row: int) -> Segment:
        """A segment of consecutive rows, the first of which has this number."""
        return cls.of(MemoryRowGroup(table, first_row), table.column_names)

    @classmethod
    def joined(cls, segments: Sequence[Segment]) -> Segment:
        """The rows of all of them, which have the same columns, one after the other."""
        if len(segments) == 1:
            return segments[0]
        table = pa.concat_tables([segment.table for segment in segments])
        numbers = np.concatenate([segment.rows for segment in segments])
        return cls.of_rows(table, numbers)

    @classmethod
    def of_rows(cls, table: pa.Table, numbers: Numbers) -> Segment:
        """The rows of a table, which have these row numbers."""
        group = MemoryRowGroup(table)
        return cls(Columns.of(group, table.num_rows, table.column_names, numbers))

    def __len__(self) -> int:
        return self.columns.length

    @property
    def rows(self) -> Numbers:
        """The row number of each row, in the whole history."""
        return self.columns.rows()

    @property
    def table(self) -> pa.Table:
        """All rows and columns."""
        return pa.table({name: self.columns.arrow(name) for name in self.columns.names})

    def numbers(self, name: str, missing: int = -1) -> Numbers:
        """An integer column, with ``missing`` where it is unset."""
        return self.columns.numbers(name, missing)

    def codes(self, name: str) -> tuple[Numbers, list[str]]:
        """A column of words as (codes, words): row ``i`` says ``words[codes[i]]``; −1 where it is
        unset. There may be words that no row says.
        """
        return self.columns.codes(name)

    def values(self, name: str) -> list[Any]:
        """Any column as Python values, ``None`` where it is unset."""
        return self.columns.values(name)

    def is_kind(self, *kinds: str) -> Mask:
        """For each row, whether it is of one of these kinds."""
        return self.is_word("kind", kinds)

    def is_word(self, name: str, wanted: Collection[str]) -> Mask:
        """For each row, whether the column says one of these words; unset says none."""
        codes, words = self.columns.words(name)
        hits = [code for code, word in enumerate(words) if word in wanted]
        if not hits:
            return np.zeros(len(self), dtype=np.bool_)
        mask: Mask = codes == hits[0]
        for code in hits[1:]:
            mask |= codes == code
        return mask

    def only(self, kinds: Iterable[str], columns: Iterable[str] | None = None) -> Segment:
        """The rows of these kinds, with these columns beside the usual ones (default: all).

        The answer is kept: many checkers ask for the same kinds.
        """
        wanted = frozenset(self.columns.names if columns is None else (*ALWAYS, *columns))
        chosen = frozenset(kinds)
        if (chosen, wanted) not in self._only:
            names = tuple(name for name in self.columns.names if name in wanted)
            selection = self._selection_of(chosen)
            count = selection.stop if isinstance(selection, slice) else len(selection)
            self._only[chosen, wanted] = Segment(self.columns.part(count, selection, names))
        return self._only[chosen, wanted]

    def _selection_of(self, kinds: frozenset[str]) -> RowSelection:
        """Where the rows of these kinds are. Mostly none or all are, and which kinds there are is known."""
        known_kinds = self.columns.kinds()
        if known_kinds is not None and known_kinds <= kinds:
            return slice(0, len(self))
        if kinds.isdisjoint(known_kinds or self.columns.words("kind")[1]):
            return slice(0, 0)
        if self.columns.is_of_few:
            said = self.values("kind")
            positions = np.array(
                [position for position, kind in enumerate(said) if kind in kinds], dtype=np.int64
            )
        else:
            positions = np.flatnonzero(self.is_word("kind", kinds))
        return slice(0, len(self)) if len(positions) == len(self) else positions

    def where(self, mask: Mask) -> Segment:
        """The rows where the mask is true."""
        if mask.all():
            return self
        return self.take(np.flatnonzero(mask))

    def take(self, positions: Numbers) -> Segment:
        """The rows at these positions of this segment (not row numbers), in the order given."""
        return Segment(self.columns.part(len(positions), positions))

    def slice(self, start: int, stop: int) -> Segment:
        """The rows at positions ``start`` up to, not including, ``stop``; copies nothing."""
        first, last, _ = slice(start, stop).indices(len(self))
        return Segment(self.columns.part(max(0, last - first), slice(first, last)))

    def events(self, *columns: str) -> Iterator[tuple[int, Event]]:
        """Yield (row number, event) of every row, with the given columns set, or all that were
        read.
        """
        if not len(self):
            return
        names = dict.fromkeys((*ALWAYS, *(columns or self.columns.names)))
        present = [name for name in names if name in self.columns.names]
        self.columns.fetch(present)
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
        if all(self.columns.uniform(name) is not None for name in columns):
            yield next(zip(*(self.slice(0, 1).values(name) for name in columns), strict=True)), self
            return
        group = self._group_numbers(columns)
        changes = np.flatnonzero(np.diff(group)) + 1
        starts = np.concatenate(([0], changes))
        stops = np.concatenate((changes, [len(self)]))
        if len(np.unique(group[starts])) == len(starts):
            firsts = starts
            pieces = [self.slice(int(a), int(b)) for a, b in zip(starts, stops, strict=True)]
        else:
            permutation = _stable_order(group)
            cuts = np.flatnonzero(np.diff(group[permutation])) + 1
            positions = sorted(np.split(permutation, cuts), key=lambda piece: int(piece[0]))
            firsts = np.array([piece[0] for piece in positions])
            pieces = [self.take(piece) for piece in positions]
        said = self.take(firsts)
        keys = zip(*(said.values(name) for name in columns), strict=True)
        yield from zip(keys, pieces, strict=True)

    def _group_numbers(self, columns: tuple[str, ...]) -> Numbers:
        """One number per row, equal for equal keys."""
        group = np.zeros(len(self), dtype=np.int64)
        distinct = 1
        for name in columns:
            if self.columns.uniform(name) is not None:
                continue
            codes = self.columns.dense_codes(name)
            count = int(codes.max()) + 1
            if distinct * count > MAX_DISTINCT:
                group = np.unique(group, return_inverse=True)[1].astype(np.int64)
                distinct = int(group.max()) + 1
            group = group * count + codes
            distinct *= count
        return group


def _stable_order(group: Numbers) -> Numbers:
    """What sorts the numbers and leaves equal ones in their order. Numbers of 16 bits are sorted without comparing."""
    if group.max(initial=0) < 2**16:
        return np.argsort(group.astype(np.uint16), kind="stable")
    return np.argsort(group, kind="stable")
