"""From the bytes of plain EDN lines to numbers, in compiled code.

A *plain line* is one map with the entries of an operation, whose value is nil, a whole number, a vector of them, or a
vector of micro-operations. Everything else is left to ``nemesis.history.foreign.lines``: a kernel never guesses. Each
line ends with a line feed, so no loop runs past the end of the text.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from nemesis.history.foreign.plain.columns import (
    ABSENT,
    BLANK,
    FLAT_END,
    FLAT_START,
    INDEX,
    INVOKE,
    MICRO_READ,
    MICRO_WRITE,
    MICROS,
    MISSING,
    NESTED,
    NIL,
    NOT_PLAIN,
    NUMBER,
    OK,
    OTHER,
    PAIR,
    PAIR_NIL,
    PLAIN,
    PROCESS,
    SHAPE,
    SPAN_END,
    SPAN_START,
    STATUS,
    TIME,
    TYPE,
    A,
    B,
    Bytes,
    C,
    F,
    Numbers,
)
from nemesis.history.foreign.plain.compiled import compiled, inlined


def _packed(word: str) -> int:
    """Return a word of at most seven letters as one number."""
    return int.from_bytes(word.encode(), "little")


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


@inlined
def _space(text: Bytes, offset: int) -> int:
    """Return where the next character stands that is neither space nor comma."""
    while text[offset] == 32 or text[offset] == 44 or text[offset] == 9 or text[offset] == 13:
        offset += 1
    return offset


@inlined
def _ends(character: int) -> bool:
    """Whether a word or a number ends before this character."""
    return character in (32, 44, 9, 13, _LF, _CLOSE, _STOP)


@inlined
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


@inlined
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


@inlined
def _keyword(text: Bytes, offset: int) -> tuple[int, int]:
    """Return the keyword at a position as ``_word`` does."""
    if text[offset] != _COLON:
        return 0, NOT_PLAIN
    return _word(text, offset + 1)


@compiled
def _string_end(text: Bytes, offset: int) -> int:
    """Return where the string ends that begins here; ``NOT_PLAIN`` if it has escapes or is open."""
    offset += 1
    while text[offset] != _QUOTE:
        if text[offset] == _LF or text[offset] == _BACKSLASH:
            return NOT_PLAIN
        offset += 1
    return offset + 1


@compiled
def _scalar_end(text: Bytes, offset: int) -> int:
    """Return where a string, keyword, word or whole number ends; ``NOT_PLAIN`` for other values."""
    if text[offset] == _QUOTE:
        return _string_end(text, offset)
    if text[offset] == _COLON:
        return _word(text, offset + 1)[1]
    if 48 <= text[offset] <= 57:
        return _number(text, offset)[1]
    return _word(text, offset)[1]


@compiled
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


@compiled
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


@compiled
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


@compiled
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


@inlined
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


@inlined
def _number_in(text: Bytes, offset: int, row: Numbers, column: int) -> int:
    """Read the number of an entry into its column, once; return where it ends."""
    if row[column] != MISSING:
        return NOT_PLAIN
    row[column], offset = _number(text, offset)
    return offset


@inlined
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


@inlined
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
        if row[SPAN_END] != 0:
            return NOT_PLAIN, used
        row[SPAN_START] = offset
        row[SPAN_END] = _balanced_end(text, offset)
        return row[SPAN_END], used
    if name == _KEY and kind == 0:
        return NOT_PLAIN, used
    return _scalar_end(text, offset), used


@inlined
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


@compiled
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


@compiled
def scan(text: Bytes, kind: int, rows: Numbers, flat: Numbers, first_number: int) -> int:
    """Read the lines of a text. Return how many numbers ``flat`` got; ``NOT_PLAIN`` for another number of lines.

    ``rows``: a row of ``COLUMNS`` zeros for each line. ``flat`` takes the micro-operations, from ``first_number`` on.
    """
    offset, line, used = 0, 0, first_number
    while offset < len(text):
        if line == len(rows):
            return NOT_PLAIN
        row = rows[line]
        for column in range(SHAPE + 1):
            row[column] = MISSING
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
    return used - first_number if line == len(rows) else NOT_PLAIN
