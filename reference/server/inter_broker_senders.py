"""What one broker sends to others, a batch at a time: a queue and a connection for each of them.

While the queue of a broker has something, one task takes all of it and sends it; meanwhile the next batch grows. So one
request at most is under way to each broker.

Source: kafka.common.InterBrokerSendThread of Kafka 3.9, which has one thread for all brokers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sized
from typing import Generic, TypeVar

from nemesis.reference.server.connection import Connection, ConnectionFactory

_Queue = TypeVar("_Queue", bound=Sized)


class InterBrokerSenders(Generic[_Queue]):
    """``new_queue`` makes an empty queue; ``send_all`` sends the content of one, and raises nothing."""

    def __init__(
        self,
        name: str,
        client_id: str,
        *,
        connect: ConnectionFactory,
        new_queue: Callable[[], _Queue],
        send_all: Callable[[int, _Queue], Awaitable[None]],
    ) -> None:
        self._name = name
        self._client_id = client_id
        self._connect = connect
        self._new_queue = new_queue
        self._send_all = send_all
        self._queues: dict[int, _Queue] = {}
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._connections: dict[int, Connection] = {}

    def queue(self, broker_id: int) -> _Queue:
        """Return the queue of a broker, which is sent once the caller has added to it."""
        queue = self._queues.get(broker_id)
        if queue is None:
            queue = self._queues[broker_id] = self._new_queue()
        if broker_id not in self._tasks:
            self._tasks[broker_id] = asyncio.get_running_loop().create_task(
                self._run(broker_id), name=f"{self._name}-{broker_id}"
            )
        return queue

    def connection(self, broker_id: int) -> Connection:
        connection = self._connections.get(broker_id)
        if connection is None:
            connection = self._connections[broker_id] = self._connect(self._client_id)
        return connection

    async def shutdown(self) -> None:
        """Send nothing from now on; what is queued is dropped, as with the process."""
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for connection in self._connections.values():
            await connection.close()

    async def _run(self, broker_id: int) -> None:
        try:
            while queue := self._queues.pop(broker_id, None):
                await self._send_all(broker_id, queue)
        finally:
            del self._tasks[broker_id]
