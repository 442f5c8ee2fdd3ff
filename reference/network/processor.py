"""Moves the requests and responses of its connections: Kafka's network thread, as an object that the event loop runs.

What Kafka's Processor does over and over in its own thread, this one does when there is something to do: seven steps,
in Kafka's order, over its new connections, its response queue and its Selector. Being woken while it runs makes it
run once more. Nothing in it waits.

Whatever is wrong with a frame closes its connection and touches nothing else. An ApiVersions request of a version
that is not offered is answered in version 0 with UNSUPPORTED_VERSION and the offered ranges (KIP-511).
"""

from __future__ import annotations

import logging
from collections import deque
from typing import Any, Final

from kio.schema.api_versions.v0.response import ApiVersion
from kio.schema.api_versions.v0.response import ApiVersionsResponse as ApiVersionsResponseV0
from kio.schema.errors import ErrorCode
from kio.static.primitive import i16

from nemesis.reference.network.channel_mute import ChannelMuteEvent
from nemesis.reference.network.connection_quotas import ConnectionQuotas
from nemesis.reference.network.kafka_channel import KafkaChannel
from nemesis.reference.network.memory_pool import MemoryPool
from nemesis.reference.network.request_channel import (
    CloseConnectionResponse,
    EndThrottlingResponse,
    NoOpResponse,
    PendingRequest,
    RequestChannel,
    Response,
    SendResponse,
    StartThrottlingResponse,
)
from nemesis.reference.network.selector import Selector
from nemesis.reference.protocol.codec import Codec
from nemesis.reference.protocol.errors import ProtocolError, UnsupportedVersionError
from nemesis.reference.protocol.versions import CONTROL_APIS, OFFERED, ApiKey, is_offered

logger = logging.getLogger(__name__)

_OF_THROTTLING: Final = (StartThrottlingResponse, EndThrottlingResponse)


