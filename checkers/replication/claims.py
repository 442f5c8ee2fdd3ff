"""Decides most large segments of hw-bounded without a second look: what they require of earlier segments.

The rows of a segment are in the order of the history; ``high_watermark`` says why that order may be trusted. A walk
over a partition's rows keeps each replica's last reported log end offset. It compares each high watermark with
the log end offset of every member of the maximal ISR:

* The member has reported in this segment, or is the leader, whose event carries its own: the comparison is made here.
* It has not: its log end offset is exactly the value that the earlier segments carry here, for all high watermarks
  before its first report. They all meet the same value, so the greatest of them decides (``needed``).

``HwBounded.shortcut`` accepts a segment if nothing compared here failed, and if every carried log end offset is at
least the ``needed`` of its broker. Then ``reduce`` would find nothing: it compares the same values, and power cuts only
excuse what it finds. Everything in doubt goes to ``reduce``: a comparison that failed, a high watermark without a value
or without a maximal ISR. ``TestTheProof`` in ``tests/checkers/test_high_watermark.py`` compares both ways on histories
of Hypothesis.

To import this module takes more than half a second, because of numba: only large segments are worth it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from nemesis.checkers.framework.segment import Mask, Numbers, Segment
from nemesis.checkers.replication.replica_rows import brokers_in
from nemesis.history.events import Kind
from nemesis.history.lean_numba import njit, types

_NEVER: Final = -1
_ROOM: Final = 1024
"""Brokers below this number, less one, are found by their number."""
_FULL: Final = (-1, 0)
_Mask = types.Array(types.boolean, 1, "A", readonly=True)
_Given = types.Array(types.int64, 1, "A", readonly=True)
_Taken = types.Array(types.int64, 1, "C")


@dataclass(frozen=True, slots=True)
class PartitionClaims:
    """What the high watermarks of one partition require, in one segment."""

    marks: int
    """How many high watermarks there are."""
    are_borne_out: bool
    """Whether every high watermark is at most the log end offsets that members reported before it in these rows."""
    needed: dict[int, int]
    """By broker without an earlier report in these rows, the log end offset that earlier segments must carry for it."""
    last: dict[int, int]
    """By broker, the index of the last row in which it reported its log end offset."""


def claims(part: Segment) -> PartitionClaims:
    """Walk through the rows of one partition."""
    alike = part.columns.uniform_list("maximal_isr", Kind.HIGH_WATERMARK)
    lists = () if alike is not None else ("maximal_isr",)
    part.columns.fetch(("node", "log_end_offset", "high_watermark", *lists))
    nodes, (starts, stops, items) = part.numbers("node"), _members(part, alike)
    columns = (
        *part.columns.stored("log_end_offset"),
        *part.columns.stored("high_watermark"),
        starts,
        stops,
    )
    is_mark, brokers = part.is_kind(Kind.HIGH_WATERMARK), np.arange(_ROOM) - 1
    last, needed = np.full(_ROOM, _NEVER), np.zeros(_ROOM, dtype=np.int64)
    walked = _walk(is_mark, nodes, *columns, items, last, needed)
    if walked == _FULL:
        brokers = np.unique(np.concatenate([[_NEVER], nodes, items]))
        nodes, items = np.searchsorted(brokers, nodes) - 1, np.searchsorted(brokers, items) - 1
        last, needed = np.full(len(brokers), _NEVER), np.zeros(len(brokers), dtype=np.int64)
        walked = _walk(is_mark, nodes, *columns, items, last, needed)
    marks, is_proved = walked
    return PartitionClaims(
        marks,
        bool(is_proved),
        needed={int(brokers[slot]): int(needed[slot]) for slot in np.flatnonzero(needed > 0)},
        last={int(brokers[slot]): int(last[slot]) for slot in np.flatnonzero(last != _NEVER)},
    )


def tracing(nodes: Numbers) -> frozenset[int]:
    """The brokers among these nodes."""
    met = np.zeros(_ROOM, dtype=np.int64)
    if not _meet(nodes, met):
        return frozenset(brokers_in(nodes))
    return frozenset((np.flatnonzero(met) - 1).tolist())


def _members(part: Segment, alike: list[int] | None) -> tuple[Numbers, Numbers, Numbers]:
    """Return where each row's maximal ISR begins and ends in the third array, which has all members in row order."""
    if alike is not None:
        starts, stops = np.broadcast_to(np.array([[0], [len(alike)]]), (2, len(part)))
        return starts, stops, np.array(alike, dtype=np.int64)
    if "maximal_isr" not in part.columns.names:
        nothing = np.broadcast_to(np.zeros(1, dtype=np.int64), len(part))
        return nothing, nothing, np.zeros(0, dtype=np.int64)
    column = part.columns.arrow("maximal_isr").combine_chunks()
    lists = column.chunk(0) if isinstance(column, pa.ChunkedArray) else column
    offsets = lists.offsets.to_numpy().astype(np.int64)
    return offsets[:-1], offsets[1:], lists.values.to_numpy(zero_copy_only=False)


@njit(types.boolean(_Given, _Taken), cache=True)  # type: ignore[untyped-decorator]
def _meet(nodes: Numbers, met: Numbers) -> bool:
    """Mark the nodes, of which there is room for ``len(met)``; return whether there was."""
    for node in nodes:
        if node < -1 or node + 1 >= len(met):
            return False
        met[node + 1] = 1
    return True


@njit(  # type: ignore[untyped-decorator]
    types.UniTuple(types.int64, 2)(
        _Mask, _Given, _Given, _Mask, _Given, _Mask, *[_Given] * 3, *[_Taken] * 2
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
    last: Numbers,
    needed: Numbers,
) -> tuple[int, int]:
    """Fill ``last`` and ``needed``, in which broker 0 has the second place; return how many high watermarks there are
    and whether nothing is in doubt; ``_FULL`` if there is no room for a broker.
    """
    marks, is_proved, room = 0, 1, len(last)
    for row in range(len(is_mark)):
        slot = node[row] + 1
        if slot < 0 or slot >= room:
            return _FULL
        if not is_mark[row]:
            if has_end[row] and end[row] >= 0:
                last[slot] = row
            continue
        marks += 1
        if starts[row] == stops[row] or not has_mark[row]:
            is_proved = 0
        for item in range(starts[row], stops[row]):
            member = items[item] + 1
            if member < 0 or member >= room:
                return _FULL
            if member == slot and has_end[row] and end[row] >= 0:
                held = end[row]
            elif last[member] != _NEVER:
                held = end[last[member]]
            else:
                needed[member] = max(needed[member], mark[row])
                continue
            if mark[row] > held:
                is_proved = 0
    return marks, is_proved
