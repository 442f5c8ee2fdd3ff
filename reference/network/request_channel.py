"""The queue between Processors and request handlers, bounded, and the way back for responses.

A request for which there is no room stays with its Processor, whose connection reads on only when it is answered: a
full queue makes clients wait (``queued.max.requests``). There are two channels, one for each plane; a Processor says
which one a request goes to.

Responses are of Kafka's five kinds. Each says what the Processor of the request does with its connection.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

from nemesis.reference.network.kafka_channel import KafkaChannel
from nemesis.reference.protocol.codec import Codec, Request

logger = logging.getLogger(__name__)


class ResponseQueue(Protocol):
    """The Processor of a request."""

    def enqueue_response(self, response: Response) -> None: ...


class PendingRequest(NamedTuple):
    """Kafka's RequestChannel.Request: a request, and who wants its answer."""

    request: Request
    channel: KafkaChannel
    processor: ResponseQueue
    listener_name: str
    """Where it came in: what names brokers in the answer names them by this listener."""
    size: int
    """In bytes, without the frame's size."""


class SendResponse(NamedTuple):
    """The answer is to be sent, and the connection goes on."""

    pending: PendingRequest
    frame: bytes


class NoOpResponse(NamedTuple):
    """There is no answer (Produce with acks=0); the connection goes on."""

    pending: PendingRequest


class CloseConnectionResponse(NamedTuple):
    """There is no answer but the end of the connection."""

    pending: PendingRequest


class StartThrottlingResponse(NamedTuple):
    """The client is over its quota: its connection stays muted, beyond the answer, until the throttling ends."""

    pending: PendingRequest


class EndThrottlingResponse(NamedTuple):
    """The client has been muted for long enough."""

    pending: PendingRequest


Response = (
    SendResponse
    | NoOpResponse
    | CloseConnectionResponse
    | StartThrottlingResponse
    | EndThrottlingResponse
)


class RequestChannel:
    """One plane's requests and responses."""

    def __init__(self, queue_size: int, codec: Codec) -> None:
        self._queue: asyncio.Queue[PendingRequest] = asyncio.Queue(queue_size)
        self._codec = codec
        self._waiting: dict[Callable[[], None], None] = {}

    def try_send_request(self, pending: PendingRequest, wakeup: Callable[[], None]) -> bool:
        """Queue a request if there is room; if not, ``wakeup`` is called once when there may be."""
        if self._queue.full():
            self._waiting[wakeup] = None
            return False
        self._queue.put_nowait(pending)
        return True

    async def receive_request(self) -> PendingRequest:
        """The next request, for a handler. Who found the queue full longest ago may fill it again first."""
        pending = await self._queue.get()
        if self._waiting:
            wakeup = next(iter(self._waiting))
            del self._waiting[wakeup]
            wakeup()
        return pending

    def send_response(self, pending: PendingRequest, message: Any) -> None:
        """Answer with a kio message. Raises nothing: what cannot be encoded ends the connection."""
        try:
            frame = self._codec.encode_response(
                message, correlation_id=pending.request.correlation_id
            )
        except Exception:
            logger.exception("the answer to %s cannot be encoded", pending.request)
            self.close_connection(pending)
        else:
            pending.processor.enqueue_response(SendResponse(pending, frame))

    def send_no_op_response(self, pending: PendingRequest) -> None:
        """Let the connection go on without an answer."""
        pending.processor.enqueue_response(NoOpResponse(pending))

    def close_connection(self, pending: PendingRequest) -> None:
        """End the connection instead of an answer."""
        pending.processor.enqueue_response(CloseConnectionResponse(pending))

    def start_throttling(self, pending: PendingRequest, seconds: float) -> None:
        """Keep the connection muted for so long, whenever the answer is sent; called before it is."""
        pending.processor.enqueue_response(StartThrottlingResponse(pending))
        loop = asyncio.get_running_loop()
        loop.call_later(seconds, pending.processor.enqueue_response, EndThrottlingResponse(pending))
