"""How the lines of a plain history stand in memory: a row of numbers for each, and what the numbers mean."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

Numbers = np.ndarray[Any, np.dtype[np.int64]]
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
