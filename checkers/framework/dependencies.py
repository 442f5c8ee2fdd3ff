"""Columns that follow from others, looked up instead of decoded: what the file tells of kinds, nodes and words.

Codes and small numbers are bytes mostly, and bytes are translated by a table at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from nemesis.checkers.framework.arrays import Codes, Mask, Numbers, filled
from nemesis.history.dependencies import ValueByWord
from nemesis.history.statistics import UniformWord

_NOT_TOLD: Final = -2


def words_following(
    said: ValueByWord, codes: Codes, words: list[str]
) -> tuple[Codes, list[str]] | None:
    """What goes with these words, as (codes, words); None if that is not told of all of them."""
    if not _are_told(said, codes, words):
        return None
    mine = sorted({one for one in said.values() if isinstance(one, str)})
    places = {one: place for place, one in enumerate(mine)}
    table = [
        places[one] if isinstance(one, str) else -1 for one in (said.get(word) for word in words)
    ]
    return translated(codes, table), mine


def numbers_following(
    said: ValueByWord, codes: Codes, words: list[str]
) -> tuple[Numbers, Mask] | None:
    """What goes with these words, as numbers and whether they are set; None if that is not told of all of them."""
    if not _are_told(said, codes, words):
        return None
    numbers = [said.get(word) for word in words]
    are_set = translated(codes, [one is not None for one in numbers]).astype(np.bool_)
    given = {one for one in numbers if isinstance(one, int)}
    if len(given) <= 1:
        return np.full(len(codes), max(given, default=0), dtype=np.int64), are_set
    values = np.array([one if isinstance(one, int) else 0 for one in numbers], dtype=np.int64)
    return values[codes], are_set


def translated(codes: Codes, table: Sequence[int]) -> Codes:
    """What a table says of each code, if there is no code that it does not speak of. Bytes are translated at once."""
    if (
        codes.itemsize > 1
        or len(table) > 128
        or not -128 <= min(table, default=0) <= max(table, default=0) < 128
    ):
        return np.array(table, dtype=np.int64)[codes]
    whole = bytes(one & 255 for one in table).ljust(256, b"\0")
    return np.frombuffer(bytearray(codes).translate(whole), dtype=np.int8)


def _are_told(said: ValueByWord, codes: Codes, words: list[str]) -> bool:
    missing = [-1, *(at for at, word in enumerate(words) if word not in said)]
    return not any((codes == one).any() for one in missing)


def looked_up(
    told: list[UniformWord], kinds: tuple[Codes, list[str]], nodes: tuple[Numbers, Mask]
) -> tuple[Codes, list[str]] | None:
    """The words that rows of these kinds and nodes say, as (codes, words); None if not all of them are told.

    Kind and node make one byte, and bytes are translated by a table of 256.
    """
    codes, names = kinds
    numbers, are_set = nodes
    known = [one.node for one in told if one.node is not None]
    low, unset = min(known, default=0), max(known, default=0) - min(known, default=0) + 1
    if len(names) * (unset + 1) > 255 or not len(codes):
        return None
    numbers = filled(numbers, are_set, low)
    if numbers.min() < low or numbers.max() >= low + unset or codes.min() < 0:
        return None
    numbers = filled(numbers, are_set, low + unset)
    words = sorted({one.word for one in told if one.word is not None})
    table = np.full(256, _NOT_TOLD, dtype=np.int8)
    for kind, node, word in told:
        if kind in names:
            place = names.index(kind) * (unset + 1) + (unset if node is None else node - low)
            table[place] = -1 if word is None else words.index(word)
    places = np.empty(len(numbers), dtype=np.uint8)
    np.subtract(numbers, low, out=places, casting="unsafe")
    places += codes.astype(np.uint8) * np.uint8(unset + 1)
    found = np.frombuffer(places.tobytes().translate(table.tobytes()), dtype=np.int8)
    return None if (found == _NOT_TOLD).any() else (found, words)
