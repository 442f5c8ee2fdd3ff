"""Dependencies between transactions, as parallel arrays.

* **ww**: its transaction installed the version that the other one's version came after.
* **wr**: its write was read by the other one.
* **rw** (anti-dependency): it read a version that the other one replaced.
* **process**: the same process made one after the other.
* **realtime**: one ended before the other began.

Each edge carries the micro-operation from which its reason can be told again: for ww the later write, for wr and rw the
read. Real time is never made into edges: ``realtime`` says how it is searched.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from nemesis.checkers.cycles.transactions import Bytes, Mask
from nemesis.checkers.framework.arrays import Numbers
from nemesis.checkers.framework.compiled import compiled

WW, WR, RW, PROCESS, REALTIME = range(5)
MAX_PAIRS: Final = 4096
"""Pairs of readers and later writers of one key that all become edges; beyond, see ``later_writes``."""
MAX_MORE_PAIRS: Final = 4_000_000
"""Pairs of all keys together that have more than ``MAX_PAIRS`` and still become edges."""


@dataclass(frozen=True, slots=True)
class Edges:
    """Edges from ``source`` to ``target``, transactions both, never the same."""

    source: Numbers
    target: Numbers
    kind: Bytes
    via: Numbers
    """The micro-operation that shows it, −1 for the order of a process."""

    def __len__(self) -> int:
        return len(self.source)

    @classmethod
    def of(cls, kind: int, source: Numbers, target: Numbers, via: Numbers) -> Edges:
        """Edges of one kind; those from a transaction to itself are left out."""
        kept = source != target
        source, target, via = source[kept], target[kept], via[kept]
        return cls(source, target, np.full(len(source), kind, dtype=np.int8), via)

    @classmethod
    def joined(cls, parts: Sequence[Edges]) -> Edges:
        return cls(
            source=np.concatenate([part.source for part in parts]),
            target=np.concatenate([part.target for part in parts]),
            kind=np.concatenate([part.kind for part in parts]),
            via=np.concatenate([part.via for part in parts]),
        )

    def reversed(self) -> Edges:
        return Edges(self.target, self.source, self.kind, self.via)

    def where(self, mask: Mask) -> Edges:
        return Edges(self.source[mask], self.target[mask], self.kind[mask], self.via[mask])


def later_writes(
    keys: int,
    read_key: Numbers,
    reader: Numbers,
    write_key: Numbers,
    writer: Numbers,
    *,
    began: Numbers,
    ended: Numbers,
) -> tuple[Numbers, Numbers]:
    """Return pairs of positions (read, write) of the same key: every such write came after what every such read saw.

    All pairs of a key, if there are no more than ``MAX_PAIRS``, or ``MAX_MORE_PAIRS`` in all keys that have more.
    Beyond, each read has the one that ended first of the others' writes, and each write the one that began last of the
    others' reads: whatever contradicts real time with one of the other pairs does so with one of these, but cycles of
    other dependencies may be missed.
    """
    reads = np.lexsort((-began[reader], read_key))
    written = np.lexsort((ended[writer], write_key))
    read_counts = np.bincount(read_key, minlength=keys)
    write_counts = np.bincount(write_key, minlength=keys)
    read, write = _pairs(
        reader[reads],
        writer[written],
        np.cumsum(read_counts),
        np.cumsum(write_counts),
        _has_all(read_counts * write_counts),
    )
    return reads[read], written[write]


def _has_all(pairs: Numbers) -> Mask:
    """Whether each key has all of its pairs as edges."""
    is_large = pairs > MAX_PAIRS
    return ~is_large | (np.cumsum(np.where(is_large, pairs, 0)) <= MAX_MORE_PAIRS)


@compiled
def _pairs(
    reader: Numbers, writer: Numbers, read_ends: Numbers, write_ends: Numbers, has_all: Mask
) -> tuple[Numbers, Numbers]:
    total = 0
    for key in range(len(read_ends)):
        reads = read_ends[key] - (read_ends[key - 1] if key else 0)
        writes = write_ends[key] - (write_ends[key - 1] if key else 0)
        if has_all[key]:
            total += reads * writes
        else:
            total += reads + writes
    read = np.empty(total, np.int64)
    write = np.empty(total, np.int64)
    n = 0
    for key in range(len(read_ends)):
        first_read = read_ends[key - 1] if key else 0
        first_write = write_ends[key - 1] if key else 0
        if has_all[key]:
            for i in range(first_read, read_ends[key]):
                for j in range(first_write, write_ends[key]):
                    read[n], write[n] = i, j
                    n += 1
            continue
        for i in range(first_read, read_ends[key]):
            j = first_write
            while j < write_ends[key] - 1 and writer[j] == reader[i]:
                j += 1
            read[n], write[n] = i, j
            n += 1
        for j in range(first_write, write_ends[key]):
            i = first_read
            while i < read_ends[key] - 1 and writer[j] == reader[i]:
                i += 1
            read[n], write[n] = i, j
            n += 1
    return read, write
