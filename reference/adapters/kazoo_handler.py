"""kazoo's handler for a client that lives on one asyncio loop.

kazoo runs watches and completions on two threads of its own, which lets a reply overtake the watch that the server sent
before it. Here both of its queues are one shim that hands the call to the loop.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from contextlib import suppress

from kazoo.handlers.threading import SequentialThreadingHandler


class _LoopQueue:
    """Stands for both of kazoo's work queues: whatever is put in runs on the loop, in the order of the puts."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop

    def put(self, call: Callable[[], object]) -> None:
        with suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(call)


class LoopHandler(SequentialThreadingHandler):  # type: ignore[misc]
    """kazoo's threading handler without its two worker threads."""

    running = True

    def __init__(
        self, loop: asyncio.AbstractEventLoop, source_host: str | None, server_count: int
    ) -> None:
        super().__init__()
        self._source_host = source_host
        self._server_count = server_count
        self.completion_queue = self.callback_queue = _LoopQueue(loop)

    def start(self) -> None:
        """There is nothing to start: the loop runs already."""

    def stop(self) -> None:
        """There is nothing to stop; calls under way still reach the loop."""

    def create_connection(
        self, address: tuple[str, int], timeout: float | None = None, **_tls: object
    ) -> socket.socket:
        """Connect within a share of the session time-out, as ZooKeeper's own client does.

        kazoo would spend all of it on one server that cannot be reached, and the session would end meanwhile.
        """
        share = None if timeout is None else timeout / self._server_count
        source = None if self._source_host is None else (self._source_host, 0)
        connection = socket.create_connection(address, timeout=share, source_address=source)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection
