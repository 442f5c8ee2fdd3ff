"""The kernels of ``plain_lines``: from the bytes of plain EDN lines to numbers, compiled by numba.

A *plain line* is one map with the entries of an operation, whose value is nil, a whole number, a vector of them, or a
vector of micro-operations. Everything else is left to ``nemesis.history.foreign.lines``: a kernel never guesses. Each
line ends with a line feed, so no loop runs past the end of the text.

To import this module takes half a second, for numba's sake: it is for files that are worth it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, ParamSpec, TypeVar, cast

import numpy as np
from numba import njit

P = ParamSpec("P")
R = TypeVar("R")
Numbers = np.ndarray[Any, np.dtype[np.int64]]
Bytes = np.ndarray[Any, np.dtype[np.uint8]]


def _compiled(function: Callable[P, R]) -> Callable[P, R]:
    """Return the function compiled, and free of Python's lock, for the types that it is called with."""
    return cast("Callable[P, R]", njit(cache=True, nogil=True)(function))


def _packed(word: str) -> int:
    """Return a word of at most seven letters as one number."""
    return int.from_bytes(word.encode(), "little")


(
    STATUS,
    TYPE,
    PROCESS,
    F,
    TIME,
    INDEX,
    SHAPE,
    A,
    B,
    C,
    SPAN_START,
    SPAN_END,
) = range(12)
"""The columns of a line: ``A`` to ``C`` are the numbers of its value, in the order in which they are written. The span
is where the error of a plain line stands in the text, or the whole of another line."""
FLAT_START, FLAT_END = A, B
"""Of a value of micro-operations: where they stand among those of all lines."""
COLUMNS: Final = 12
OTHER, BLANK, PLAIN = range(3)
"""The status of a line."""
NIL, NUMBER, PAIR, PAIR_NIL, NESTED, MICROS = range(6)
"""The shape of a value: nil, ``a``, ``[a b]``, ``[a nil]``, ``[a [b c]]``, micro-operations."""
INVOKE, OK, FAIL, INFO = range(4)
READ, WRITE, CAS, TXN = range(4)
MISSING: Final = -1
"""The number of an entry that a line does not have, and the count of a read without an answer."""
ABSENT: Final = -2
"""The count of a read that states no answer, not even nil, until ``_is_answered``."""
NOT_PLAIN: Final = -1
MICRO_READ, MICRO_WRITE = 0, 1

_TYPE, _PROCESS, _F, _VALUE = map(_packed, ("type", "process", "f", "value"))
_TIME, _INDEX, _ERROR, _KEY = map(_packed, ("time", "index", "error", "key"))
_INVOKE, _OK, _FAIL, _INFO = map(_packed, ("invoke", "ok", "fail", "info"))
_READ, _WRITE, _CAS, _TXN = map(_packed, ("read", "write", "cas", "txn"))
_APPEND, _W, _R, _NIL = map(_packed, ("append", "w", "r", "nil"))
_TAG = np.frombuffer(b"#jepsen.history.Op", dtype=np.uint8)
_LONGEST: Final = 7
_DIGITS: Final = 18
"""More may be a number that stands for a name."""
_QUOTE, _BACKSLASH, _COLON, _HASH, _SEMICOLON = 34, 92, 58, 35, 59
_OPEN, _CLOSE, _BEGIN, _STOP, _PAREN, _PAREN_STOP = 91, 93, 123, 125, 40, 41
_LF: Final = 10


@_compiled
def _space(text: Bytes, offset: int) -> int:
    """Return where the next character stands that is neither space nor comma."""
    while text[offset] == 32 or text[offset] == 44 or text[offset] == 9 or text[offset] == 13:
        offset += 1
    return offset


@_compiled
def _ends(character: int) -> bool:
    """Whether a word or a number ends before this character."""
    return character in (32, 44, 9, 13, _LF, _CLOSE, _STOP)


@_compiled
def _number(text: Bytes, offset: int) -> tuple[int, int]:
    """Return the whole number at a position, and where it ends; ``NOT_PLAIN`` if another value is there."""
    value: Any = 0
    start = offset
    while 48 <= text[offset] <= 57:
        value = value * 10 + np.int64(text[offset]) - 48
        offset += 1
    if offset == start or offset - start > _DIGITS or not _ends(text[offset]):
        return 0, NOT_PLAIN
    return value, offset


