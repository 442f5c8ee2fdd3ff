"""Histories of transactions over lists or registers, as Jepsen's generators make them: the keys rotate.

Each transaction has one to four micro-operations, half of them writes, on one of ``SLOTS`` keys at a time; a key that
was written ``WRITES_PER_KEY`` times makes room for a new one. They commit one after the other, in the order of their
numbers, and began and ended up to half a round of all processes before and after. One in a hundred fails, and leaves
nothing; of one in a hundred nobody knows what came of it (it has committed).

Where it is asked for there is a write skew (G2-item), on two keys of its own: transaction ``n`` reads one of them empty
and writes the other one, and ``n + 1`` the other way round, at the same time. It is the only anomaly.

Made of arrays, ``CHUNK`` transactions at a time. Seeded: the same arguments give the same rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa

from benchmarks.histories import columns
from benchmarks.histories.columns import Array
from benchmarks.histories.writer import HistoryWriter
from nemesis.history.events import Kind

CHUNK: Final = 200_000
SLOTS: Final = 10
WRITES_PER_KEY: Final = 32
PROCESSES: Final = 20
SLOT_NS: Final = 10_000
OWN_KEYS: Final = 10**9
"""Keys from here on are those of write skews."""
FAILED_VALUES: Final = 10**6
"""Values from here on are those of failed writes."""
_WORDS: Final = (Kind.INVOKE.value, Kind.OK.value, Kind.FAIL.value, Kind.INFO.value)


@dataclass(frozen=True, slots=True)
class Shape:
    """What is wanted."""

    count: int
    lists: bool
    """Lists, else registers."""
    skews: tuple[int, ...] = ()
    """Where write skews begin, in ascending order, two apart at least, never the last of a chunk."""
    seed: int = 7

    def positions(self, count: int) -> tuple[int, ...]:
        """Where so many write skews can be."""
        step = self.count // (count + 1)
        return tuple(2 * (n * step // 2) for n in range(1, count + 1))


@dataclass(frozen=True, slots=True)
class _MicroOperations:
    """Those of a chunk, transaction by transaction."""

    sizes: Array
    """How many each transaction has."""
    is_write: Array
    key: Array
    value: Array
    """What is written; how long the list that is read is, or the value that is read, 0 for nil."""


def write(directory: Path, shape: Shape) -> None:
    """Write such a history into a directory that must not exist yet."""
    with HistoryWriter(directory) as writer:
        for table in tables(shape):
            writer.write(table)
        writer.end_partition()


def tables(shape: Shape) -> Iterator[pa.Table]:
    """Yield the rows, in the order of their times."""
    written = np.zeros(SLOTS, dtype=np.int64)
    waiting: list[pa.Table] = []
    for first in range(0, shape.count, CHUNK):
        count = min(CHUNK, shape.count - first)
        draw = np.random.default_rng((shape.seed, first))
        rows = columns.by_time([*waiting, _chunk(shape, first, count, draw, written)])
        until = (first + count - PROCESSES // 2) * SLOT_NS
        done = int(np.searchsorted(rows.column("time").to_numpy(), until))
        yield rows.slice(0, done)
        waiting = [rows.slice(done)]
    yield from waiting


def _chunk(
    shape: Shape, first: int, count: int, draw: np.random.Generator, written: Array
) -> pa.Table:
    number = np.arange(first, first + count)
    skewed = np.isin(number, shape.skews) | np.isin(number - 1, shape.skews)
    fate = draw.integers(100, size=count)
    outcome = np.where(skewed | (fate > 1), 1, fate + 2)
    micro = _micro_operations(shape, number, skewed, outcome == 2, draw, written)
    half = PROCESSES // 2 * SLOT_NS
    early, late = draw.integers(1, half, size=(2, count))
    early[skewed] = late[skewed] = half - 1
    commit = (number + PROCESSES) * SLOT_NS
    about = {"op": columns.numbers(number), "f": columns.word("txn", count)}
    processes = [f"client-{n}" for n in range(PROCESSES)]
    about["process"] = columns.words(number % PROCESSES, processes)
    asked = columns.rows(
        {
            **about,
            "time": columns.numbers(commit - early),
            "kind": columns.words(np.zeros(count), _WORDS),
            "seq": columns.numbers(2 * number),
            "micro_operations": _lists(shape, micro, np.zeros(count, dtype=np.bool_)),
        }
    )
    completions = columns.rows(
        {
            **about,
            "time": columns.numbers(commit + late),
            "kind": columns.words(outcome, _WORDS),
            "seq": columns.numbers(2 * number + 1),
            "micro_operations": _lists(shape, micro, outcome == 1),
        }
    )
    return pa.concat_tables([asked, completions])


def _micro_operations(
    shape: Shape,
    number: Array,
    skewed: Array,
    failed: Array,
    draw: np.random.Generator,
    written: Array,
) -> _MicroOperations:
    """Draw what the transactions do; ``written``, how often each slot was written to, goes on."""
    sizes = np.where(skewed, 2, draw.integers(1, 5, size=len(number)))
    total = int(sizes.sum())
    is_write = draw.integers(2, size=total) == 1
    slot = draw.integers(SLOTS, size=total)
    is_skewed = np.repeat(skewed, sizes)
    is_failed = np.repeat(failed, sizes)
    counts = is_write & ~is_failed & ~is_skewed
    before = np.empty(total, dtype=np.int64)
    for n in range(SLOTS):
        in_slot = slot == n
        done = np.cumsum(counts[in_slot])
        before[in_slot] = written[n] + done - counts[in_slot]
        written[n] += int(counts[in_slot].sum())
    key = slot + SLOTS * (before // WRITES_PER_KEY)
    value = before % WRITES_PER_KEY + is_write
    lost = is_write & is_failed
    value[lost] = FAILED_VALUES + np.arange(int(lost.sum()))
    rows = np.flatnonzero(is_skewed)
    is_second = np.arange(len(rows)) % 2 == 1
    which = np.repeat(number, sizes)[rows]
    is_write[rows] = is_second
    value[rows] = is_second
    turned = np.isin(which - 1, shape.skews)
    key[rows] = OWN_KEYS + 2 * (which - turned) + (is_second ^ turned)
    return _MicroOperations(sizes, is_write, key, value)


def _lists(shape: Shape, micro: _MicroOperations, is_known: Array) -> pa.Array:
    """The flat lists of micro-operations; what was read is told where ``is_known``."""
    known = np.repeat(is_known, micro.sizes)
    read = micro.value if shape.lists else (micro.value > 0).astype(np.int64)
    count = np.where(micro.is_write, 1, np.where(known, read, -1))
    elements = np.maximum(count, 0)
    ends = np.cumsum(3 + elements)
    start = ends - elements - 3
    flat = np.empty(int(ends[-1]), dtype=np.int64)
    flat[start], flat[start + 1], flat[start + 2] = micro.is_write, micro.key, count
    firsts = np.cumsum(elements) - elements
    within = np.arange(int(elements.sum())) - np.repeat(firsts, elements)
    each = within + 1 if shape.lists else np.repeat(micro.value, elements)
    is_write = np.repeat(micro.is_write, elements)
    each[is_write] = np.repeat(micro.value, elements)[is_write]
    flat[np.repeat(start + 3, elements) + within] = each
    txn_ends = ends[np.cumsum(micro.sizes) - 1]
    offsets = np.concatenate(([0], txn_ends)).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), pa.array(flat))
