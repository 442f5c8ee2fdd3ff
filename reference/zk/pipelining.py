"""Many ZooKeeper operations at once on one connection, which answers them in order."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from nemesis.reference.zk.errors import ControllerMovedError

_T = TypeVar("_T")
_V = TypeVar("_V")

_BATCHES = 32
"""How many batches a great number of items is divided among, unless they would be too large."""
_LARGEST_BATCH = 500
"""ZooKeeper closes the connection of who sends more than a megabyte (``jute.maxbuffer``): two kilobytes for each."""


async def pipelined(items: Sequence[_V], operation: Callable[[_V], Awaitable[_T]]) -> list[_T]:
    """Start the operation on every item; return the results in order, or raise once all are over.

    ``ControllerMovedError`` is raised before any other error: a deposed controller must learn that first.
    """

    async def run(item: _V) -> _T:
        return await operation(item)

    tasks = [asyncio.create_task(run(item), name=f"zookeeper-operation {item}") for item in items]
    results = await asyncio.gather(*tasks, return_exceptions=True)
    failures = [result for result in results if isinstance(result, BaseException)]
    failures.sort(key=lambda failure: not isinstance(failure, ControllerMovedError))
    for failure in failures:
        raise failure
    return [result for result in results if not isinstance(result, BaseException)]


async def pipelined_in_batches(
    items: Sequence[_V], operation: Callable[[Sequence[_V]], Awaitable[Sequence[_T]]]
) -> list[_T]:
    """As ``pipelined``, with an operation that takes several items and returns a result for each.

    A few items go one by one, as Kafka's do. Of many, several share an operation, so that what each costs here and on
    its way is paid once for all of them.
    """
    size = min(max(1, -(-len(items) // _BATCHES)), _LARGEST_BATCH)
    batches = [items[start : start + size] for start in range(0, len(items), size)]
    return [result for results in await pipelined(batches, operation) for result in results]
