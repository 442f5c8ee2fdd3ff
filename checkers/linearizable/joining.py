"""Rows of client operations, joined into operations.

The idea: almost every operation begins and ends inside one row group, so the two are joined there, where the numbers
of the operations lie close together and fit into the processor's cache; what is left over of each row group is joined
at the end. No Python runs per operation.

Two rows that both begin, or both end, one operation: the history is damaged and cannot be paired
(``UnpairableError``). That is seen if they are in one row group, or if neither has found its other half in its own;
readers of other systems' histories see it anyway.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, Final, TypeVar

import numpy as np

from nemesis.checkers.framework.compiler import has_compiler
from nemesis.checkers.framework.segment import Numbers, Segment
from nemesis.checkers.linearizable.object_operations import (
    ALWAYS,
    FAIL,
    INFO,
    INVOKE,
    NEVER,
    NO_ROW,
    OK,
    SPARSE,
    UNSET,
    WORTH_COMPILED,
    Codes,
    Operations,
    Rows,
    is_one_number,
    last_of,
    sequence_numbers,
)
from nemesis.history.events import Kind
from nemesis.history.freed_memory import LARGE_BYTES, give_back_freed_memory

_OUTCOMES: Final = {Kind.INVOKE: INVOKE, Kind.OK: OK, Kind.FAIL: FAIL, Kind.INFO: INFO}

KINDS: Final = frozenset(kind.value for kind in _OUTCOMES)
COLUMNS: Final = ("op", "f", "key", "value")


class UnpairableError(Exception):
    """Two rows say the same of one operation, so that the pairing is ambiguous. ``row`` is one of them."""

    def __init__(self, row: int) -> None:
        super().__init__(row)
        self.row = row


@dataclass(frozen=True, slots=True)
class Pairs:
    """What a row group contains: whole operations, and rows whose other half another row group has."""

    complete: Operations
    rest: Rows
    doubled: Numbers
    """Rows that begin, or end, an operation that another one begins, or ends, too."""


Columns = TypeVar("Columns", Operations, Rows)


def pairs(segment: Segment, fs: Sequence[str]) -> Pairs:
    """The operations of a segment whose ``f`` is one of these."""
    key = segment.columns.uniform("key")
    rows = Rows(
        f=_positions_of_words(segment, "f", fs),
        outcome=_positions_of_words(segment, "kind", list(_OUTCOMES)),
        key=segment.numbers("key", UNSET)
        if key is None
        else np.broadcast_to(np.int64(UNSET if key.value is None else key.value), len(segment)),
        value=segment.numbers("value", UNSET),
        time=segment.numbers("time"),
        row=segment.rows,
        op=segment.numbers("op", UNSET),
    )
    wanted = (rows.f >= 0) & (rows.outcome >= 0)
    return _joined(rows if wanted.all() else rows.select(wanted))


def operations(parts: list[Pairs]) -> Operations:
    """All operations of these row groups, in no particular order. Takes the parts out of the list, so that there are no
    two of each operation. Raises UnpairableError.
    """
    left_over = _joined(concatenated(Rows, [part.rest for part in parts]))
    for part in (*parts, left_over):
        if len(part.doubled):
            raise UnpairableError(int(part.doubled[0]))
    pieces = [*(part.complete for part in parts), left_over.complete, _halves(left_over.rest)]
    parts.clear()
    return concatenated(Operations, pieces)


def _positions_of_words(segment: Segment, column: str, words: Sequence[str]) -> Codes:
    """For each row the position of its word in the list, −1 if it is not there."""
    codes, known = segment.columns.words(column)
    position_of = {word: position for position, word in enumerate(words)}
    positions = np.array([position_of.get(word, -1) for word in known] + [-1], dtype=np.int8)
    if codes.dtype != np.int8:
        return positions[codes]
    table = np.full(256, positions[-1])
    table[: len(known)] = positions[:-1]
    return np.frombuffer(codes.tobytes().translate(table.tobytes()), dtype=np.int8)


def _joined(rows: Rows) -> Pairs:
    """The operations of these rows, and what is left over."""
    if len(rows) >= WORTH_COMPILED and has_compiler():
        low, high = int(rows.op.min()), int(rows.op.max())
        if high - low < SPARSE * len(rows):
            from nemesis.checkers.linearizable.pairing import joined

            plain = joined(rows, low, high - low + 1)
            if plain is not None:
                complete, alone = plain
                return Pairs(complete, rows.select(alone), rows.row[:0])
    return _joined_by_arrays(rows)


def _joined_by_arrays(rows: Rows) -> Pairs:
    ids, count = sequence_numbers(rows.op)
    is_begin = rows.outcome == INVOKE
    begins, end = np.flatnonzero(is_begin), np.flatnonzero(~is_begin)
    end_ids = ids[end]
    begin_of, end_of = last_of(ids[begins], begins, count), last_of(end_ids, end, count)
    doubled = np.concatenate([_overwritten(begins, ids, begin_of), _overwritten(end, ids, end_of)])
    alone = np.maximum(begin_of, end_of)[(begin_of < 0) != (end_of < 0)]
    begin = begin_of[end_ids]
    if len(alone):
        end, begin = end[begin >= 0], begin[begin >= 0]
    outcome, value, finish = rows.outcome[end], rows.value[end], rows.time[end]
    is_unset = np.flatnonzero(value == UNSET)
    value[is_unset] = rows.value[begin[is_unset]]
    finish[outcome == INFO] = NEVER
    complete = Operations(
        f=rows.f[begin],
        outcome=outcome,
        key=rows.key[begin],
        value=value,
        start=rows.time[begin],
        finish=finish,
        invoked=rows.row[begin],
        completed=rows.row[end],
    )
    return Pairs(complete, rows.select(np.sort(alone)), rows.row[doubled])


def _overwritten(positions: Numbers, ids: Numbers, last: Numbers) -> Numbers:
    """Those of the positions that are not the last of their id."""
    if np.count_nonzero(last >= 0) == len(positions):
        return positions[:0]
    overwritten: Numbers = positions[last[ids[positions]] != positions]
    return overwritten


def _halves(rows: Rows) -> Operations:
    """Operations of which the history has only the invocation, or only the completion."""
    is_begin = rows.outcome == INVOKE
    return Operations(
        f=rows.f,
        outcome=np.where(is_begin, INFO, rows.outcome).astype(np.int8),
        key=rows.key,
        value=rows.value,
        start=np.where(is_begin, rows.time, ALWAYS),
        finish=np.where(is_begin | (rows.outcome == INFO), NEVER, rows.time),
        invoked=np.where(is_begin, rows.row, NO_ROW),
        completed=np.where(is_begin, NO_ROW, rows.row),
    )


def concatenated(kind: type[Columns], parts: list[Columns]) -> Columns:
    """The columns of all parts, one after the other; takes the parts out of the list."""
    columns = {
        column.name: [getattr(part, column.name) for part in parts] for column in fields(kind)
    }
    parts.clear()
    return kind(*(_one_after_the_other(columns.pop(column.name)) for column in fields(kind)))


def _one_after_the_other(pieces: list[Any]) -> Any:
    """The pieces joined. If one number fills them all, as the key of a single register does, it is stored once."""
    filled = [piece for piece in pieces if len(piece)]
    if filled and all(_is_filled_with(filled[0][0], piece) for piece in filled):
        return np.broadcast_to(filled[0][0], sum(map(len, filled)))
    column = np.concatenate(pieces)
    pieces.clear()
    filled.clear()
    if column.nbytes > LARGE_BYTES:
        give_back_freed_memory()
    return column


def _is_filled_with(number: np.int64, piece: Numbers) -> bool:
    return bool((piece[:1] == number).all() if is_one_number(piece) else (piece == number).all())
