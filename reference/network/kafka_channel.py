"""A client's connection as the broker sees it: its frames, whether a frame is on its way out, and whether it is muted.

A channel whose request is in flight is *muted*: nothing is read from it for its own sake until the answer is sent,
which keeps a client's requests in order. A client over its quota stays muted for longer. What there is to know about
it is one of five states, and four events move it (Kafka's ``ChannelMuteState`` and ``ChannelMuteEvent``):

    NOT_MUTED ─(muted)→ MUTED ─REQUEST_RECEIVED→ MUTED_AND_RESPONSE_PENDING ─RESPONSE_SENT→ MUTED ─(unmuted)→ NOT_MUTED

and THROTTLE_STARTED, THROTTLE_ENDED add and take away the throttling in between.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from enum import IntEnum
from typing import Final

from nemesis.reference.network.frames import FrameProtocol


class ChannelMuteState(IntEnum):
    NOT_MUTED = 0
    MUTED = 1
    MUTED_AND_RESPONSE_PENDING = 2
    MUTED_AND_THROTTLED = 3
    MUTED_AND_THROTTLED_AND_RESPONSE_PENDING = 4


class ChannelMuteEvent(IntEnum):
    REQUEST_RECEIVED = 0
    RESPONSE_SENT = 1
    THROTTLE_STARTED = 2
    THROTTLE_ENDED = 3


_State, _Event = ChannelMuteState, ChannelMuteEvent

_TRANSITIONS: Final = {
    (_State.MUTED, _Event.REQUEST_RECEIVED): _State.MUTED_AND_RESPONSE_PENDING,
    (_State.MUTED_AND_RESPONSE_PENDING, _Event.RESPONSE_SENT): _State.MUTED,
    (_State.MUTED_AND_RESPONSE_PENDING, _Event.THROTTLE_STARTED): (
        _State.MUTED_AND_THROTTLED_AND_RESPONSE_PENDING
    ),
    (_State.MUTED_AND_THROTTLED_AND_RESPONSE_PENDING, _Event.RESPONSE_SENT): (
        _State.MUTED_AND_THROTTLED
    ),
    (_State.MUTED_AND_THROTTLED_AND_RESPONSE_PENDING, _Event.THROTTLE_ENDED): (
        _State.MUTED_AND_RESPONSE_PENDING
    ),
    (_State.MUTED_AND_THROTTLED, _Event.THROTTLE_ENDED): _State.MUTED,
}


class KafkaChannel(FrameProtocol):
    """One accepted connection. Whoever accepts it attaches somebody who is told when there is something to do."""

    def __init__(self, *, max_bytes: int, accepted: Callable[[KafkaChannel], None]) -> None:
        super().__init__(max_bytes=max_bytes)
        self.mute_state = ChannelMuteState.NOT_MUTED
        self.is_closed = False
        """Closed by this end; the loop may have yet to say that it is lost."""
        self.is_lost = False
        self.is_sending = False
        """The client has yet to take what was written for it."""
        self._accepted = accepted
        self._on_news: Callable[[KafkaChannel], None] | None = None

    def attach(self, on_news: Callable[[KafkaChannel], None]) -> None:
        """From now on tell this of bytes, of the end of a send and of the loss of the connection."""
        self._on_news = on_news

    @property
    def address(self) -> str:
        """The client's host; empty when its connection was gone before anybody asked."""
        peer = self.transport.get_extra_info("peername")
        return str(peer[0]) if peer else ""

    def send(self, frame: bytes) -> None:
        """Write a frame; ``is_sending`` says whether some of it is left for later."""
        self.transport.write(frame)

    def mute(self) -> None:
        if self.mute_state is ChannelMuteState.NOT_MUTED:
            self.mute_state = ChannelMuteState.MUTED

    def maybe_unmute(self) -> bool:
        """Unmute unless an answer is due or the client is throttled; returns whether frames may be taken."""
        if self.mute_state is ChannelMuteState.MUTED:
            self.mute_state = ChannelMuteState.NOT_MUTED
        return self.mute_state is ChannelMuteState.NOT_MUTED

    def handle_channel_mute_event(self, event: ChannelMuteEvent) -> None:
        """Move the state; raises ``ValueError`` when the event cannot come in it."""
        state = _TRANSITIONS.get((self.mute_state, event))
        if state is None:
            raise ValueError(f"{event.name} cannot come while a channel is {self.mute_state.name}")
        self.mute_state = state

    def close(self) -> None:
        """Write what is to be written, and nothing more."""
        self.is_closed = True
        self.transport.close()

    def abort(self) -> None:
        """Close it at once, whatever the client has yet to take."""
        self.is_closed = True
        self.transport.abort()

    def progressed(self) -> None:
        if self._on_news is not None:
            self._on_news(self)

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
        self.progressed()
