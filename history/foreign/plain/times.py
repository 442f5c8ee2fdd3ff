"""The times of the lines of a plain history, as ``operation_order`` gives them, in compiled code."""

from __future__ import annotations

import numpy as np

from nemesis.history.foreign.operation_order import LINE_NS
from nemesis.history.foreign.plain.columns import INVOKE, Lines, Numbers, Positions
from nemesis.history.foreign.plain.compiled import compiled
from nemesis.history.foreign.problems import Damage, Problems


def times_of(lines: Lines, number: Positions, problems: Problems) -> Numbers | None:
    """Return the time of each line in ns, each later than the one before; None if lines are not in order.

    ``number``: of each line in the file. Times that fall are noted in ``problems``.
    """
    time, index = lines.time, lines.indexes
    has_index, is_timed = bool((index >= 0).any()), time >= 0
    if has_index and (index[0] not in (0, 1) or not _are_consecutive(index)):
        return None
    if is_timed.any() != is_timed.all():
        return None
    if not has_index and (_falls(time) or _is_order_open(lines)):
        return None
    if _falls(time):
        for fallen in number[np.flatnonzero(np.diff(time) < 0) + 1].tolist():
            problems.note(Damage.TIME_FALLS, fallen)
    times = np.empty(len(time), dtype=np.int64)
    _make_later(time if is_timed.any() else number * np.int64(LINE_NS), times)
    return times


@compiled
def _are_consecutive(numbers: Numbers) -> bool:
    others = 0
    for position in range(1, len(numbers)):
        others += numbers[position] != numbers[position - 1] + 1
    return others == 0


@compiled
def _falls(numbers: Numbers) -> bool:
    falls = 0
    for position in range(1, len(numbers)):
        falls += numbers[position] < numbers[position - 1]
    return falls > 0


@compiled
def _make_later(stated: Numbers, times: Numbers) -> None:
    """Fill ``times`` with what is stated, or 1 ns after the time before if that is later."""
    times[0] = stated[0]
    for position in range(1, len(stated)):
        times[position] = max(stated[position], times[position - 1] + 1)


def _is_order_open(lines: Lines) -> bool:
    """Whether a line may begin an operation at the time at which the line before it ends another one."""
    type_, time = lines.type, lines.time
    is_open = (type_[:-1] != INVOKE) & (type_[1:] <= INVOKE) & (time[:-1] == time[1:])
    return bool((is_open & (time[1:] >= 0)).any())
