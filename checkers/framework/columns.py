"""The columns of some rows, as arrays: decoded once, however many parts of the rows are looked at.

The idea: a row group is cut into parts, by kind for each check and by partition inside a check, some hundred of them.
A part copies nothing until a column is asked for; its numbers and words are then picked out of the arrays of the rows
of the file, at once, however many parts lie between. Only those rows are read and decoded, a column when somebody
first asks for it: most checks find no rows of theirs in most row groups, and many columns say the same in all rows of
one, which the file tells without being read.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Protocol

import numpy as np
import pyarrow as pa

from nemesis.checkers.framework.arrays import Codes, Mask, Numbers, filled
from nemesis.checkers.framework.dependencies import looked_up, numbers_following, words_following
from nemesis.history.dependencies import ValueByWord
from nemesis.history.row_group import Known, Uniform
from nemesis.history.schema import SCHEMA
from nemesis.history.statistics import UniformWord

RowSelection = Numbers | slice
"""Positions of rows, or a stretch of them, whose ends are given."""

UNSET: Final = np.iinfo(np.int64).min
UNSET_LAST: Final = np.iinfo(np.int64).max
MAX_SPAN: Final = 2**20
"""Values of a key column that lie further apart are numbered by sorting them."""
SMALL_PART: Final = 8
"""Of so few of a file's rows, one in eight, a part picks first and fills then."""
FEW_ROWS: Final = 1024
"""Of so few rows of a file a column costs the same as of one: all that are named are read at once, and Python's values
are kept for all parts.
"""
_UNSET: Final = Uniform(None)
_TYPES: Final = {field.name: field.type for field in SCHEMA}


class Rows(Protocol):
    """Where columns come from: ``nemesis.history.row_group.RowGroup`` is such."""

    @property
    def first_row(self) -> int: ...

    @property
    def is_far(self) -> bool: ...

    def read(self, columns: Sequence[str] | None = None) -> pa.Table: ...

    def known(self) -> Known: ...


