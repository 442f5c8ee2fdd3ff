"""Bytes to frames, for either end of a connection: the part of a protocol that clients and servers share.

An ``asyncio.Protocol`` rather than a stream: a frame that arrives whole costs one callback, and no task or future.
What came is kept until ``next_frame`` asks for it; ``progressed`` tells whoever extends this that asking may pay.

Nothing is reserved for a frame on the word of its size: bytes are kept as they come, and a size over ``max_bytes``
is an error as soon as it is read. Reading pauses while more than ``READ_AHEAD_BYTES`` lie here unasked for.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from typing import Final

from nemesis.reference.protocol.codec import SIZE_BYTES, decode_size

READ_AHEAD_BYTES: Final = 64 * 1024


class FrameProtocol(asyncio.Protocol, ABC):
    """One end of a connection. ``transport`` is there once the connection is made."""

    transport: asyncio.Transport

    def __init__(self, *, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._unread = bytearray()
        self._is_asked = True
        self._is_paused = False
        self._is_ended = False
        self._error: Exception | None = None

    @abstractmethod
    def progressed(self) -> None:
        """Bytes have come, or their end, or the loss of the connection."""

    def next_frame(self) -> bytes | None:
        """The next frame, without its size; None when it has yet to come.

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
        """Whether ``next_frame`` may have anything to say, or is what lets reading go on."""
        return bool(self._unread) or self._is_ended or self._is_paused

    def at_end(self) -> bool:
        """True when the peer has ended the stream in order and all of it was read."""
        return self._is_ended and self._error is None and not self._unread

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self._unread += data
        self.progressed()
        if len(self._unread) > READ_AHEAD_BYTES and not self._is_asked:
            self._is_paused = True
            self.transport.pause_reading()

    def eof_received(self) -> bool:
        self._is_ended = True
        self.progressed()
        return True  # what was asked can still be answered

    def connection_lost(self, exc: Exception | None) -> None:
        self._error = exc
        self._is_ended = True
        self.progressed()
