"""Many ZooKeeper operations at once on one connection, which answers them in order."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from reference.zk.errors import ControllerMovedError

_T = TypeVar("_T")
_V = TypeVar("_V")


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
