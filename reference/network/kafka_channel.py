"""A client's connection as the broker sees it: frames in, frames out, and the mute state."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from nemesis.reference.network.channel_mute import ChannelMute
from nemesis.reference.network.frames import FrameProtocol


class KafkaChannel(FrameProtocol):
    """One accepted connection. ``accepted`` is called once; the Selector then attaches itself with ``attach``."""

    def __init__(self, *, max_bytes: int, accepted: Callable[[KafkaChannel], None]) -> None:
        super().__init__(max_bytes=max_bytes)
        self.muting = ChannelMute()
        self.is_closed = False
        """Closed by the broker; the event loop may report the loss later."""
        self.is_lost = False
        self.is_sending = False
        """Written bytes still wait for the client."""
        self._accepted = accepted
        self._on_progress: Callable[[KafkaChannel], None] | None = None
        self._is_resuming = False

    def attach(self, on_progress: Callable[[KafkaChannel], None]) -> None:
        """Call this from now on for new bytes, the end of a send and the loss of the connection."""
        self._on_progress = on_progress

    @property
    def address(self) -> str:
        """The client's host; empty if the connection was lost before."""
        peer = self.transport.get_extra_info("peername")
        return str(peer[0]) if peer else ""

    def send(self, frame: bytes) -> None:
        """Write a frame; ``is_sending`` is true while some of it waits."""
        self.transport.write(frame)

    def close(self) -> None:
        """Close the connection once everything is written."""
        self.is_closed = True
        self._end(self.transport.close)

    def abort(self) -> None:
        """Close the connection at once; bytes that wait are lost."""
        self.is_closed = True
        self._end(self.transport.abort)

    def progressed(self) -> None:
        if self._on_progress is not None:
            self._on_progress(self)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        # A send is complete when the client's system has all of it, not when little enough is left.
        self.transport.set_write_buffer_limits(high=0)
        self._accepted(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_closed = self.is_lost = True
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        self.is_sending = True

    def resume_writing(self) -> None:
        self.is_sending = False
        self._is_resuming = True
        try:
            self.progressed()
        finally:
            self._is_resuming = False

    def _end(self, transport_end: Callable[[], None]) -> None:
        """End the connection, but not inside ``resume_writing``: asyncio's transport would report the loss twice."""
        if self._is_resuming:
            asyncio.get_running_loop().call_soon(transport_end)
        else:
            transport_end()
