"""Which line of a plain history ends which operation, and the micro-operations of chosen lines, in compiled code."""

from __future__ import annotations

import numpy as np

from nemesis.history.foreign.plain.columns import (
    CAS,
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
    TXN,
    WRITE,
    Lines,
    Numbers,
    Positions,
)
from nemesis.history.foreign.plain.compiled import compiled, inlined


@inlined
def _fits_micros(lines: Lines, asked: int, answered: int, flat: Numbers) -> bool:
    """Whether an answer has the micro-operations of its invocation, with the reads filled in."""
    a, b = lines.a[asked], lines.a[answered]
    while a < lines.b[asked] and b < lines.b[answered]:
        if flat[a] != flat[b] or flat[a + 1] != flat[b + 1]:
            return False
        if flat[a] == MICRO_WRITE and flat[a + 3] != flat[b + 3]:
            return False
        a += 3 + max(flat[a + 2], 0)
        b += 3 + max(flat[b + 2], 0)
    return bool(a == lines.b[asked] and b == lines.b[answered])


@inlined
def _has_key(lines: Lines, line: int) -> int:
    """Whether the value of an operation on an object has a key (1), or none (0); −1: it is not plain."""
    f, shape, is_answer = lines.f[line], lines.shape[line], lines.type[line] == OK
    if f == CAS:
        return 1 if shape == NESTED else 0 if shape == PAIR else NOT_PLAIN
    if f == WRITE:
        return 1 if shape == PAIR else 0 if shape == NUMBER else NOT_PLAIN
    if shape == PAIR_NIL or (shape == PAIR and is_answer):
        return 1
    return 0 if shape == NIL or (shape == NUMBER and is_answer) else NOT_PLAIN


@inlined
def _fits_object(lines: Lines, asked: int, answered: int, has_key: int) -> bool:
    """Whether an ``ok`` on an object can be the answer to its invocation."""
    a, b, c = lines.a, lines.b, lines.c
    if _has_key(lines, answered) != has_key or (has_key and a[asked] != a[answered]):
        return False
    is_same = a[asked] == a[answered] and b[asked] == b[answered] and c[asked] == c[answered]
    return bool(lines.f[asked] == READ or is_same)


@inlined
def _may_begin(lines: Lines, line: int, keyed: int) -> bool:
    """Whether an invocation is plain; ``keyed``: whether those before have keys, −1 before the first."""
    if lines.f[line] == TXN:
        return bool(lines.shape[line] == MICROS)
    has_key = _has_key(lines, line)
    return has_key >= 0 and keyed in (-1, has_key)


@inlined
def _may_end(lines: Lines, asked: int, line: int, keyed: int, flat: Numbers) -> bool:
    """Whether a completion is plain, and that of its invocation."""
    f, shape = lines.f[line], lines.shape
    if lines.f[asked] != f:
        return False
    if lines.type[line] != OK:
        return bool(shape[asked] != NIL or shape[line] == NIL or shape[line] == NUMBER)
    if f == TXN:
        return shape[line] == MICROS and _fits_micros(lines, asked, line, flat)
    return _fits_object(lines, asked, line, keyed)


@compiled
def pair(
    lines: Lines,
    processes: Positions,
    process_count: int,
    functions: int,
    flat: Numbers,
    seq: Positions,
    op: Positions,
    source: Positions,
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
    for line in range(len(processes)):
        process = processes[line]
        if process < 0:
            continue
        type_, f, begun = lines.type[line], lines.f[line], under_way[process]
        if not (functions >> f) & 1 or (begun >= 0) == (type_ == INVOKE):
            return False
        if type_ == INVOKE:
            if not _may_begin(lines, line, keyed):
                return False
            keyed = _has_key(lines, line) if f != TXN else keyed
            if not has_begun[process]:
                has_begun[process], by_first[known] = True, process
                known += 1
            under_way[process] = line
            continue
        if not _may_end(lines, begun, line, keyed, flat):
            return False
        seq[begun], seq[line] = events, events + 1
        op[begun] = op[line] = operations
        source[begun], source[line] = begun, line if type_ == OK else begun
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
def gather(lines: Lines, source: Positions, flat: Numbers, offsets: Numbers, out: Numbers) -> None:
    """Copy the micro-operations of each line's source, one line after the other, to ``out``."""
    offset = 0
    for line in range(len(source)):
        if source[line] >= 0:
            start, end = lines.a[source[line]], lines.b[source[line]]
            for position in range(start, end):
                out[offset] = flat[position]
                offset += 1
        offsets[line + 1] = offset
