"""Accepts the connections of one listener and hands them to its Processors in turn.

The event loop accepts; a connection that may not come in yet (``max.connections``, ``max.connection.creation.rate``)
waits here without being read, as it would wait in the kernel's backlog while Kafka's Acceptor sleeps. No more than
``socket.listen.backlog.size`` wait; others are closed.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Sequence

from nemesis.reference.kafka_config import KafkaConfig
from nemesis.reference.model import EndPoint
from nemesis.reference.network.connection_quotas import ConnectionQuotas
from nemesis.reference.network.errors import TooManyConnectionsError
from nemesis.reference.network.kafka_channel import KafkaChannel
from nemesis.reference.network.processor import Processor
from nemesis.reference.ports import SocketBuffers

logger = logging.getLogger(__name__)


class Acceptor:
    """One listener's port."""

    def __init__(
        self,
        end_point: EndPoint,
        processors: Sequence[Processor],
        *,
        config: KafkaConfig,
        connection_quotas: ConnectionQuotas,
        socket_buffers: SocketBuffers | None,
    ) -> None:
        self.end_point = end_point
        self.processors = processors
        self._config = config
        self._connection_quotas = connection_quotas
        self._socket_buffers = socket_buffers
        self._server: asyncio.Server | None = None
        self._waiting: deque[KafkaChannel] = deque()
        self._throttled: asyncio.TimerHandle | None = None
        self._is_first_counted = False
        """Of the connections that wait, whether the first is among those that were created."""
        self._current_processor = 0

    async def start(self) -> int:
        """Listen; returns the port (for port 0 the one that was given). Raises OSError when it is taken."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(
            self.new_channel,
            self.end_point.host,
            self.end_point.port,
            backlog=self._config.socket_listen_backlog_size,
        )
        listening = self._server.sockets[0]
        if self._socket_buffers is not None:
            self._socket_buffers.set(
                listening, receive_bytes=self._config.socket_receive_buffer_bytes
            )
        return int(listening.getsockname()[1])

    def stop_accepting(self) -> None:
        """The first step of a shutdown; what the event loop has accepted comes in within two of its iterations.

        asyncio loses a connection that it accepted in the iteration in which its server is closed: neither end would
        learn of it (CPython's issue 109564).
        """
        if self._server is not None:
            for listening in self._server.sockets:
                asyncio.get_running_loop().remove_reader(listening)

    def shutdown(self) -> None:
        """Listen no more; what waits is closed."""
        if self._server is not None:
            self._server.close()
        if self._throttled is not None:
            self._throttled.cancel()
        while self._waiting:
            self._waiting.popleft().abort()

    def accept_new_connections(self) -> None:
        """Hand over those that wait, in their order, as far as the quotas let them in."""
        name = self.end_point.listener_name
        while self._waiting and self._throttled is None:
            if self._waiting[0].is_closed:
                self._waiting.popleft()
                continue
            if not self._connection_quotas.has_slot(name, self.accept_new_connections):
                return
            if not self._is_first_counted:
                self._is_first_counted = True
                throttle_s = self._connection_quotas.throttle_time_s(name)
                if throttle_s > 0:
                    self._throttle(throttle_s)
                    return
            self._is_first_counted = False
            self._assign(self._waiting.popleft())

    def new_channel(self) -> KafkaChannel:
        """What the event loop gives a connection that it has accepted."""
        return KafkaChannel(
            max_bytes=self._config.socket_request_max_bytes, accepted=self._accepted
        )

    def _accepted(self, channel: KafkaChannel) -> None:
        if len(self._waiting) >= self._config.socket_listen_backlog_size:
            channel.abort()
            return
        self._waiting.append(channel)
        self.accept_new_connections()
        if self._waiting and self._waiting[-1] is channel:
            channel.transport.pause_reading()

    def _throttle(self, seconds: float) -> None:
        loop = asyncio.get_running_loop()
        self._throttled = loop.call_later(seconds, self._end_throttling)

    def _end_throttling(self) -> None:
        self._throttled = None
        self.accept_new_connections()

    def _assign(self, channel: KafkaChannel) -> None:
        try:
            self._connection_quotas.inc(channel.address)
        except TooManyConnectionsError as error:
            logger.info("closing a new connection: %s", error)
            channel.abort()
            return
        if self._socket_buffers is not None:
            self._socket_buffers.set(
                channel.transport.get_extra_info("socket"),
                send_bytes=self._config.socket_send_buffer_bytes,
            )
        processor = self.processors[self._current_processor % len(self.processors)]
        self._current_processor += 1
        processor.accept(channel)
