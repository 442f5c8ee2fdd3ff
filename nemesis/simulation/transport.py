"""One end of a simulated connection: what asyncio's socket transport does, and what the kernel does under it.

The states are those of asyncio's selector transport: ``close`` and ``abort`` call ``connection_lost`` one iteration
later and close the socket then; writing to a socket that was reset closes the transport with the error. Of the
kernel: closing sends an end of stream, unless bytes are unread or come later, which are answered with a reset; what
was sent before a reset is delivered; a reset after the end of the stream is noticed by writing only (``EPIPE``).

Limits: writes never block and never pause the protocol (``get_write_buffer_size`` is 0), so ``abort`` never discards
bytes; no ``BufferedProtocol``, no TLS.
"""

from __future__ import annotations

import asyncio
import errno
import logging
from collections import deque
from collections.abc import Callable
from contextvars import Context
from typing import TYPE_CHECKING

from nemesis.simulation.incarnation import INCARNATION
from nemesis.simulation.links import Ending, Item, Pipe
from nemesis.simulation.power import Power

if TYPE_CHECKING:
    from nemesis.simulation.loop import SimulationLoop

logger = logging.getLogger(__name__)

LOST_WRITES_BEFORE_WARNING = 5
READ_SIZE = 256 * 1024
"""asyncio reads about so many bytes at once."""


