"""A client's end of a connection: one frame out, then one frame in.

A protocol rather than a pair of streams: an exchange costs one future and one timer. Bytes are kept as they come;
nothing is reserved for an answer on the word of its size, and one that claims too much is an error at once.
"""

from __future__ import annotations

import asyncio
from typing import Final

from nemesis.workloads.kafka.errors import ConnectionFailed

_SIZE_BYTES: Final = 4


class Traffic:
    """What one client process has sent, and the connections that it has open."""

    def __init__(self) -> None:
        self.frames = 0
        """How many frames were sent."""
        self._open: dict[Exchange, None] = {}

    @property
    def connections(self) -> int:
        """How many connections are open."""
        return len(self._open)

    def opened(self, exchange: Exchange) -> None:
        """Count a connection that was made."""
        self._open[exchange] = None

    def closed(self, exchange: Exchange) -> None:
        """Count a connection as closed."""
        self._open.pop(exchange, None)

    def abort(self) -> None:
        """Close all connections as the kernel does when a process dies: what waits in the process is not sent."""
        for exchange in list(self._open):
            exchange.abort()


class Exchange(asyncio.Protocol):
    """Not usable after an error. ``traffic`` counts what the connection's process does."""

    def __init__(self, *, max_answer_bytes: int, traffic: Traffic) -> None:
        self._max_answer_bytes = max_answer_bytes
        self._traffic = traffic
        self._transport: asyncio.Transport | None = None
        self._unread = bytearray()
        self._answer: asyncio.Future[bytes] | None = None
        self._loss: Exception | None = None

    async def ask(self, frame: bytes, *, deadline: float) -> bytes:
        """Send a frame and return the next one that comes, without its size.

        Raises ``TimeoutError`` at the deadline (in the loop's time), ``OSError`` or ``EOFError`` when the connection
        ends, and ``ConnectionFailed`` for an answer that is too large.
        """
        assert self._transport is not None
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[bytes] = loop.create_future()
        self._answer = answer
        time_is_up = loop.call_at(deadline, self._fail, TimeoutError())
        self._traffic.frames += 1
        self._transport.write(frame)
        self._transport.resume_reading()
        self._progress()
        try:
            return await answer
        finally:
            self._answer = None
            time_is_up.cancel()

    def tell(self, frame: bytes) -> None:
        """Send a frame that is not answered. Raises ``OSError`` or ``EOFError`` if the connection has ended."""
        assert self._transport is not None
        if self._loss is not None:
            raise self._loss
        self._traffic.frames += 1
        self._transport.write(frame)
        # Without reading, the end of the connection would stay unknown until the next answer is awaited.
        self._transport.resume_reading()

    def close(self) -> None:
        """Let go of the connection."""
        if self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        """Let go of the connection at once."""
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._traffic.opened(self)

    def data_received(self, data: bytes) -> None:
        self._unread += data
        if self._answer is None and self._transport is not None:
            self._transport.pause_reading()  # nobody has asked for this
        self._progress()

    def eof_received(self) -> bool:
        self._loss = EOFError("the broker has ended the connection")
        self._progress()
        return True

    def connection_lost(self, exc: Exception | None) -> None:
        self._loss = exc or EOFError("the connection is closed")
        self._traffic.closed(self)
        self._progress()

    def _progress(self) -> None:
        """Tell whoever waits for the answer when it has come, or cannot come any more."""
        answer, unread = self._answer, self._unread
        if answer is None or answer.done():
            return
        if len(unread) >= _SIZE_BYTES:
            size = int.from_bytes(unread[:_SIZE_BYTES], signed=True)
            if not 0 <= size <= self._max_answer_bytes:
                self._fail(ConnectionFailed("RESPONSE_TOO_LARGE", definite=False))
                return
            end = _SIZE_BYTES + size
            if len(unread) >= end:
                answer.set_result(bytes(memoryview(unread)[_SIZE_BYTES:end]))
                del unread[:end]
                return
        if self._loss is not None:
            self._fail(self._loss)

    def _fail(self, error: Exception) -> None:
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(error)
