"""What a file tells of its row groups in its footer, so that dear columns need not be decoded.

Lists are the dearest to decode, and of brokers mostly the same from row to row; Parquet's own statistics are of items,
and prove nothing. So a file tells which list all rows of a kind have. And some words follow from a row's kind and node:
in one stretch of one partition a broker that appends does so as the leader, or as a follower. So a file tells what all
rows of a kind and a node say, and who knows kinds and nodes knows these words. What follows in what clients do is
``nemesis.history.dependencies``'.

Limits: a word of more than ``MOST_PAIRS`` kinds and nodes is not told. A file that tells nothing, or nothing
intelligible, is read all the same.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from nemesis.history.dependencies import NOTHING, Follows, follows, numbered

MOST_PAIRS: Final = 64
_LIST_COLUMNS: Final = ("isr", "maximal_isr")
_LISTS_KEY: Final = "nemesis.lists"
_WORD_COLUMNS: Final = ("role", "delivery")
_WORDS_KEY: Final = "nemesis.words"
_FOLLOWS_KEY: Final = "nemesis.follows"
_NOT_MET: Final = -1


class Says(NamedTuple):
    """What all rows of a kind and a node say in a column; ``None`` is unset."""

    kind: str
    node: int | None
    word: str | None


Lists = dict[str, dict[str, list[int]]]
"""Column → kind → the list that all rows of this kind have there; of other kinds nothing is told."""
Words = dict[str, list[Says]]
"""Column → what it says, for all kinds and nodes that there are; of other columns nothing is told."""


class Teller:
    """Collects what a file is to tell, row group by row group."""

    def __init__(self) -> None:
        self._lists: list[Lists] = []
        self._words: list[Words] = []
        self._follows: list[Follows] = []

    def add(self, rows: pa.Table) -> None:
        """Look at the rows of the next row group."""
        self._lists.append({name: _lists_by_kind(rows, name) for name in _LIST_COLUMNS})
        words = {name: _words_by_kind_and_node(rows, name) for name in _WORD_COLUMNS}
        self._words.append({name: told for name, told in words.items() if told is not None})
        self._follows.append(follows(rows))

    def footer(self) -> dict[str, bytes]:
        """Return keys and values for the footer."""
        return {
            _LISTS_KEY: msgspec.json.encode(self._lists),
            _WORDS_KEY: msgspec.json.encode(self._words),
            _FOLLOWS_KEY: msgspec.json.encode(self._follows),
        }


class Told:
    """What a file has told."""

    def __init__(self, metadata: pq.FileMetaData) -> None:
        footer = metadata.metadata or {}
        self._lists: list[Lists] = _decoded(footer, _LISTS_KEY, list[Lists])
        self._words: list[Words] = _decoded(footer, _WORDS_KEY, list[Words])
        self._follows: list[Follows] = _decoded(footer, _FOLLOWS_KEY, list[Follows])

    def lists(self, row_group: int) -> Lists:
        return self._lists[row_group] if row_group < len(self._lists) else {}

    def words(self, row_group: int) -> Words:
        return self._words[row_group] if row_group < len(self._words) else {}

    def follows(self, row_group: int) -> Follows:
        return self._follows[row_group] if row_group < len(self._follows) else NOTHING


def _decoded(footer: dict[bytes, bytes], key: str, of: Any) -> list[Any]:
    try:
        decoded: list[Any] = msgspec.json.decode(footer.get(key.encode(), b"[]"), type=of)
    except msgspec.MsgspecError:
        return []
    return decoded


def _lists_by_kind(rows: pa.Table, column: str) -> dict[str, list[int]]:
    if rows.column(column).null_count == rows.num_rows:
        return {}
    told = {}
    for kind in pc.unique(rows.column("kind")).to_pylist():
        lists = rows.column(column).filter(pc.equal(rows.column("kind"), kind))
        if lists.null_count:
            continue
        first = lists[0].as_py()
        items = np.asarray(pc.list_flatten(lists))
        are_as_long = pc.all(pc.equal(pc.list_value_length(lists), len(first))).as_py()
        if are_as_long and (items.reshape(-1, max(1, len(first))) == first).all():
            told[kind] = first
    return told


def _words_by_kind_and_node(rows: pa.Table, column: str) -> list[Says] | None:
    """What each kind and node says; None if one says several things, or there are too many."""
    (kind, kinds), (node, nodes) = numbered(rows.column("kind")), numbered(rows.column("node"))
    word, words = numbered(rows.column(column))
    pair = kind * len(nodes) + node
    said = np.full(len(kinds) * len(nodes), _NOT_MET)
    said[pair] = word
    met = np.flatnonzero(said != _NOT_MET).tolist()
    if len(met) > MOST_PAIRS or (said[pair] != word).any():
        return None
    return [
        Says(kinds[one // len(nodes)], nodes[one % len(nodes)], words[said[one]]) for one in met
    ]