class SimulatedTransport(asyncio.Transport):
    """Writes go into ``outbound``; what arrives by ``inbound`` goes to the protocol, in the context given."""

    def __init__(
        self,
        loop: SimulationLoop,
        *,
        outbound: Pipe,
        inbound: Pipe,
        context: Context,
        names: dict[str, object],
        power: Power,
        on_closed: Callable[[SimulatedTransport], object],
    ) -> None:
        super().__init__(names)
        self.context = context
        self._incarnation = context.get(INCARNATION)
        self.outbound = outbound
        self.is_socket_closed = False
        inbound.receiver = self
        self.inbound = inbound
        self._loop = loop
        self._power = power
        self._closed_callbacks = [on_closed]
        self._protocol: asyncio.Protocol | None = None
        self._unread: deque[Item] = deque()
        self._is_closing = False
        self._is_paused = False
        self._is_eof_written = False
        self._is_eof_received = False
        self._lost_writes = 0
        self._reset: OSError | None = None

    # Of the kernel

    def receive(self, item: Item) -> None:
        """The next item has arrived."""
        if self.is_socket_closed:
            return
        if isinstance(item, bytes):
            self.inbound.arrived()
        elif item is Ending.RESET:
            self._reset = _reset_error(
                after_eof=self._is_eof_received or Ending.EOF in self._unread
            )
            if self._is_eof_received:
                return  # asyncio reads no more, so that only a write can notice
        if self._protocol is None or self._is_paused or self._is_closing or self._unread:
            self._unread.append(item)
        else:
            self._hand_over(item)

    def bounce(self) -> None:
        """Bytes have arrived at this closed socket."""
        if self._power.is_on:
            self.outbound.send(Ending.RESET)
        else:
            self._power.call_again(self.bounce)

    def end_socket(self) -> None:
        """Close the socket, as ``close(2)`` and the death of the process do."""
        if self.is_socket_closed:
            return
        self.is_socket_closed = self._is_closing = True
        if self._reset is None:
            has_unread = any(not isinstance(item, Ending) for item in self._unread)
            if has_unread or self.inbound.has_arrivals():
                self.outbound.send(Ending.RESET)
            else:
                if not self._is_eof_written:
                    self.outbound.send(Ending.EOF)
                next_arrival = self.inbound.next_arrival()
                if next_arrival is not None:
                    self._loop.call_at(next_arrival, self.bounce, context=Context())
        for callback in self._closed_callbacks:
            callback(self)

    def lose_power(self) -> None:
        """Be closed without a word to the peer, which learns of it when it sends something and the power is back."""
        if self.is_socket_closed:
            return
        self.is_socket_closed = self._is_closing = True
        unacknowledged_until = self.inbound.latest_arrival()
        if unacknowledged_until is not None and unacknowledged_until > self._loop.now:
            self._loop.call_at(unacknowledged_until, self.bounce, context=Context())
        for callback in self._closed_callbacks:
            callback(self)

    def vanish(self) -> None:
        """The simulation is over: be closed, and tell nobody."""
        self.is_socket_closed = self._is_closing = True

    def refuse(self) -> None:
        """Nobody will ever read this: reset the connection."""
        self.outbound.send(Ending.RESET)
        self._is_eof_written = True
        self.end_socket()

    def when_lost(self, callback: Callable[[SimulatedTransport], object]) -> None:
        """Have this called when the socket is closed, by whomever."""
        self._closed_callbacks.append(callback)

    # Of asyncio

    def attach(self, protocol: asyncio.BaseProtocol) -> None:
        """Connect the protocol and give it what has come already."""
        self.set_protocol(protocol)
        protocol.connection_made(self)
        if self._unread:
            self._loop.call_soon(self._read_on, context=self.context)

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        if not isinstance(protocol, asyncio.Protocol):
            raise NotImplementedError(
                f"the simulated network wants an asyncio.Protocol, not {protocol!r}"
            )
        self._protocol = protocol

    def get_protocol(self) -> asyncio.BaseProtocol:
        assert self._protocol is not None
        return self._protocol

    def is_closing(self) -> bool:
        return self._is_closing

    def is_reading(self) -> bool:
        return not self._is_closing and not self._is_paused

    def pause_reading(self) -> None:
        if self.is_reading():
            self._is_paused = True

    def resume_reading(self) -> None:
        if self._is_paused and not self._is_closing:
            self._is_paused = False
            self._loop.call_soon(self._read_on, context=self.context)

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if not isinstance(data, bytes):
            if not isinstance(data, bytearray | memoryview):
                raise TypeError(
                    f"data argument must be a bytes-like object, not {type(data).__name__!r}"
                )
            data = bytes(data)
        if self._is_eof_written:
            raise RuntimeError("Cannot call write() after write_eof()")
        if not data:
            return
        if self._incarnation is not None:
            self._incarnation.act()
        if self._lost_writes or self.is_socket_closed:
            if self._lost_writes >= LOST_WRITES_BEFORE_WARNING:
                logger.warning("socket.send() raised exception.")
            self._lost_writes += 1
        elif self._reset is not None:
            self._force_close(self._reset)
        else:
            self.outbound.send(data)

    def write_eof(self) -> None:
        if not self._is_closing and not self._is_eof_written:
            self._is_eof_written = True
            if self._reset is not None:
                raise OSError(errno.ENOTCONN, "Transport endpoint is not connected")
            self.outbound.send(Ending.EOF)

    def can_write_eof(self) -> bool:
        return True

    def close(self) -> None:
        if not self._is_closing:
            self._force_close(None)

    def abort(self) -> None:
        self._force_close(None)

    def get_write_buffer_size(self) -> int:
        return 0

    def get_write_buffer_limits(self) -> tuple[int, int]:
        return 0, 0

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Nothing to set: writes never wait here."""

    def _read_on(self) -> None:
        """Hand over what is unread, as much at once as ``recv`` would, until somebody pauses again."""
        unread = self._unread
        while unread and self.is_reading():
            item = unread.popleft()
            if isinstance(item, bytes):
                chunks, size = [item], len(item)
                while unread and isinstance(unread[0], bytes) and size < READ_SIZE:
                    chunk = unread.popleft()
                    assert isinstance(chunk, bytes)
                    chunks.append(chunk)
                    size += len(chunk)
                item = b"".join(chunks)
            self._hand_over(item)

    def _hand_over(self, item: Item) -> None:
        protocol = self._protocol
        assert protocol is not None
        if item is Ending.RESET:
            self._force_close(self._reset)
            return
        try:
            if isinstance(item, bytes):
                protocol.data_received(item)
                return
            self._is_eof_received = True
            if not protocol.eof_received():
                self.close()
        except (SystemExit, KeyboardInterrupt):
            raise
        except BaseException as error:  # noqa: BLE001 - as asyncio: the protocol's fault closes its transport
            call = "data_received" if isinstance(item, bytes) else "eof_received"
            self._loop.call_exception_handler(
                {
                    "message": f"Fatal error: protocol.{call}() call failed.",
                    "exception": error,
                    "transport": self,
                    "protocol": protocol,
                }
            )
            self._force_close(error)

    def _force_close(self, error: BaseException | None) -> None:
        if not self._lost_writes and not self.is_socket_closed:
            self._is_closing = True
            self._lost_writes = 1
            self._loop.call_soon(self._lose_connection, error, context=self.context)

    def _lose_connection(self, error: BaseException | None) -> None:
        try:
            if self._protocol is not None:
                self._protocol.connection_lost(error)  # type: ignore[arg-type]
        finally:
            self.end_socket()


def _reset_error(*, after_eof: bool) -> OSError:
    if after_eof:
        return BrokenPipeError(errno.EPIPE, "Broken pipe")
    return ConnectionResetError(errno.ECONNRESET, "Connection reset by peer")