class Columns:
    """Columns of equal length. ``of`` makes those of a table or a row group, ``part`` those of some of the rows."""

    def __init__(
        self, length: int, names: tuple[str, ...], source: Rows | Columns, selection: RowSelection
    ) -> None:
        self.length = length
        self.names = names
        self._source = source
        """What these were cut out of; ``selection`` is which part."""
        self._selection = selection
        self._root: tuple[Columns, RowSelection] | None = None
        self._rows: Numbers | None = None
        self._arrow: dict[str, pa.ChunkedArray] = {}
        self._uniform: dict[str, Uniform | None] = {}
        self._known: Known | None = None
        self._kinds: frozenset[str] | None = None
        self._is_fetched = False
        self._stored: dict[str, tuple[Numbers, Mask]] = {}
        self._numbers: dict[tuple[str, int], Numbers] = {}
        self._words: dict[str, tuple[Codes, list[str]]] = {}
        self._codes: dict[str, Numbers] = {}
        self._dense: dict[str, Numbers] = {}
        self._values: dict[str, list[Any]] = {}
        self._following: dict[str, tuple[str, ValueByWord]] | None = None

    @classmethod
    def of(
        cls, source: Rows, length: int, names: Sequence[str], rows: Numbers | None = None
    ) -> Columns:
        """All rows, of which these columns may be asked for. ``rows``: their numbers, if they are not consecutive."""
        columns = cls(length, tuple(names), source, slice(0, length))
        columns._rows = rows
        return columns

    def part(
        self, length: int, selection: RowSelection, names: tuple[str, ...] | None = None
    ) -> Columns:
        """The selected rows, with all columns or these."""
        return Columns(length, self.names if names is None else names, self, selection)

    @property
    def is_of_few(self) -> bool:
        """Whether the file has few rows beside these."""
        return self._root_selection()[0].length <= FEW_ROWS

    def rows(self) -> Numbers:
        """The row number of each row, in the whole history."""
        if self._rows is None:
            root, selection = self._root_selection()
            self._rows = root._rows_at(selection)  # noqa: SLF001
        return self._rows

    def _rows_at(self, selection: RowSelection) -> Numbers:
        """The numbers of these rows of a file."""
        if self._rows is not None:
            return self._rows[selection]
        assert not isinstance(self._source, Columns)
        first = self._source.first_row
        if isinstance(selection, slice):
            return np.arange(first + selection.start, first + selection.stop, dtype=np.int64)
        return selection + first

    def arrow(self, name: str) -> pa.ChunkedArray:
        """A column as Arrow has it. Raises KeyError for a column that it has not."""
        if name not in self.names:
            raise KeyError(name)
        if name not in self._arrow:
            if isinstance(self._source, Columns):
                root, selection = self._root_selection()
                column = root.arrow(name)
                is_stretch = isinstance(selection, slice)
                self._arrow[name] = (
                    column[selection] if is_stretch else column.take(pa.array(selection))
                )
            else:
                self.fetch(self.names if self._source.is_far else (name,))
                if name not in self._arrow:
                    self._arrow[name] = self._source.read([name]).column(0)
        return self._arrow[name]

    def fetch(self, names: Sequence[str]) -> None:
        """Read these columns of a row group now, in one go, which takes half the time of one after the other. Not those
        of which it is known what all rows say.
        """
        if isinstance(self._source, Columns):
            self._source.fetch(names)
            return
        if self.is_of_few:
            if self._is_fetched:
                return
            names, self._is_fetched = self.names, True
        missing = [
            name
            for name in names
            if name in self.names
            and name not in self._arrow
            and self.uniform(name) is None
            and self._uniform_words(self._source, name) is None
            and name not in self._follows(self._source)
        ]
        if missing:
            table = self._source.read(missing)
            self._arrow.update((name, table.column(name)) for name in missing)

    def uniform(self, name: str) -> Uniform | None:
        """What all rows say, if that is known without looking at them."""
        if name not in self._uniform:
            if name not in self.names:
                self._uniform[name] = _UNSET
            elif isinstance(self._source, Columns):
                self._uniform[name] = self._source.uniform(name)
            else:
                self._uniform[name] = self._known_of(self._source).uniform(name)
        return self._uniform[name]

    def uniform_list(self, name: str, kind: str) -> list[int] | None:
        """The list that all rows of a kind have, if that is known without looking at them."""
        if name not in self.names:
            return None
        if isinstance(self._source, Columns):
            return self._source.uniform_list(name, kind)
        return self._known_of(self._source).uniform_list(name, kind)

    def kinds(self) -> frozenset[str] | None:
        """The kinds that these rows may be of, if that is known without looking at many."""
        if isinstance(self._source, Columns):
            return self._source.kinds()
        if self._kinds is None:
            kinds = self._known_of(self._source).dependencies().kinds
            self._kinds = frozenset(kinds or (self.values("kind") if self.is_of_few else ()))
        return self._kinds or None

    def _known_of(self, source: Rows) -> Known:
        if self._known is None:
            self._known = source.known()
        return self._known

    def _uniform_words(self, source: Rows, name: str) -> list[UniformWord] | None:
        """The words of each kind and node, if they are known and the column may be read."""
        if "node" not in self.names:
            return None
        return self._known_of(source).words(name)

    def type(self, name: str) -> pa.DataType:
        """The Arrow type of a column."""
        return _TYPES[name]

    def numbers(self, name: str, missing: int) -> Numbers:
        """An integer column, with ``missing`` where it is unset."""
        if (name, missing) not in self._numbers:
            uniform = self.uniform(name)
            if uniform is not None:
                value = missing if uniform.value is None else uniform.value
                array = np.full(self.length, value, dtype=np.int64)
            elif isinstance(self._source, Columns) and not self._is_small_part(name, missing):
                root, selection = self._root_selection()
                array = root.numbers(name, missing)[selection]
            else:
                array = filled(*self.stored(name), missing)
            self._numbers[name, missing] = array
        return self._numbers[name, missing]

    def _is_small_part(self, name: str, missing: int) -> bool:
        """Whether these are so few of the file's rows that not all of those had better be filled for them."""
        root, _ = self._root_selection()
        return self.length * SMALL_PART < root.length and (name, missing) not in root._numbers  # noqa: SLF001

    def stored(self, name: str) -> tuple[Numbers, Mask]:
        """An integer column as (values, whether they are set): anything may stand where it is unset. Cheaper than
        ``numbers`` for who asks anyway.
        """
        if name not in self._stored:
            uniform = self.uniform(name)
            if uniform is not None:
                value, is_set = (0, False) if uniform.value is None else (uniform.value, True)
                stored = np.full(self.length, value, dtype=np.int64), np.full(self.length, is_set)
            elif isinstance(self._source, Columns):
                root, selection = self._root_selection()
                values, are_set = root.stored(name)
                stored = values[selection], are_set[selection]
            else:
                stored = self._known_numbers(self._source, name) or _stored(self.arrow(name))
            self._stored[name] = stored
        return self._stored[name]

    def codes(self, name: str) -> tuple[Numbers, list[str]]:
        """A column of words as (codes, words), −1 where it is unset. There may be words that no row says."""
        narrow, words = self.words(name)
        if name not in self._codes:
            self._codes[name] = narrow.astype(np.int64)
        return self._codes[name], words

    def words(self, name: str) -> tuple[Codes, list[str]]:
        """As ``codes``, but the codes are of a type that holds no larger ones: to be compared, not to be added to."""
        if name not in self._words:
            uniform = self.uniform(name)
            if uniform is not None:
                is_set = uniform.value is not None
                codes = np.full(self.length, 0 if is_set else -1, dtype=np.int8)
                self._words[name] = (codes, [uniform.value] if is_set else [])
            elif isinstance(self._source, Columns):
                root, selection = self._root_selection()
                root_codes, words = root.words(name)
                self._words[name] = (root_codes[selection], words)
            else:
                self._words[name] = self._known_words(self._source, name) or _encoded(
                    self.arrow(name)
                )
        return self._words[name]

    def _known_words(self, source: Rows, name: str) -> tuple[Codes, list[str]] | None:
        """The words of a column of which is known what each kind and node says, or each word of another column."""
        uniform_words = self._uniform_words(source, name)
        if uniform_words is not None:
            return looked_up(uniform_words, self.words("kind"), self.stored("node"))
        followed = self._follows(source).get(name)
        return followed and words_following(followed[1], *self.words(followed[0]))

    def _known_numbers(self, source: Rows, name: str) -> tuple[Numbers, Mask] | None:
        """A column of numbers of which is known what goes with each word of another column."""
        followed = self._follows(source).get(name)
        return followed and numbers_following(followed[1], *self.words(followed[0]))

    def _follows(self, source: Rows) -> dict[str, tuple[str, ValueByWord]]:
        """The columns that follow from others which may be asked for, too."""
        if self._following is None:
            dependencies = self._known_of(source).dependencies().words
            self._following = {
                name: dependency
                for name, dependency in dependencies.items()
                if dependency[0] in self.names
            }
        return self._following

    def dense_codes(self, name: str) -> Numbers:
        """Small numbers from 0, equal for equal values of the column; unset has a number of its own."""
        if name not in self._dense:
            if self.uniform(name) is not None:
                self._dense[name] = np.zeros(self.length, dtype=np.int64)
            elif pa.types.is_integer(self.type(name)):
                self._dense[name] = _small(self.numbers(name, UNSET))
            else:
                self._dense[name] = self.codes(name)[0] + 1
        return self._dense[name]

    def values(self, name: str) -> list[Any]:
        """Any column as Python values, ``None`` where it is unset."""
        if not self.is_of_few or name not in self.names:
            return self._decoded(name)
        root, selection = self._root_selection()
        if name not in root._values:  # noqa: SLF001
            root._values[name] = root._decoded(name)  # noqa: SLF001
        values = root._values[name]  # noqa: SLF001
        return (
            values[selection]
            if isinstance(selection, slice)
            else [values[row] for row in selection.tolist()]
        )

    def _decoded(self, name: str) -> list[Any]:
        if (uniform := self.uniform(name)) is not None:
            return [uniform.value] * self.length
        if pa.types.is_dictionary(self.type(name)):
            codes, words = self.codes(name)
            lookup = [*words, None]
            return [lookup[code] for code in codes.tolist()]
        return self.arrow(name).to_pylist()  # type: ignore[no-any-return]

    def _root_selection(self) -> tuple[Columns, RowSelection]:
        """The rows of the file, and which of them these are."""
        if self._root is None:
            if isinstance(self._source, Columns):
                root, outer = self._source._root_selection()  # noqa: SLF001
                self._root = root, _composed(outer, self._selection)
            else:
                return self, self._selection
        return self._root


