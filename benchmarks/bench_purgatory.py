"""Delayed operations: 100,000 requests wait at once, half is answered by progress, half by time-out; nothing stays.

Each operation watches three of 3,000 partitions and has a time-out of its own. Shown: the processor time that it takes
to begin to wait and to be answered, the memory of one that waits, how late the latest time-out was answered, and what
of the memory stays when a second round like the first is over. Required: no operation is left in the purgatory or
alive, and the second round leaves no more memory in use than the first did.
"""

from __future__ import annotations

import asyncio
import gc
import time
import weakref
from dataclasses import dataclass
from pathlib import Path
from random import Random

from rich.console import Console
from rich.table import Table

from nemesis.reference.delayed_operations import DelayedOperationPurgatory
from nemesis.reference.model import TopicPartition

OPERATIONS = 100_000
PARTITIONS = [TopicPartition("t", number) for number in range(3_000)]
TIMEOUT_S = (12.0, 16.0)
ROUNDS = 2
ALLOWED_GROWTH = 0.05
_PAGE_BYTES = 4096


class Operation:
    """Complete when its partition has made progress; the others are looked at in vain."""

    __slots__ = ("__weakref__", "_key")

    def __init__(self, key: TopicPartition) -> None:
        self._key = key

    def try_complete(self, key: TopicPartition) -> bool:
        return key == self._key

    def results(self) -> TopicPartition:
        return self._key


@dataclass(frozen=True, slots=True)
class Round:
    """Seconds, of processor time but for the latest time-out; bytes."""

    watch_s: float
    complete_s: float
    latest_s: float
    held_bytes: int
    left_bytes: int
    left_operations: int


def main() -> None:
    """Two rounds, print a table."""
    rounds = asyncio.run(_measure())
    table = Table("round", "begin to wait", "answer by progress", "latest time-out", "held", "left")
    for number, round_ in enumerate(rounds, start=1):
        table.add_row(
            str(number),
            f"{round_.watch_s / OPERATIONS * 1e6:.1f} µs",
            f"{round_.complete_s / (OPERATIONS / 2) * 1e6:.1f} µs",
            f"{round_.latest_s * 1e3:.0f} ms late",
            f"{round_.held_bytes / OPERATIONS:,.0f} bytes each",
            f"{round_.left_operations} operations, {round_.left_bytes / 1e6:,.1f} MB",
        )
    first, last = rounds[0], rounds[-1]
    growth = (last.left_bytes - first.left_bytes) / first.held_bytes
    held = growth <= ALLOWED_GROWTH and not any(round_.left_operations for round_ in rounds)
    Console(width=120).print(table)
    Console(width=120).print(f"nothing stays: {'yes' if held else 'NO'}")


async def _measure() -> list[Round]:
    gc.collect()
    before = _resident_bytes()
    return [await _round(before) for _ in range(ROUNDS)]


async def _round(before: int) -> Round:
    loop, rng = asyncio.get_running_loop(), Random(1)
    purgatory = DelayedOperationPurgatory[TopicPartition]()
    operations: weakref.WeakSet[Operation] = weakref.WeakSet()
    latest = 0.0

    def begin(key: TopicPartition) -> asyncio.Future[None]:
        timeout_s = rng.uniform(*TIMEOUT_S)
        deadline = loop.time() + timeout_s
        operation = Operation(key)
        operations.add(operation)

        def respond(_: TopicPartition) -> None:
            nonlocal latest
            latest = max(latest, loop.time() - deadline)

        keys = {key: None, rng.choice(PARTITIONS): None, rng.choice(PARTITIONS): None}
        return purgatory.watch(operation, tuple(keys), timeout_s=timeout_s, respond=respond)

    started = time.process_time()
    waiting = [begin(PARTITIONS[number % len(PARTITIONS)]) for number in range(OPERATIONS)]
    watch_s = time.process_time() - started
    held = _resident_bytes()

    started = time.process_time()
    for key in PARTITIONS[::2]:
        purgatory.check_and_complete(key)
    complete_s = time.process_time() - started
    answered = sum(future.done() for future in waiting)
    if answered != OPERATIONS // 2:
        raise RuntimeError(f"{answered} operations were answered by progress")

    await asyncio.gather(*waiting)
    del waiting
    await asyncio.sleep(0.1)  # what woke this task still holds the last of them
    gc.collect()
    return Round(
        watch_s,
        complete_s,
        latest,
        held - before,
        _resident_bytes() - before,
        len(operations) + len(purgatory),
    )


def _resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * _PAGE_BYTES


if __name__ == "__main__":
    main()
