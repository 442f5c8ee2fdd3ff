"""What may be put wrong in what clients record: one row is changed, as in ``anomalies``.

A record that is lost at the end is also one that is not seen and an offset with two values; the property named here is
one of those that must be found broken.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

import numpy as np
import pyarrow as pa

from benchmarks.histories.anomalies import Anomaly, Replacement, Spoiler, TableKind
from nemesis.history.events import Kind

FOREIGN: Final = 1 << 62
"""A value that nobody sends."""
Records = tuple[list[int], list[int]]
"""Offsets and values of a poll."""


def _operations(table: pa.Table, f: str) -> Any:
    """Which rows are answers to these operations."""
    names = (("f", f), ("kind", Kind.OK.value))
    return np.logical_and.reduce([_says(table, name, word) for name, word in names])


def _says(table: pa.Table, name: str, word: str) -> Any:
    said = table.column(name).unify_dictionaries().combine_chunks()
    if isinstance(said, pa.ChunkedArray):
        said = said.chunk(0)
    words = said.dictionary.to_pylist()
    codes = said.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    return codes == (words.index(word) if word in words else -2)


def _send_of(table: pa.Table, anomaly: Anomaly) -> int | None:
    """The row that acknowledges a record, or the next one that is acknowledged."""
    offsets = table.column("offset").fill_null(-1).to_numpy()
    rows = np.flatnonzero(_operations(table, "send") & (offsets >= anomaly.record))
    if not len(rows) or offsets[rows].min() > anomaly.record + 1:
        return None
    return int(rows[np.argmin(offsets[rows])])


def _poll_of(table: pa.Table, anomaly: Anomaly) -> tuple[int, int, Records] | None:
    """The row that answers the poll of a record, its place there, and what the poll returned; not the poll's first."""
    positions = table.column("offset").fill_null(-1).to_numpy()
    rows = np.flatnonzero(_operations(table, "poll") & (positions < anomaly.record))
    if not len(rows):
        return None
    row = int(rows[np.argmax(positions[rows])])
    offsets, values = (table.column(name)[row].as_py() for name in ("offsets", "values"))
    if anomaly.record not in offsets:
        return None
    return row, offsets.index(anomaly.record), (offsets, values)


def _in_poll(
    change: Callable[[int, list[int], list[int]], None],
) -> Callable[[pa.Table, Anomaly], Replacement | None]:
    """A spoiler that changes the records of a poll."""

    def find(table: pa.Table, anomaly: Anomaly) -> Replacement | None:
        poll = _poll_of(table, anomaly)
        if poll is None:
            return None
        row, index, (offsets, values) = poll
        change(index, offsets, values)
        return row, {"offsets": offsets, "values": values}

    return find


def _lose(index: int, _offsets: list[int], values: list[int]) -> None:
    values[index] = FOREIGN


def _repeat_value(index: int, _offsets: list[int], values: list[int]) -> None:
    values[index] = values[index - 1]


def _skip(index: int, offsets: list[int], values: list[int]) -> None:
    del offsets[index - 1], values[index - 1]


def _go_back(index: int, offsets: list[int], values: list[int]) -> None:
    offsets.insert(index, offsets[index - 1])
    values.insert(index, values[index - 1])


def _failed(table: pa.Table, anomaly: Anomaly) -> Replacement | None:
    row = _send_of(table, anomaly)
    return None if row is None else (row, {"kind": Kind.FAIL.value, "offset": None, "node": None})


def _earlier_offset(table: pa.Table, anomaly: Anomaly) -> Replacement | None:
    row = _send_of(table, anomaly)
    return None if row is None else (row, {"offset": max(0, anomaly.record - 100)})


def _above_its_mark(table: pa.Table, anomaly: Anomaly) -> Replacement | None:
    poll = _poll_of(table, anomaly)
    return None if poll is None else (poll[0], {"high_watermark": anomaly.record})


CLIENT_ANOMALIES: Final[Mapping[str, Spoiler]] = MappingProxyType(
    {
        "record-lost": Spoiler("lost-write", TableKind.ENDING, _in_poll(_lose)),
        "offset-of-two-values": Spoiler("inconsistent-offset", TableKind.RECORDS, _in_poll(_lose)),
        "value-at-two-offsets": Spoiler("duplicate", TableKind.ENDING, _in_poll(_repeat_value)),
        "record-skipped": Spoiler("poll-skip", TableKind.RECORDS, _in_poll(_skip)),
        "record-read-again": Spoiler("nonmonotonic-poll", TableKind.RECORDS, _in_poll(_go_back)),
        "failed-send-read": Spoiler("dirty-read", TableKind.RECORDS, _failed),
        "offset-that-falls": Spoiler("nonmonotonic-send", TableKind.RECORDS, _earlier_offset),
        "read-above-mark": Spoiler("stale-read-above-hw", TableKind.RECORDS, _above_its_mark),
    }
)
"""By name."""

NEEDS_TRACES: Final = frozenset({"read-above-mark"})
"""The anomalies that are not found in a history of clients alone."""