def _composed(outer: RowSelection, inner: RowSelection) -> RowSelection:
    """Which rows of a source the positions ``inner`` of the rows ``outer`` are."""
    if not isinstance(outer, slice):
        return outer[inner]
    if isinstance(inner, slice):
        return slice(outer.start + inner.start, outer.start + inner.stop)
    return inner + outer.start if outer.start else inner


def _stored(column: pa.ChunkedArray) -> tuple[Numbers, Mask]:
    """The integers of a column, and which of them are set."""
    if not column.null_count:
        values = np.asarray(column.to_numpy(), dtype=np.int64)
        return values, np.ones(len(values), dtype=np.bool_)
    array = column.combine_chunks()
    if isinstance(array, pa.ChunkedArray):
        array = pa.concat_arrays(array.chunks)
    values, are_set = _buffers(array)
    return values.astype(np.int64, copy=False), are_set


def _buffers(array: pa.Array) -> tuple[np.ndarray[Any, Any], Mask]:
    """The integers of an array, some of which are unset, as they lie in memory; and which are set."""
    validity, data = array.buffers()
    end = array.offset + len(array)
    are_set = np.unpackbits(np.frombuffer(validity, np.uint8), count=end, bitorder="little")
    values = np.frombuffer(data, array.type.to_pandas_dtype(), count=end)[array.offset :]
    return values, are_set[array.offset :].view(np.bool_)


def _small(values: Numbers) -> Numbers:
    """Numbers from 0, equal for equal values. Sorting is avoided: the values of a key column mostly lie together."""
    is_set = values != UNSET
    lowest = values.min(initial=UNSET_LAST, where=is_set)
    highest = values.max(initial=lowest, where=is_set)
    if int(highest) - int(lowest) < MAX_SPAN:
        return np.where(is_set, values - lowest + 1, 0)
    return np.unique(values, return_inverse=True)[1].astype(np.int64)


def _encoded(column: pa.ChunkedArray) -> tuple[Codes, list[str]]:
    """A column of words as codes, −1 where it is unset, and the words."""
    array = column.unify_dictionaries().combine_chunks()
    if isinstance(array, pa.ChunkedArray):
        array = pa.concat_arrays(array.chunks) if array.num_chunks else pa.array([])
    if not pa.types.is_dictionary(array.type):
        array = array.cast(pa.string()).dictionary_encode()
    words = array.dictionary.to_pylist()
    narrow = np.min_scalar_type(-len(words) - 1)
    if not array.null_count:
        return array.indices.to_numpy().astype(narrow), words
    codes, are_set = _buffers(array.indices)
    return np.where(are_set, codes.astype(narrow), narrow.type(-1)), words
