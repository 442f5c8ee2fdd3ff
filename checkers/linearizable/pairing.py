"""Invocations and completions of one segment joined in one compiled walk, where numpy would pick each column by number.

The walk knows the plain case: each operation begins and ends once, in this order, or has only one of both. In any
other it gives up, and ``joining`` joins in its general way. It lets go of Python's lock, so that two threads read at
once.

To import this module takes more than half a second, for numba's sake: it is for segments that are worth it.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numba import njit, types

from nemesis.checkers.framework.segment import Numbers
from nemesis.checkers.linearizable.object_operations import (
    INFO,
    INVOKE,
    NEVER,
    UNSET,
    Codes,
    Operations,
    Rows,
    is_one_number,
)

_NOT_MET: Final = -1
_OVER: Final = -2
_GIVEN_UP: Final = (-1, 0)
_Words = types.Array(types.int8, 1, "A", readonly=True)
_Given = types.Array(types.int64, 1, "A", readonly=True)
_Written = types.Array(types.int8, 1, "C")
_Taken = types.Array(types.int64, 1, "C")


def joined(rows: Rows, lowest: int, span: int) -> tuple[Operations, Numbers] | None:
    """Join rows by the numbers of their operations, which are less than ``span`` above the lowest.

    Return whole operations, in the order of their ends, and the positions of rows without their other half; None if
    the rows are not plain.
    """
    begun = np.full(span, _NOT_MET)
    room = np.count_nonzero(rows.outcome != INVOKE)
    words = [np.empty(room, dtype=np.int8) for _ in range(2)]
    numbers = [np.empty(room, dtype=np.int64) for _ in range(5)]
    is_one_key = is_one_number(rows.key)
    key = np.empty(0 if is_one_key else room, dtype=np.int64)
    alone = np.empty(room, dtype=np.int64)
    given = (rows.f, rows.outcome, rows.key, rows.value, rows.time, rows.row, rows.op)
    count, ends = _join(*given, lowest, begun, *words, key, *numbers, alone)
    if count < 0:
        return None
    key = np.broadcast_to(rows.key[0], count) if is_one_key else key
    columns: list[Any] = [*words, key, *numbers]
    complete = Operations(*(column[:count] for column in columns))
    return complete, np.sort(np.concatenate([alone[:ends], begun[begun >= 0]]))


@njit(  # type: ignore[untyped-decorator]
    types.UniTuple(types.int64, 2)(
        *[_Words] * 2, *[_Given] * 5, types.int64, _Taken, *[_Written] * 2, *[_Taken] * 7
    ),
    cache=True,
    nogil=True,
)
def _join(
    f: Codes,
    outcome: Codes,
    key: Numbers,
    value: Numbers,
    time: Numbers,
    row: Numbers,
    op: Numbers,
    lowest: int,
    begun: Numbers,
    whole_f: Codes,
    whole_outcome: Codes,
    whole_key: Numbers,
    whole_value: Numbers,
    start: Numbers,
    finish: Numbers,
    invoked: Numbers,
    completed: Numbers,
    alone: Numbers,
) -> tuple[int, int]:
    """Fill the arrays; return how many whole operations and how many ends without a beginning there are."""
    count, ends = 0, 0
    for end in range(len(outcome)):
        which = op[end] - lowest
        begin = begun[which]
        if outcome[end] == INVOKE:
            if begin != _NOT_MET:
                return _GIVEN_UP
            begun[which] = end
            continue
        if begin == _OVER:
            return _GIVEN_UP
        begun[which] = _OVER
        if begin == _NOT_MET:
            alone[ends] = end
            ends += 1
            continue
        whole_f[count], whole_outcome[count] = f[begin], outcome[end]
        if len(whole_key):
            whole_key[count] = key[begin]
        whole_value[count] = value[begin] if value[end] == UNSET else value[end]
        start[count] = time[begin]
        finish[count] = NEVER if outcome[end] == INFO else time[end]
        invoked[count], completed[count] = row[begin], row[end]
        count += 1
    return count, ends
