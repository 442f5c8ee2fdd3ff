"""Which line of a plain history ends which operation, and the micro-operations of chosen lines, in compiled code."""

from __future__ import annotations

import numpy as np

from nemesis.history.foreign.plain.columns import (
    CAS,
    FLAT_END,
    FLAT_START,
    INVOKE,
    MICRO_WRITE,
    MICROS,
    NESTED,
    NIL,
    NOT_PLAIN,
    NUMBER,
    OK,
    PAIR,
    PAIR_NIL,
    READ,
    SHAPE,
    TXN,
    TYPE,
    WRITE,
    A,
    B,
    C,
    F,
    Numbers,
)
from nemesis.history.foreign.plain.compiled import compiled


@compiled
def _fits_micros(asked: Numbers, answered: Numbers, flat: Numbers) -> bool:
    """Whether an answer has the micro-operations of its invocation, with the reads filled in."""
    a, b = asked[FLAT_START], answered[FLAT_START]
    while a < asked[FLAT_END] and b < answered[FLAT_END]:
        if flat[a] != flat[b] or flat[a + 1] != flat[b + 1]:
            return False
        if flat[a] == MICRO_WRITE and flat[a + 3] != flat[b + 3]:
            return False
        a += 3 + max(flat[a + 2], 0)
        b += 3 + max(flat[b + 2], 0)
    return bool(a == asked[FLAT_END] and b == answered[FLAT_END])


@compiled
def _has_key(row: Numbers) -> int:
    """Whether the value of an operation on an object has a key (1), or none (0); −1: it is not plain."""
    f, shape, is_answer = row[F], row[SHAPE], row[TYPE] == OK
    if f == CAS:
        return 1 if shape == NESTED else 0 if shape == PAIR else NOT_PLAIN
    if f == WRITE:
        return 1 if shape == PAIR else 0 if shape == NUMBER else NOT_PLAIN
    if shape == PAIR_NIL or (shape == PAIR and is_answer):
        return 1
    return 0 if shape == NIL or (shape == NUMBER and is_answer) else NOT_PLAIN


@compiled
def _fits_object(asked: Numbers, answered: Numbers, has_key: int) -> bool:
    """Whether an ``ok`` on an object can be the answer to its invocation."""
    if _has_key(answered) != has_key or (has_key and asked[A] != answered[A]):
        return False
    is_same = asked[A] == answered[A] and asked[B] == answered[B] and asked[C] == answered[C]
    return bool(asked[F] == READ or is_same)


@compiled
def _may_begin(row: Numbers, keyed: int) -> bool:
    """Whether an invocation is plain; ``keyed``: whether those before have keys, −1 before the first."""
    if row[F] == TXN:
        return bool(row[SHAPE] == MICROS)
    has_key = _has_key(row)
    return has_key >= 0 and keyed in (-1, has_key)


@compiled
def _may_end(asked: Numbers, row: Numbers, keyed: int, flat: Numbers) -> bool:
    """Whether a completion is plain, and that of its invocation."""
    if asked[F] != row[F]:
        return False
    if row[TYPE] != OK:
        return bool(asked[SHAPE] != NIL or row[SHAPE] == NIL or row[SHAPE] == NUMBER)
    if row[F] == TXN:
        return row[SHAPE] == MICROS and _fits_micros(asked, row, flat)
    return _fits_object(asked, row, keyed)


@compiled
def pair(
    rows: Numbers,
    processes: Numbers,
    process_count: int,
    functions: int,
    flat: Numbers,
    seq: Numbers,
    op: Numbers,
    source: Numbers,
) -> bool:
    """Number the events of plain lines as ``pairs.pairs`` does; return False if the lines are not plain together.

    Each process does one thing at a time. Out come, for each line, ``seq``, ``op``, and the line that states the value
    of its event (``source``). ``processes``: small numbers of the processes, −1 for lines that are not a client's.
    ``functions``: a bit for each function of the workload.
    """
    under_way = np.full(process_count, -1, dtype=np.int64)
    by_first = np.empty(process_count, dtype=np.int64)
    has_begun = np.zeros(process_count, dtype=np.bool_)
    known, events, operations, keyed = 0, 0, 0, -1
    for line in range(len(rows)):
        process = processes[line]
        if process < 0:
            continue
        row, begun = rows[line], under_way[process]
        if not (functions >> row[F]) & 1 or (begun >= 0) == (row[TYPE] == INVOKE):
            return False
        if row[TYPE] == INVOKE:
            if not _may_begin(row, keyed):
                return False
            keyed = _has_key(row) if row[F] != TXN else keyed
            if not has_begun[process]:
                has_begun[process], by_first[known] = True, process
                known += 1
            under_way[process] = line
            continue
        if not _may_end(rows[begun], row, keyed, flat):
            return False
        seq[begun], seq[line] = events, events + 1
        op[begun] = op[line] = operations
        source[begun], source[line] = begun, line if row[TYPE] == OK else begun
        events += 2
        operations += 1
        under_way[process] = -1
    for process in by_first[:known]:
        begun = under_way[process]
        if begun >= 0:
            seq[begun], op[begun], source[begun] = events, operations, begun
            events += 1
            operations += 1
    return True


@compiled
def gather(rows: Numbers, source: Numbers, flat: Numbers, offsets: Numbers, out: Numbers) -> None:
    """Copy the micro-operations of each line's source, one line after the other, to ``out``."""
    offset = 0
    for line in range(len(source)):
        if source[line] >= 0:
            start, end = rows[source[line]][FLAT_START], rows[source[line]][FLAT_END]
            for position in range(start, end):
                out[offset] = flat[position]
                offset += 1
        offsets[line + 1] = offset