@_compiled
def _word(text: Bytes, offset: int) -> tuple[int, int]:
    """Return the word at a position, packed (0 if it is long), and where it ends; ``NOT_PLAIN`` without a word."""
    word: Any = 0
    start = offset
    while (
        97 <= text[offset] <= 122
        or 65 <= text[offset] <= 90
        or (
            offset > start
            and (48 <= text[offset] <= 57 or text[offset] == 45 or text[offset] == 95)
        )
    ):
        if offset - start < _LONGEST:
            word |= np.int64(text[offset]) << np.int64(8 * (offset - start))
        offset += 1
    if offset == start or not _ends(text[offset]):
        return 0, NOT_PLAIN
    return (word if offset - start <= _LONGEST else 0), offset


@_compiled
def _keyword(text: Bytes, offset: int) -> tuple[int, int]:
    """Return the keyword at a position as ``_word`` does."""
    if text[offset] != _COLON:
        return 0, NOT_PLAIN
    return _word(text, offset + 1)


@_compiled
def _string_end(text: Bytes, offset: int) -> int:
    """Return where the string ends that begins here; ``NOT_PLAIN`` if it has escapes or is open."""
    offset += 1
    while text[offset] != _QUOTE:
        if text[offset] == _LF or text[offset] == _BACKSLASH:
            return NOT_PLAIN
        offset += 1
    return offset + 1


@_compiled
def _scalar_end(text: Bytes, offset: int) -> int:
    """Return where a string, keyword, word or whole number ends; ``NOT_PLAIN`` for other values."""
    if text[offset] == _QUOTE:
        return _string_end(text, offset)
    if text[offset] == _COLON:
        return _word(text, offset + 1)[1]
    if 48 <= text[offset] <= 57:
        return _number(text, offset)[1]
    return _word(text, offset)[1]


@_compiled
def _balanced_end(text: Bytes, offset: int) -> int:
    """Return where a value ends whose brackets are balanced; the caller reads it with the full grammar."""
    depth = 0
    while True:
        character = text[offset]
        if character in (_LF, _HASH, _SEMICOLON, _BACKSLASH):
            return NOT_PLAIN
        if character in (_OPEN, _BEGIN, _PAREN):
            depth += 1
            offset += 1
        elif character in (_CLOSE, _STOP, _PAREN_STOP):
            depth -= 1
            offset += 1
            if depth < 0:
                return NOT_PLAIN
        elif character == _QUOTE:
            offset = _string_end(text, offset)
            if offset < 0:
                return NOT_PLAIN
        elif depth > 0 and _ends(character):
            offset += 1
        else:
            while not (
                _ends(text[offset]) or text[offset] in (_OPEN, _BEGIN, _PAREN, _PAREN_STOP, _QUOTE)
            ):
                if text[offset] in (_HASH, _SEMICOLON, _BACKSLASH):
                    return NOT_PLAIN
                offset += 1
        if depth == 0:
            return offset


@_compiled
def _object(text: Bytes, offset: int, row: Numbers) -> int:
    """Read the value of an operation on an object; return where it ends."""
    if text[offset] != _OPEN:
        word, end = _word(text, offset)
        if end > 0:
            row[SHAPE] = NIL
            return end if word == _NIL else NOT_PLAIN
        row[SHAPE] = NUMBER
        row[A], end = _number(text, offset)
        return end
    row[A], offset = _number(text, _space(text, offset + 1))
    if offset < 0:
        return NOT_PLAIN
    offset = _space(text, offset)
    if text[offset] == _OPEN:
        row[SHAPE] = NESTED
        row[B], offset = _number(text, _space(text, offset + 1))
        if offset < 0:
            return NOT_PLAIN
        row[C], offset = _number(text, _space(text, offset))
        if offset < 0:
            return NOT_PLAIN
        offset = _space(text, offset)
        if text[offset] != _CLOSE:
            return NOT_PLAIN
        offset += 1
    else:
        word, end = _word(text, offset)
        row[SHAPE] = PAIR_NIL
        if end < 0:
            row[SHAPE] = PAIR
            row[B], end = _number(text, offset)
        elif word != _NIL:
            return NOT_PLAIN
        if end < 0:
            return NOT_PLAIN
        offset = end
    offset = _space(text, offset)
    return offset + 1 if text[offset] == _CLOSE else NOT_PLAIN


@_compiled
def _read_answer(
    text: Bytes, offset: int, is_lists: bool, flat: Numbers, used: int
) -> tuple[int, int]:
    """Read what a read returned, from its count on; return where it ends, and the used numbers of ``flat``."""
    if text[offset] == _CLOSE:  # [:r k]
        flat[used] = ABSENT
        return offset, used + 1
    word, end = _word(text, offset)
    if end > 0:
        flat[used] = MISSING
        return (end if word == _NIL else NOT_PLAIN), used + 1
    if not is_lists:
        flat[used] = 1
        flat[used + 1], end = _number(text, offset)
        return end, used + 2
    if text[offset] != _OPEN:
        return NOT_PLAIN, used
    count = used
    used += 1
    offset = _space(text, offset + 1)
    while text[offset] != _CLOSE:
        flat[used], offset = _number(text, offset)
        if offset < 0:
            return NOT_PLAIN, used
        used += 1
        offset = _space(text, offset)
    flat[count] = used - count - 1
    return offset + 1, used


