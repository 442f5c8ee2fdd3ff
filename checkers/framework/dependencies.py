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

_UNKNOWN: Final = -2


def words_following(
    said: ValueByWord, codes: Codes, words: list[str]
) -> tuple[Codes, list[str]] | None:
    """What goes with these words, as (codes, words); None unless it is known of all of them."""
    if not _are_all_known(said, codes, words):
        return None
    distinct = sorted({dependent for dependent in said.values() if isinstance(dependent, str)})
    code_of = {dependent: code for code, dependent in enumerate(distinct)}
    table = [
        code_of[dependent] if isinstance(dependent, str) else -1
        for dependent in (said.get(word) for word in words)
    ]
    return translated(codes, table), distinct


def numbers_following(
    said: ValueByWord, codes: Codes, words: list[str]
) -> tuple[Numbers, Mask] | None:
    """What goes with these words, as numbers and whether they are set; None unless it is known of all of them."""
    if not _are_all_known(said, codes, words):
        return None
    numbers = [said.get(word) for word in words]
    are_set = translated(codes, [number is not None for number in numbers]).astype(np.bool_)
    given = {number for number in numbers if isinstance(number, int)}
    if len(given) <= 1:
        return np.full(len(codes), max(given, default=0), dtype=np.int64), are_set
    values = np.array(
        [number if isinstance(number, int) else 0 for number in numbers], dtype=np.int64
    )
    return values[codes], are_set


def translated(codes: Codes, table: Sequence[int]) -> Codes:
    """What a table says of each code, if there is no code that it does not speak of. Bytes are translated at once."""
    if (
        codes.itemsize > 1
        or len(table) > 128
        or not -128 <= min(table, default=0) <= max(table, default=0) < 128
    ):
        return np.array(table, dtype=np.int64)[codes]
    byte_table = bytes(code & 255 for code in table).ljust(256, b"\0")
    return np.frombuffer(bytearray(codes).translate(byte_table), dtype=np.int8)


def _are_all_known(said: ValueByWord, codes: Codes, words: list[str]) -> bool:
    missing = [-1, *(code for code, word in enumerate(words) if word not in said)]
    return not any((codes == code).any() for code in missing)


def looked_up(
    uniform_words: list[UniformWord], kinds: tuple[Codes, list[str]], nodes: tuple[Numbers, Mask]
) -> tuple[Codes, list[str]] | None:
    """The words that rows of these kinds and nodes say, as (codes, words); None unless all of them are known.

    Kind and node make one byte, and bytes are translated by a table of 256.
    """
    codes, names = kinds
    numbers, are_set = nodes
    known = [entry.node for entry in uniform_words if entry.node is not None]
    low, unset = min(known, default=0), max(known, default=0) - min(known, default=0) + 1
    if len(names) * (unset + 1) > 255 or not len(codes):
        return None
    numbers = filled(numbers, are_set, low)
    if numbers.min() < low or numbers.max() >= low + unset or codes.min() < 0:
        return None
    numbers = filled(numbers, are_set, low + unset)
    words = sorted({entry.word for entry in uniform_words if entry.word is not None})
    table = np.full(256, _UNKNOWN, dtype=np.int8)
    for kind, node, word in uniform_words:
        if kind in names:
            key = names.index(kind) * (unset + 1) + (unset if node is None else node - low)
            table[key] = -1 if word is None else words.index(word)
    table_keys = np.empty(len(numbers), dtype=np.uint8)
    np.subtract(numbers, low, out=table_keys, casting="unsafe")
    table_keys += codes.astype(np.uint8) * np.uint8(unset + 1)
    translated_codes = np.frombuffer(table_keys.tobytes().translate(table.tobytes()), dtype=np.int8)
    return None if (translated_codes == _UNKNOWN).any() else (translated_codes, words)
