"""What the high watermarks of a stretch claim of logs, walked through once by compiled code.

A walk over a partition's rows keeps the last log end offset that each replica told of. A high watermark above that of a
member is no proof; one before which the stretch has nothing of a member claims what earlier stretches must have told.
Nothing is explained here, and in doubt nothing is proved: ``high_watermark`` looks again. So it does where a high
watermark names no maximal ISR.

To import this module takes more than half a second, for numba's sake: it is for stretches that are worth it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
from numba import njit, types

from checkers.segment import Mask, Numbers, Segment
from history.events import Kind

_NEVER: Final = -1
_FULL: Final = (-1, 0)
_FEW_BROKERS: Final = 8
_Marked = types.Array(types.boolean, 1, "A", readonly=True)
_Given = types.Array(types.int64, 1, "A", readonly=True)
_Taken = types.Array(types.int64, 1, "C")


@dataclass(frozen=True, slots=True)
class PartitionClaims:
    """What was found in the rows of one partition."""

    marks: int
    """How many high watermarks there are."""
    are_borne_out: bool
    """Whether all that can be compared with what replicas told in these rows are at most that."""
    needed: dict[int, int]
    """By broker, the log end offset that it must have told of before these rows, for the others to be true."""
    last: dict[int, int]
    """By broker, the place of the last row in which it told of the end of its log."""


def claims(part: Segment) -> PartitionClaims:
    """Walk through the rows of one partition."""
    alike = part.columns.uniform_list("maximal_isr", Kind.HIGH_WATERMARK)
    lists = () if alike is not None else ("maximal_isr",)
    part.columns.fetch(("node", "log_end_offset", "high_watermark", *lists))
    is_mark = part.is_kind(Kind.HIGH_WATERMARK)
    places = np.flatnonzero(is_mark)
    starts, stops, items = _members(part, places) if alike is None else _repeated(alike, places)
    nodes, (ends, have_end) = part.numbers("node"), part.columns.stored("log_end_offset")
    marks, have_mark = part.columns.stored("high_watermark")
    found, room = _FULL, _FEW_BROKERS
    while found == _FULL:
        brokers, last, needed = np.zeros((3, room), dtype=np.int64)
        last[:] = _NEVER
        found = _walk(
            is_mark,
            nodes,
            ends,
            have_end,
            marks,
            have_mark,
            starts,
            stops,
            items,
            brokers,
            last,
            needed,
        )
        room *= 2
    count, is_proved = found
    told = {int(brokers[at]): int(last[at]) for at in range(count) if last[at] != _NEVER}
    missing = {int(brokers[at]): int(needed[at]) for at in range(count) if needed[at] > 0}
    return PartitionClaims(len(places), bool(is_proved), missing, told)


def _repeated(members: list[int], places: Numbers) -> tuple[Numbers, Numbers, Numbers]:
    """As ``_members``, where all rows have the same."""
    starts, stops = np.broadcast_to(np.array([[0], [len(members)]]), (2, len(places)))
    return starts, stops, np.array(members, dtype=np.int64)


def _members(part: Segment, places: Numbers) -> tuple[Numbers, Numbers, Numbers]:
    """The maximal ISRs of these rows, one after the other, and where in that each begins and ends."""
    if not len(places) or "maximal_isr" not in part.columns.names:
        nothing = np.zeros(len(places), dtype=np.int64)
        return nothing, nothing, np.zeros(0, dtype=np.int64)
    column = part.take(places).columns.arrow("maximal_isr").combine_chunks()
    lists = column.chunk(0) if isinstance(column, pa.ChunkedArray) else column
    offsets = lists.offsets.to_numpy().astype(np.int64)
    return offsets[:-1], offsets[1:], lists.values.to_numpy(zero_copy_only=False)


@njit(cache=True)  # type: ignore[untyped-decorator]
def _slot(broker: int, brokers: Numbers, count: int) -> int:
    """Where a broker is among the first ``count``, or ``count``."""
    for at in range(count):
        if brokers[at] == broker:
            return at
    return count


@njit(  # type: ignore[untyped-decorator]
    types.UniTuple(types.int64, 2)(
        _Marked, _Given, _Given, _Marked, _Given, _Marked, *[_Given] * 3, *[_Taken] * 3
    ),
    cache=True,
)
def _walk(
    is_mark: Mask,
    node: Numbers,
    end: Numbers,
    has_end: Mask,
    mark: Numbers,
    has_mark: Mask,
    starts: Numbers,
    stops: Numbers,
    items: Numbers,
    brokers: Numbers,
    last: Numbers,
    needed: Numbers,
) -> tuple[int, int]:
    """Fill ``brokers``, ``last`` and ``needed``; return how many brokers there are and whether nothing is in doubt;
    ``_FULL`` if there is no room for so many.
    """
    count, place, is_proved = 0, 0, 1
    for row in range(len(is_mark)):
        if not is_mark[row]:
            if not has_end[row] or end[row] < 0:
                continue
            at = _slot(node[row], brokers, count)
            if at == len(brokers):
                return _FULL
            count = max(count, at + 1)
            brokers[at], last[at] = node[row], row
            continue
        if starts[place] == stops[place] or not has_mark[row]:
            is_proved = 0
        for item in range(starts[place], stops[place]):
            at = _slot(items[item], brokers, count)
            if at == len(brokers):
                return _FULL
            count = max(count, at + 1)
            brokers[at] = items[item]
            if items[item] == node[row] and has_end[row] and end[row] >= 0:
                held = end[row]
            elif last[at] != _NEVER:
                held = end[last[at]]
            else:
                needed[at] = max(needed[at], mark[row])
                continue
            if mark[row] > held:
                is_proved = 0
        place += 1
    return count, is_proved
