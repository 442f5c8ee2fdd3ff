"""Whether a broker reads requests from a channel: Kafka's mute state.

A channel whose request is in flight is *muted*: the broker takes no further request from it until the response is
sent, which keeps a client's requests in order. A client over its quota stays muted for longer. The state is one of
five, and four events change it (Kafka's ``ChannelMuteState`` and ``ChannelMuteEvent``):

    NOT_MUTED ─(muted)→ MUTED ─REQUEST_RECEIVED→ MUTED_AND_RESPONSE_PENDING ─RESPONSE_SENT→ MUTED ─(unmuted)→ NOT_MUTED

and THROTTLE_STARTED, THROTTLE_ENDED add and remove the throttling in between.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final


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


class ChannelMute:
    """The mute state of one channel."""

    def __init__(self) -> None:
        self.state = ChannelMuteState.NOT_MUTED

    def mute(self) -> None:
        """Mute the channel unless it is muted already."""
        if self.state is ChannelMuteState.NOT_MUTED:
            self.state = ChannelMuteState.MUTED

    def maybe_unmute(self) -> bool:
        """Unmute unless a response is due or the client is throttled; return whether requests may be taken."""
        if self.state is ChannelMuteState.MUTED:
            self.state = ChannelMuteState.NOT_MUTED
        return self.state is ChannelMuteState.NOT_MUTED

    def handle_event(self, event: ChannelMuteEvent) -> None:
        """Change the state; raises ``ValueError`` when the event is impossible in the present state."""
        state = _TRANSITIONS.get((self.state, event))
        if state is None:
            raise ValueError(f"{event.name} cannot come while a channel is {self.state.name}")
        self.state = state
