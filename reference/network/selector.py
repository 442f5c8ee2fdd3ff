"""The connections of one Processor, and what the event loop has told of them since the last ``poll``.

In Kafka a Selector asks the operating system which of its sockets have something; here the event loop has been told,
and has called the channels. ``poll`` turns that into Kafka's three lists: frames that have come whole from channels
that are not muted, sends of which the client's system has everything, and connections that are gone. One frame per
channel and poll, so that nobody who sends much keeps others waiting.

A connection on which nothing has moved for ``connections.max.idle.ms`` is closed.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from nemesis.reference.network.channel_mute import ChannelMuteState
from nemesis.reference.network.kafka_channel import KafkaChannel
from nemesis.reference.network.memory_pool import MemoryPool
from nemesis.reference.protocol.errors import ProtocolError

logger = logging.getLogger(__name__)


class Selector:
    """``wakeup`` is called whenever polling may pay."""

    def __init__(
        self, *, memory_pool: MemoryPool, max_idle_s: float, wakeup: Callable[[], None]
    ) -> None:
        self._memory_pool = memory_pool
        self._max_idle_s = max_idle_s
        self._wakeup = wakeup
        self._last_activity: dict[KafkaChannel, float] = {}
        """All channels, in the loop's time, the one that has been idle for longest first."""
        self._ready: dict[KafkaChannel, None] = {}
        """Those of which there is something new."""
        self._starved: dict[KafkaChannel, None] = {}
        """Those whose frame has to wait for memory."""
        self._sending: dict[KafkaChannel, None] = {}
        self._idle_check: asyncio.TimerHandle | None = None
        self.completed_receives: list[tuple[KafkaChannel, bytes]] = []
        self.completed_sends: list[KafkaChannel] = []
        self.disconnected: list[KafkaChannel] = []

    @property
    def is_ready(self) -> bool:
        """Whether there is anything that ``poll`` would look at."""
        return bool(self._ready)

    def register(self, channel: KafkaChannel) -> None:
        """Take over a connection; what it has sent already counts as news."""
        loop = asyncio.get_running_loop()
        self._last_activity[channel] = loop.time()
        if self._idle_check is None:
            self._idle_check = loop.call_later(self._max_idle_s, self._close_idle)
        channel.attach(self._note)
        self._ready[channel] = None

    def poll(self) -> None:
        """Fill the three lists from what is new."""
        if not (self._ready or self._starved):
            return
        ready, self._ready = self._ready, {}
        if self._starved:
            ready, self._starved = self._starved | ready, {}
        now = asyncio.get_running_loop().time()
        for channel in ready:
            if channel.is_closed:
                if channel.is_lost:
                    self._forget(channel)
                continue
            self._note_activity(channel, now)
            if channel in self._sending and not channel.is_sending:
                del self._sending[channel]
                self.completed_sends.append(channel)
            if channel.muting.state is ChannelMuteState.NOT_MUTED:
                self._receive(channel)

    def send(self, channel: KafkaChannel, frame: bytes) -> None:
        """Write a frame; once the client's system has all of it the channel is among ``completed_sends``."""
        channel.send(frame)
        self._note_activity(channel, asyncio.get_running_loop().time())
        if channel.is_sending:
            self._sending[channel] = None
        else:
            self.completed_sends.append(channel)

    def unmute(self, channel: KafkaChannel) -> None:
        """Go on with the channel, unless an answer is due or it is throttled."""
        if channel.muting.maybe_unmute() and channel.reader.has_input:
            self._ready[channel] = None

    def lowest_priority_channel(self) -> KafkaChannel | None:
        """The open one that has been idle for longest."""
        return next((channel for channel in self._last_activity if not channel.is_closed), None)

    def close(self) -> None:
        """Close all connections, once they have what was written for them."""
        if self._idle_check is not None:
            self._idle_check.cancel()
        for channel in list(self._last_activity):
            channel.close()

    def _note(self, channel: KafkaChannel) -> None:
        self._ready[channel] = None
        self._wakeup()

    def _receive(self, channel: KafkaChannel) -> None:
        if not self._memory_pool.has_room(self._wakeup):
            self._starved[channel] = None
            return
        try:
            frame = channel.reader.next_frame()
        except ProtocolError as error:
            logger.warning("closing the connection of %s: %s", channel.address, error)
            channel.close()
        except (OSError, EOFError):
            channel.close()  # the client has gone
        else:
            if frame is not None:
                self._memory_pool.allocate(len(frame))
                channel.muting.mute()
                self.completed_receives.append((channel, frame))

    def _note_activity(self, channel: KafkaChannel, now: float) -> None:
        del self._last_activity[channel]
        self._last_activity[channel] = now

    def _forget(self, channel: KafkaChannel) -> None:
        del self._last_activity[channel]
        self._sending.pop(channel, None)
        self.disconnected.append(channel)

    def _close_idle(self) -> None:
        loop = asyncio.get_running_loop()
        self._idle_check = None
        for channel, last in self._last_activity.items():
            expires = last + self._max_idle_s
            if expires > loop.time():
                self._idle_check = loop.call_at(expires, self._close_idle)
                return
            if not channel.is_closed:
                logger.info("closing the connection of %s: it is idle", channel.address)
                channel.abort()
