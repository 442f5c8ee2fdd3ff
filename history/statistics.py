"""Statistics of row groups in a file's footer: with them a reader does not decode expensive columns.

Lists are the most expensive to decode, and the lists of brokers are mostly equal from row to row. Parquet's own
statistics are of the items of lists, and prove nothing about whole lists. So the footer records the list that all rows
of a kind have. Kind and node determine some words: in one stretch of one partition a broker appends either as the
leader or as a follower. So the footer records the word that all rows of a kind and a node have. The footer also
records the dependencies between columns of clients (``nemesis.history.dependencies``).

Limits: a column of words with more than ``MOST_PAIRS`` kinds and nodes has no statistics. A file whose footer has no
statistics, or unreadable ones, is decoded in full.
"""

from __future__ import annotations

from itertools import product
from typing import Any, Final, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from nemesis.history.dependencies import (
    NO_DEPENDENCIES,
    Dependencies,
    Numbered,
    dependencies_of,
    numbers_of,
)

MOST_PAIRS: Final = 64
_LIST_COLUMNS: Final = ("isr", "maximal_isr")
_LISTS_KEY: Final = "nemesis.lists"
_WORD_COLUMNS: Final = ("role", "delivery")
_WORDS_KEY: Final = "nemesis.words"
_FOLLOWS_KEY: Final = "nemesis.follows"
_ABSENT: Final = -1


class UniformWord(NamedTuple):
    """The word that all rows of a kind and a node have in a column; ``None`` is unset."""

    kind: str
    node: int | None
    word: str | None


Lists = dict[str, dict[str, list[int]]]
"""Column → kind → the list that all rows of this kind have; kinds whose rows differ are left out."""
Words = dict[str, list[UniformWord]]
"""Column → its word for each kind and node of the row group; columns whose rows differ are left out."""


class StatisticsCollector:
    """Collects the statistics of a file that is being written, row group by row group."""

    def __init__(self) -> None:
        self._lists: list[Lists] = []
        self._words: list[Words] = []
        self._dependencies: list[Dependencies] = []

    def add(self, rows: pa.Table) -> None:
        """Add the statistics of the next row group."""
        numbers = numbers_of(rows)
        kind, pairs = numbers("kind"), _pairs(numbers("kind"), numbers("node"))
        lists = {name: _lists_by_kind(kind, rows.column(name)) for name in _LIST_COLUMNS}
        self._lists.append(lists)
        words = {name: _words_by_kind_and_node(pairs, numbers(name)) for name in _WORD_COLUMNS}
        self._words.append({name: known for name, known in words.items() if known is not None})
        self._dependencies.append(dependencies_of(rows, numbers))

    def footer(self) -> dict[str, bytes]:
        """Return keys and values for the footer."""
        return {
            _LISTS_KEY: msgspec.json.encode(self._lists),
            _WORDS_KEY: msgspec.json.encode(self._words),
            _FOLLOWS_KEY: msgspec.json.encode(self._dependencies),
        }


class FileStatistics:
    """The statistics that a file's footer contains; empty where it contains none."""

    def __init__(self, metadata: pq.FileMetaData) -> None:
        footer = metadata.metadata or {}
        self._lists: list[Lists] = _decoded(footer, _LISTS_KEY, list[Lists])
        self._words: list[Words] = _decoded(footer, _WORDS_KEY, list[Words])
        self._dependencies: list[Dependencies] = _decoded(footer, _FOLLOWS_KEY, list[Dependencies])

    def lists(self, row_group: int) -> Lists:
        return self._lists[row_group] if row_group < len(self._lists) else {}

    def words(self, row_group: int) -> Words:
        return self._words[row_group] if row_group < len(self._words) else {}

    def dependencies(self, row_group: int) -> Dependencies:
        return (
            self._dependencies[row_group]
            if row_group < len(self._dependencies)
            else NO_DEPENDENCIES
        )


def _decoded(footer: dict[bytes, bytes], key: str, of: Any) -> list[Any]:
    try:
        decoded: list[Any] = msgspec.json.decode(footer.get(key.encode(), b"[]"), type=of)
    except msgspec.MsgspecError:
        return []
    return decoded


def _lists_by_kind(kind: Numbered, lists: pa.ChunkedArray) -> dict[str, list[int]]:
    if lists.null_count == len(lists):
        return {}
    number, kinds = kind
    present = number[lists.is_valid().to_numpy()]
    has_all = np.bincount(present, minlength=len(kinds)) == np.bincount(number)
    list_by_kind = {}
    for index in np.flatnonzero(has_all).tolist():
        of_kind = lists.filter(pa.array(number == index))
        first = of_kind[0].as_py()
        items = np.asarray(pc.list_flatten(of_kind))
        are_as_long = pc.all(pc.equal(pc.list_value_length(of_kind), len(first))).as_py()
        if are_as_long and (items.reshape(-1, max(1, len(first))) == first).all():
            list_by_kind[kinds[index]] = first
    return list_by_kind


def _pairs(kinds: Numbered, nodes: Numbered) -> Numbered:
    """Each row's kind and node as a number from 0, and what the numbers stand for, pairs without rows included."""
    (kind, all_kinds), (node, all_nodes) = kinds, nodes
    number = kind * len(all_nodes) + node if len(all_nodes) > 1 else kind
    return number, list(product(all_kinds, all_nodes))


def _words_by_kind_and_node(paired: Numbered, said: Numbered) -> list[UniformWord] | None:
    """The word of each kind and node; None if one pair has several words, or the pairs are too many."""
    (pair, pairs), (word, words) = paired, said
    if len(words) == 1:
        word_of_pair = np.where(np.bincount(pair, minlength=len(pairs)) > 0, 0, _ABSENT)
    else:
        word_of_pair = np.full(len(pairs), _ABSENT)
        word_of_pair[pair] = word
    present = np.flatnonzero(word_of_pair != _ABSENT).tolist()
    if len(present) > MOST_PAIRS or (len(words) > 1 and (word_of_pair[pair] != word).any()):
        return None
    words_of = ((pairs[number], words[word_of_pair[number]]) for number in present)
    return [UniformWord(kind, node, of_pair) for (kind, node), of_pair in words_of]
