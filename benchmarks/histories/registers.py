"""Histories of registers: reads and writes by clients that overlap, of any size, true but for known stale reads.

Operation ``i`` has its effect at its own moment, ``i`` ticks after the beginning; it was invoked before and completed
after that by a chance amount, and a client's next operation begins after its last one ended. So the history is
linearizable by construction. Every write has a value of its own. Made of arrays, a block of operations at a time:
events that may still be overtaken by later ones wait for the next block.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa

from benchmarks.histories import columns
from benchmarks.histories.writer import HistoryWriter
from nemesis.history.manifest import Manifest

Array = np.ndarray[Any, np.dtype[np.int64]]

BLOCK: Final = 2**19
"""Operations that are made at once."""
TICK_NS: Final = 1_000
BEGINNING_NS: Final = 10**9
KINDS: Final = ("invoke", "ok", "fail", "info")
OK, FAIL, INFO = 1, 2, 3
READ, WRITE = 0, 1


@dataclass(frozen=True, slots=True)
class Registers:
    """What is wanted."""

    operations: int
    keys: int = 1
    clients: int = 20
    seed: int = 0
    stale: tuple[int, ...] = ()
    """Operations that are to be reads of what was current ``memory`` operations earlier."""

    @property
    def memory(self) -> int:
        """So many operations before a stale read its value was current: enough for writes in between."""
        return self.keys * (24 + 4 * self.clients // self.keys)

    def positions(self, count: int) -> tuple[int, ...]:
        """Operations far from each other that may be ``stale``. Raises ValueError if there are too few operations."""
        if self.operations < 4 * self.memory * count:
            raise ValueError(f"{self.operations} operations are too few for {count} stale reads")
        middles = [(2 * number + 1) * self.operations // (2 * count) for number in range(count)]
        return tuple(middle + max(0, self.memory - middle % self.block) for middle in middles)

    @property
    def block(self) -> int:
        """Operations in a block: a multiple of the keys, and more than stale reads look back."""
        return max(BLOCK // self.keys * self.keys, 4 * self.memory)


def write(directory: Path, shape: Registers) -> Manifest:
    """Write the history into a directory that does not exist yet."""
    with HistoryWriter(directory) as writer:
        for rows in tables(shape):
            writer.write(rows)
        writer.end_partition()
        return writer.close()


def tables(shape: Registers) -> Iterator[pa.Table]:
    """Yield the rows of the history, in its order."""
    last_values = np.zeros(shape.keys, dtype=np.int64)
    waiting: list[Events] = []
    for start in range(0, shape.operations, shape.block):
        stop = min(start + shape.block, shape.operations)
        made, last_values = _block(shape, start, stop, last_values)
        is_last = stop == shape.operations
        events = Events.merged([*waiting, made])
        edge = np.inf if is_last else BEGINNING_NS + stop * TICK_NS - _reach(shape)
        cut = int(np.searchsorted(events.time, edge))
        yield _table(shape, events.slice(0, cut))
        waiting = [events.slice(cut, len(events.time))]


@dataclass(frozen=True, slots=True)
class Events:
    """Invocations and completions, sorted by time, then client."""

    time: Array
    kind: Array
    operation: Array
    client: Array
    f: Array
    value: Array
    """0 where none is stated."""

    @classmethod
    def merged(cls, parts: list[Events]) -> Events:
        names = [field.name for field in fields(cls)]
        joined = cls(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))
        permutation = np.lexsort((joined.client, joined.time))
        return cls(*(getattr(joined, name)[permutation] for name in names))

    def slice(self, start: int, stop: int) -> Events:
        return Events(*(getattr(self, field.name)[start:stop] for field in fields(self)))


def _reach(shape: Registers) -> int:
    """How far from its moment an operation begins or ends at most."""
    return shape.clients * TICK_NS // 2


def _block(shape: Registers, start: int, stop: int, last: Array) -> tuple[Events, Array]:
    """The events of operations ``start`` to ``stop``, and the values of the registers after them."""
    rng = np.random.default_rng([shape.seed, start])
    operation = np.arange(start, stop)
    f = (rng.random(len(operation)) < 0.5).astype(np.int64)
    chance = rng.random(len(operation))
    outcome = np.where(chance < 0.001, INFO, np.where(chance < 0.002, FAIL, OK))
    stale = (
        np.array(
            [
                operation_number
                for operation_number in shape.stale
                if start <= operation_number < stop
            ],
            dtype=np.int64,
        )
        - start
    )
    f[stale], outcome[stale] = READ, OK
    takes_effect = (f == WRITE) & (outcome != FAIL)
    current = _current(np.where(takes_effect, operation + 1, 0), last)
    value = np.where(f == WRITE, operation + 1, current)
    value[stale] = current[stale - shape.memory]
    instant = BEGINNING_NS + operation * TICK_NS
    reach = _reach(shape)
    begun = instant - rng.integers(1, reach, len(operation))
    ended = instant + rng.integers(1, reach, len(operation))
    is_silent = (f == READ) & (outcome != OK)
    events = Events(
        time=np.concatenate([begun, ended]),
        kind=np.concatenate([np.zeros(len(operation), dtype=np.int64), outcome]),
        operation=np.tile(operation, 2),
        client=np.tile(operation % shape.clients, 2),
        f=np.tile(f, 2),
        value=np.concatenate([np.where(f == WRITE, value, 0), np.where(is_silent, 0, value)]),
    )
    return Events.merged([events]), _after(current, last)


def _current(written: Array, last: Array) -> Array:
    """The value of each operation's register after it; operations go round the registers."""
    keys = len(last)
    rounds = -(-len(written) // keys)
    padded = np.zeros(rounds * keys, dtype=np.int64)
    padded[: len(written)] = written
    grid = np.vstack([last, padded.reshape(rounds, keys)])
    return np.maximum.accumulate(grid, axis=0)[1:].reshape(-1)[: len(written)]


def _after(current: Array, last: Array) -> Array:
    keys = len(last)
    return current[-keys:] if len(current) >= keys else last


def _table(shape: Registers, events: Events) -> pa.Table:
    clients = [f"client-{number:03d}" for number in range(shape.clients)]
    return columns.rows(
        {
            "time": columns.numbers(events.time),
            "process": columns.words(events.client, clients),
            "kind": columns.words(events.kind, KINDS),
            "seq": columns.numbers(events.operation // shape.clients * 2 + (events.kind > 0)),
            "op": columns.numbers(events.operation),
            "f": columns.words(events.f, ("read", "write")),
            "key": columns.numbers(events.operation % shape.keys),
            "value": columns.numbers(events.value, events.value > 0),
        }
    )