@_compiled
def _micros(text: Bytes, offset: int, is_lists: bool, flat: Numbers, used: int) -> tuple[int, int]:
    """Read a vector of micro-operations into ``flat``; return where it ends, and the used numbers."""
    if text[offset] != _OPEN:
        return NOT_PLAIN, used
    offset = _space(text, offset + 1)
    while text[offset] != _CLOSE:
        if text[offset] != _OPEN:
            return NOT_PLAIN, used
        function, offset = _keyword(text, _space(text, offset + 1))
        if offset < 0:
            return NOT_PLAIN, used
        key, offset = _number(text, _space(text, offset))
        if offset < 0:
            return NOT_PLAIN, used
        flat[used + 1] = key
        offset = _space(text, offset)
        if function == _R:
            flat[used] = MICRO_READ
            offset, used = _read_answer(text, offset, is_lists, flat, used + 2)
        elif function == (_APPEND if is_lists else _W):
            flat[used], flat[used + 2] = MICRO_WRITE, 1
            flat[used + 3], offset = _number(text, offset)
            used += 4
        else:
            return NOT_PLAIN, used
        if offset < 0:
            return NOT_PLAIN, used
        offset = _space(text, offset)
        if text[offset] != _CLOSE:
            return NOT_PLAIN, used
        offset = _space(text, offset + 1)
    return offset + 1, used


@_compiled
def _value(
    text: Bytes, offset: int, row: Numbers, kind: int, flat: Numbers, used: int
) -> tuple[int, int]:
    """Read a value; ``kind``: 0 for objects, 1 for lists, 2 for registers in transactions."""
    if kind == 0:
        return _object(text, offset, row), used
    word, end = _word(text, offset)
    if end > 0:
        row[SHAPE] = NIL
        return (end if word == _NIL else NOT_PLAIN), used
    row[SHAPE] = MICROS
    row[FLAT_START] = used
    offset, used = _micros(text, offset, kind == 1, flat, used)
    row[FLAT_END] = used
    return offset, used


@_compiled
def _number_in(text: Bytes, offset: int, row: Numbers, column: int) -> int:
    """Read the number of an entry into its column, once; return where it ends."""
    if row[column] != MISSING:
        return NOT_PLAIN
    row[column], offset = _number(text, offset)
    return offset


@_compiled
def _code_in(text: Bytes, offset: int, row: Numbers, column: int) -> int:
    """Read the keyword of a type or function into its column, once; return where it ends."""
    word, offset = _keyword(text, offset)
    if offset < 0 or row[column] != MISSING:
        return NOT_PLAIN
    words = (_INVOKE, _OK, _FAIL, _INFO) if column == TYPE else (_READ, _WRITE, _CAS, _TXN)
    for code in range(4):
        if words[code] == word:
            row[column] = code
            return offset
    return NOT_PLAIN


@_compiled
def _entry(
    text: Bytes, offset: int, row: Numbers, kind: int, flat: Numbers, used: int
) -> tuple[int, int]:
    """Read an entry of an operation; return where it ends, and the used numbers of ``flat``."""
    name, offset = _keyword(text, offset)
    if offset < 0:
        return NOT_PLAIN, used
    offset = _space(text, offset)
    if name == _TYPE:
        return _code_in(text, offset, row, TYPE), used
    if name == _F:
        return _code_in(text, offset, row, F), used
    if name == _PROCESS:
        return _number_in(text, offset, row, PROCESS), used
    if name == _TIME:
        return _number_in(text, offset, row, TIME), used
    if name == _INDEX:
        return _number_in(text, offset, row, INDEX), used
    if name == _VALUE:
        if row[SHAPE] != MISSING:
            return NOT_PLAIN, used
        return _value(text, offset, row, kind, flat, used)
    if name == _ERROR:
        if row[SPAN_START] != MISSING:
            return NOT_PLAIN, used
        row[SPAN_START] = offset
        row[SPAN_END] = _balanced_end(text, offset)
        return row[SPAN_END], used
    if name == _KEY and kind == 0:
        return NOT_PLAIN, used
    return _scalar_end(text, offset), used


