"""What is kept of each row of a transaction: a few numbers, and the flat list of its micro-operations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nemesis.checkers.framework.arrays import Numbers
from nemesis.checkers.framework.columns import UNSET
from nemesis.checkers.framework.segment import Segment
from nemesis.history.events import Kind

TXN: Final = "txn"
INVOKE, OK, FAIL, INFO = range(4)
KINDS: Final = (Kind.INVOKE, Kind.OK, Kind.FAIL, Kind.INFO)
COLUMNS: Final = ("op", "f", "micro_operations")


Elements = np.ndarray[Any, np.dtype[np.int32]] | Numbers
"""Keys, values and what is between them."""


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows of transactions, in history order."""

    kind: Numbers
    """``INVOKE``, ``OK``, ``FAIL`` or ``INFO``."""
    op: Numbers
    """``UNSET`` without a value."""
    process: Numbers
    """A position in ``processes``."""
    processes: list[str]
    time: Numbers
    row: Numbers
    """The row's number in the history."""
    size: Numbers
    """How many numbers its list has; 0 without a list."""
    flat: Elements
    """The lists, one after the other."""

    @classmethod
    def of(cls, segment: Segment) -> Rows:
        rows = segment.where(segment.is_word("f", {TXN}))
        kinds, words = rows.codes("kind")
        known = {kind.value: number for number, kind in enumerate(KINDS)}
        numbers = np.array([known.get(word, INFO) for word in words] or [0], dtype=np.int64)
        process, processes = rows.codes("process")
        size, flat = _lists(rows.columns.arrow("micro_operations"))
        return cls(
            kind=numbers[kinds],
            op=rows.numbers("op", UNSET),
            process=process,
            processes=list(processes),
            time=rows.numbers("time"),
            row=rows.rows,
            size=size,
            flat=flat,
        )

    @classmethod
    def joined(cls, parts: list[Rows]) -> Rows:
        """All rows, one part after the other. Empties ``parts``, so that their lists and all of them together need not
        be in memory at the same time.
        """
        names: dict[str, int] = {}
        process = [
            np.array([names.setdefault(word, len(names)) for word in part.processes] or [0])[
                part.process
            ]
            for part in parts
        ]
        joined = cls(
            kind=np.concatenate([part.kind for part in parts]),
            op=np.concatenate([part.op for part in parts]),
            process=np.concatenate(process).astype(np.int64),
            processes=list(names),
            time=np.concatenate([part.time for part in parts]),
            row=np.concatenate([part.row for part in parts]),
            size=np.concatenate([part.size for part in parts]),
            flat=_room_for([part.flat for part in parts]),
        )
        offset = 0
        while parts:
            flat = parts.pop(0).flat
            joined.flat[offset : offset + len(flat)] = flat
            offset += len(flat)
        return joined


def _room_for(lists: list[Elements]) -> Elements:
    """Room for all elements, four bytes each if they fit: nothing else takes so much memory."""
    total = sum(map(len, lists))
    ends = [int(end) for flat in lists if len(flat) for end in (flat.min(), flat.max())]
    bounds = np.iinfo(np.int32)
    if all(bounds.min <= end <= bounds.max for end in ends):
        return np.empty(total, dtype=np.int32)
    return np.empty(total, dtype=np.int64)


def _lists(column: pa.ChunkedArray) -> tuple[Numbers, Numbers]:
    """The length of each list and all elements."""
    sizes = pc.fill_null(pc.list_value_length(column), 0).to_numpy()
    flat = [np.asarray(chunk.flatten(), dtype=np.int64) for chunk in column.chunks]
    elements = flat[0] if len(flat) == 1 else np.concatenate([np.zeros(0, dtype=np.int64), *flat])
    return np.asarray(sizes, dtype=np.int64), elements