class Processor:
    """Some of the connections of one listener. Implements ``request_channel.ResponseQueue``."""

    def __init__(
        self,
        processor_id: int,
        listener_name: str,
        *,
        request_channel: RequestChannel,
        control_plane: RequestChannel,
        connection_quotas: ConnectionQuotas,
        memory_pool: MemoryPool,
        max_idle_s: float,
        codec: Codec,
    ) -> None:
        self.id = processor_id
        self._listener_name = listener_name
        self._request_channel = request_channel
        self._control_plane = control_plane
        self._connection_quotas = connection_quotas
        self._memory_pool = memory_pool
        self._codec = codec
        self._selector = Selector(
            memory_pool=memory_pool, max_idle_s=max_idle_s, wakeup=self.wakeup
        )
        self._hosts: dict[KafkaChannel, str] = {}
        self._new_connections: deque[KafkaChannel] = deque()
        self._response_queue: deque[Response] = deque()
        self._undelivered: list[PendingRequest] = []
        """Requests for which their queue has no room."""
        self._is_running = False
        self._is_woken = False

    def accept(self, channel: KafkaChannel) -> None:
        """Take over a connection that is counted already."""
        self._new_connections.append(channel)
        self.wakeup()

    def enqueue_response(self, response: Response) -> None:
        self._response_queue.append(response)
        self.wakeup()

    def wakeup(self) -> None:
        """Do what there is to do."""
        self._is_woken = True
        if self._is_running:
            return
        self._is_running = True
        try:
            while self._is_woken or self._selector.is_ready:
                self._is_woken = False
                self._run_once()
        finally:
            self._is_running = False

    def shutdown(self) -> None:
        """Close all connections."""
        self._selector.close()

    def _run_once(self) -> None:
        """The seven steps. A request takes two rounds, most steps of which have nothing to do: asked for here."""
        selector = self._selector
        if self._new_connections:
            self._configure_new_connections()
        if self._response_queue:
            self._process_new_responses()
        selector.poll()
        if selector.completed_receives or self._undelivered:
            self._process_completed_receives()
        if selector.completed_sends:
            self._process_completed_sends()
        if selector.disconnected:
            self._process_disconnected()
        if self._connection_quotas.max_connections_exceeded(self._listener_name):
            self._close_excess_connection()

    def _configure_new_connections(self) -> None:
        while self._new_connections:
            channel = self._new_connections.popleft()
            self._hosts[channel] = channel.address
            self._selector.register(channel)

    def _process_new_responses(self) -> None:
        while self._response_queue:
            response = self._response_queue.popleft()
            channel = response.pending.channel
            try:
                self._process_response(response, channel)
            except Exception:
                logger.exception("the answer over the connection of %s", channel.address)
                channel.close()

    def _process_response(self, response: Response, channel: KafkaChannel) -> None:
        if not isinstance(response, _OF_THROTTLING):
            self._memory_pool.release(response.pending.size)
        if channel.is_closed:
            return
        match response:
            case SendResponse():
                self._selector.send(channel, response.frame)
            case NoOpResponse():
                channel.muting.handle_event(ChannelMuteEvent.RESPONSE_SENT)
                self._selector.unmute(channel)
            case CloseConnectionResponse():
                channel.close()
            case StartThrottlingResponse():
                channel.muting.handle_event(ChannelMuteEvent.THROTTLE_STARTED)
            case EndThrottlingResponse():
                channel.muting.handle_event(ChannelMuteEvent.THROTTLE_ENDED)
                self._selector.unmute(channel)

    def _process_completed_receives(self) -> None:
        undelivered, self._undelivered = self._undelivered, []
        for pending in undelivered:
            self._deliver(pending)
        receives = self._selector.completed_receives
        for channel, frame in receives:
            try:
                channel.muting.handle_event(ChannelMuteEvent.REQUEST_RECEIVED)
                self._receive(channel, frame)
            except ProtocolError as error:
                self._memory_pool.release(len(frame))
                logger.warning("closing the connection of %s: %s", channel.address, error)
                channel.close()
            except Exception:
                logger.exception("a frame of %s", channel.address)
                self._memory_pool.release(len(frame))
                channel.close()
        receives.clear()

    def _receive(self, channel: KafkaChannel, frame: bytes) -> None:
        try:
            request = self._codec.decode_request(frame, is_offered=is_offered)
        except UnsupportedVersionError as error:
            if error.api_key != ApiKey.API_VERSIONS:
                raise
            answer = self._codec.encode_response(
                unsupported_api_versions(), correlation_id=error.correlation_id
            )
            self._memory_pool.release(len(frame))
            self._selector.send(channel, answer)
        else:
            self._deliver(PendingRequest(request, channel, self, self._listener_name, len(frame)))

    def _deliver(self, pending: PendingRequest) -> None:
        is_control = pending.request.api_key in CONTROL_APIS
        request_channel = self._control_plane if is_control else self._request_channel
        if not request_channel.try_send_request(pending, self.wakeup):
            self._undelivered.append(pending)

    def _process_completed_sends(self) -> None:
        sends = self._selector.completed_sends
        for channel in sends:
            if not channel.is_closed:
                channel.muting.handle_event(ChannelMuteEvent.RESPONSE_SENT)
                self._selector.unmute(channel)
        sends.clear()

    def _process_disconnected(self) -> None:
        disconnected = self._selector.disconnected
        for channel in disconnected:
            self._uncount(channel)
        disconnected.clear()

    def _close_excess_connection(self) -> None:
        channel = self._selector.lowest_priority_channel()
        if channel is not None:
            logger.info("closing the connection of %s: there are too many", channel.address)
            channel.abort()
            self._uncount(channel)

    def _uncount(self, channel: KafkaChannel) -> None:
        host = self._hosts.pop(channel, None)
        if host is not None:
            self._connection_quotas.dec(host)


def unsupported_api_versions() -> Any:
    """The answer that any client can read, whatever version it asked in."""
    return ApiVersionsResponseV0(
        error_code=ErrorCode.unsupported_version,
        api_keys=tuple(
            ApiVersion(
                api_key=i16(key),
                min_version=i16(versions.lowest),
                max_version=i16(versions.highest),
            )
            for key, versions in OFFERED.items()
        ),
    )