@_compiled
def _line(
    text: Bytes, offset: int, row: Numbers, kind: int, flat: Numbers, used: int
) -> tuple[int, int]:
    """Read a line; return where it ends (``NOT_PLAIN`` if it is not plain), and the used numbers of ``flat``."""
    offset = _space(text, offset)
    if text[offset] == _LF:
        row[STATUS] = BLANK
        return offset, used
    if text[offset] == _HASH:
        for character in _TAG:
            if text[offset] != character:
                return NOT_PLAIN, used
            offset += 1
        offset = _space(text, offset)
    if text[offset] != _BEGIN:
        return NOT_PLAIN, used
    offset = _space(text, offset + 1)
    while text[offset] != _STOP:
        offset, used = _entry(text, offset, row, kind, flat, used)
        if offset < 0:
            return NOT_PLAIN, used
        offset = _space(text, offset)
    offset = _space(text, offset + 1)
    if text[offset] != _LF or row[TYPE] < 0 or row[PROCESS] < 0 or row[F] < 0:
        return NOT_PLAIN, used
    if row[SHAPE] == MISSING:
        row[SHAPE] = NIL
    if row[SHAPE] == MICROS and not _is_answered(row, flat):
        return NOT_PLAIN, used
    row[STATUS] = PLAIN
    return offset, used


@_compiled
def _is_answered(row: Numbers, flat: Numbers) -> bool:
    """Give reads of an ``ok`` their counts: nil is an empty answer.

    False: an invocation has an answer, or the read of an ``ok`` states none at all.
    """
    offset = row[FLAT_START]
    while offset < row[FLAT_END]:
        if flat[offset] == MICRO_READ:
            if flat[offset + 2] == ABSENT:
                if row[TYPE] == OK:
                    return False
                flat[offset + 2] = MISSING
            if row[TYPE] == OK and flat[offset + 2] == MISSING:
                flat[offset + 2] = 0
            if row[TYPE] == INVOKE and flat[offset + 2] != MISSING:
                return False
        offset += 3 + max(flat[offset + 2], 0)
    return True


@_compiled
def lines(text: Bytes, start: int, stop: int) -> int:
    """Return how many lines end from ``start`` to ``stop``."""
    count = 0
    for offset in range(start, stop):
        count += text[offset] == _LF
    return count


@_compiled
def scan(
    text: Bytes,
    start: int,
    stop: int,
    kind: int,
    rows: Numbers,
    first_row: int,
    flat: Numbers,
    first_number: int,
) -> int:
    """Read the lines of a text from ``start`` to ``stop``, where a line ends. Return how many numbers ``flat`` got.

    ``rows``: a row of ``COLUMNS`` for each line, from ``first_row`` on. ``flat`` takes the micro-operations, from
    ``first_number`` on.
    """
    offset, line, used = start, first_row, first_number
    while offset < stop:
        row = rows[line]
        row[:] = MISSING
        row[STATUS] = OTHER
        end, filled = _line(text, offset, row, kind, flat, used)
        used = filled if end >= 0 else used
        end = max(end, offset)
        while text[end] != _LF:
            end += 1
        if row[STATUS] == OTHER:
            row[SPAN_START], row[SPAN_END] = offset, end
        offset = end + 1
        line += 1
    return used - first_number


@_compiled
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


@_compiled
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


@_compiled
def _fits_object(asked: Numbers, answered: Numbers, has_key: int) -> bool:
    """Whether an ``ok`` on an object can be the answer to its invocation."""
    if _has_key(answered) != has_key or (has_key and asked[A] != answered[A]):
        return False
    is_same = asked[A] == answered[A] and asked[B] == answered[B] and asked[C] == answered[C]
    return bool(asked[F] == READ or is_same)


@_compiled
def _may_begin(row: Numbers, keyed: int) -> bool:
    """Whether an invocation is plain; ``keyed``: whether those before have keys, −1 before the first."""
    if row[F] == TXN:
        return bool(row[SHAPE] == MICROS)
    has_key = _has_key(row)
    return has_key >= 0 and keyed in (-1, has_key)


@_compiled
def _may_end(asked: Numbers, row: Numbers, keyed: int, flat: Numbers) -> bool:
    """Whether a completion is plain, and that of its invocation."""
    if asked[F] != row[F]:
        return False
    if row[TYPE] != OK:
        return bool(asked[SHAPE] != NIL or row[SHAPE] == NIL or row[SHAPE] == NUMBER)
    if row[F] == TXN:
        return row[SHAPE] == MICROS and _fits_micros(asked, row, flat)
    return _fits_object(asked, row, keyed)


@_compiled
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


@_compiled
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
