"""Bytes to frames, for either end of a connection: the part of a protocol that clients and servers share.

An ``asyncio.Protocol`` rather than a stream: a frame that arrives whole costs one callback, and no task or future.
Received bytes are kept until ``FrameReader.next_frame`` takes them; ``progressed`` is called when taking may succeed.

Nothing is reserved for a frame because of its announced size: bytes are kept as they come, and a size over
``max_bytes`` is an error as soon as it is read. Reading pauses while more than ``READ_AHEAD_BYTES`` are not taken.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from typing import Final

from nemesis.reference.protocol.codec import SIZE_BYTES, decode_size

READ_AHEAD_BYTES: Final = 64 * 1024


class FrameReader:
    """Takes frames out of the received bytes. ``transport`` is set once the connection is made."""

    transport: asyncio.Transport

    def __init__(self, *, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._unread = bytearray()
        self._is_asked = True
        self._is_paused = False
        self._is_ended = False
        self._error: Exception | None = None

    def next_frame(self) -> bytes | None:
        """Return the next frame, without its size; None while it is incomplete.

        Raises ``ProtocolError`` when it claims more than ``max_bytes``, ``EOFError`` when the stream ended before its
        end, and the ``OSError`` with which the connection was lost.
        """
        if self._error is not None:
            raise self._error
        unread = self._unread
        if len(unread) >= SIZE_BYTES:
            end = SIZE_BYTES + decode_size(unread, max_bytes=self._max_bytes)
            if len(unread) >= end:
                frame = bytes(memoryview(unread)[SIZE_BYTES:end])
                del unread[:end]
                self._is_asked = False
                return frame
        if self._is_ended:
            raise EOFError(f"the stream ended after {len(unread)} bytes of a frame")
        self._is_asked = True
        self._is_paused = False
        self.transport.resume_reading()
        return None

    @property
    def has_input(self) -> bool:
        """Whether ``next_frame`` may return a frame, raise an error, or let reading continue."""
        return bool(self._unread) or self._is_ended or self._is_paused

    def at_end(self) -> bool:
        """Return whether the peer ended the stream in order and every byte was taken."""
        return self._is_ended and self._error is None and not self._unread

    def feed(self, data: bytes) -> None:
        """Add received bytes."""
        self._unread += data

    def pause_if_full(self) -> None:
        """Stop reading from the transport if too many bytes wait and no frame was asked for."""
        if len(self._unread) > READ_AHEAD_BYTES and not self._is_asked:
            self._is_paused = True
            self.transport.pause_reading()

    def end(self, error: Exception | None = None) -> None:
        """Note that no more bytes come; ``error`` is the reason of a lost connection."""
        self._error = error
        self._is_ended = True


class FrameProtocol(asyncio.Protocol, ABC):
    """One end of a connection. ``transport`` is set once the connection is made."""

    transport: asyncio.Transport

    def __init__(self, *, max_bytes: int) -> None:
        self.reader = FrameReader(max_bytes=max_bytes)

    @abstractmethod
    def progressed(self) -> None:
        """Handle new bytes, their end, or the loss of the connection."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = self.reader.transport = transport

    def data_received(self, data: bytes) -> None:
        self.reader.feed(data)
        self.progressed()
        self.reader.pause_if_full()

    def eof_received(self) -> bool:
        self.reader.end()
        self.progressed()
        return True  # responses to the requests received so far can still be sent

    def connection_lost(self, exc: Exception | None) -> None:
        self.reader.end(exc)
        self.progressed()
