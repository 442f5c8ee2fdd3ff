"""How the lines of a plain history stand in memory, and what their numbers mean.

The kernel that reads a chunk gives each line a row of numbers. Of all lines, columns are kept, each as small as it can
be.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

Numbers = np.ndarray[Any, np.dtype[np.int64]]
Codes = np.ndarray[Any, np.dtype[np.int8]]
Positions = np.ndarray[Any, np.dtype[np.int32]]
Bytes = np.ndarray[Any, np.dtype[np.uint8]]

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
is where the error of a plain line stands in the text, or the whole of another line; it ends at 0 without either. Of
the columns behind the shape, which most lines do not fill, only those that a value has are written."""
FLAT_START, FLAT_END = A, B
"""Of a value of micro-operations: where they stand among those of all lines."""
COLUMNS: Final = 12
OBJECT, LISTS, REGISTERS = range(3)
"""How the values of a workload are written."""
OTHER, BLANK, PLAIN = range(3)
"""The status of a line."""
NIL, NUMBER, PAIR, PAIR_NIL, NESTED, MICROS = range(6)
"""The shape of a value: nil, ``a``, ``[a b]``, ``[a nil]``, ``[a [b c]]``, micro-operations."""
INVOKE, OK, FAIL, INFO = range(4)
READ, WRITE, CAS, TXN = range(4)
MISSING: Final = -1
"""The number of an entry that a line does not have, and the count of a read without an answer."""
ABSENT: Final = -2
"""The count of a read that states no answer, not even nil, until ``scanning`` has looked at its line."""
NOT_PLAIN: Final = -1
MICRO_READ, MICRO_WRITE = 0, 1


class Lines(NamedTuple):
    """The lines of a text, a column each. Those of ``a`` to ``c`` that no line fills take no memory."""

    status: Codes
    type: Codes
    f: Codes
    shape: Codes
    process: Numbers
    time: Numbers
    indexes: Numbers
    a: Numbers
    b: Numbers
    c: Numbers


KEPT: Final = (STATUS, TYPE, F, SHAPE, PROCESS, TIME, INDEX, A, B, C)
"""The columns of a row that ``Lines`` keeps, in its order."""


def zeroed_lines(count: int) -> Lines:
    """Return columns of zeros for this many lines. Memory that is never written to is never taken."""

    def codes() -> Codes:
        return np.zeros(count, dtype=np.int8)

    def numbers() -> Numbers:
        return np.zeros(count, dtype=np.int64)

    return Lines(
        *(codes(), codes(), codes(), codes()),
        *(numbers(), numbers(), numbers(), numbers(), numbers(), numbers()),
    )
