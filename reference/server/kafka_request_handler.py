"""The handlers of one plane's requests: tasks that take a request, have KafkaApis answer it, and take the next one.

A handler is free again when its request is answered, except for requests that wait by their nature
(``RequestHandler.waits``): those are answered when they are complete, as those in Kafka's purgatory are. The control
plane has one handler, which serves the controller's requests first come, first served.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from dataclasses import replace
from datetime import timedelta
from functools import partial
from math import ceil
from types import CoroutineType
from typing import Any, Final, Protocol

from kio.static.primitive import i32Timedelta

from nemesis.reference.kafka_config import MAX_INT
from nemesis.reference.network.errors import CloseConnectionError
from nemesis.reference.network.request_channel import PendingRequest, RequestChannel
from nemesis.reference.protocol.codec import Request
from nemesis.reference.server.client_quota_manager import QuotaManagers

logger = logging.getLogger(__name__)

Later = asyncio.Future[Any] | Coroutine[Any, Any, Any]
"""An answer that is yet to come."""
_LATER: Final = (asyncio.Future, CoroutineType)


class RequestHandler(Protocol):
    """KafkaApis."""

    def handle(self, request: Request, listener_name: str, client_host: str) -> Any | Later:
        """The kio response, or None when the request gets none; or what it will be."""

    def waits(self, request: Request) -> bool:
        """True when answering may take as long as others (replicas, the controller, new records) take."""


class KafkaRequestHandlerPool:
    """So many handlers of one RequestChannel."""

    def __init__(
        self,
        request_channel: RequestChannel,
        handler: RequestHandler,
        *,
        name: str,
        num_threads: int,
        quotas: QuotaManagers,
    ) -> None:
        self._quotas = quotas
        self._channel = request_channel
        self._handler = handler
        self._name = name
        self._num_threads = num_threads
        self._tasks: list[asyncio.Task[None]] = []
        self._waiting: dict[asyncio.Future[Any], None] = {}

    def start(self, *, opens: asyncio.Event | None = None) -> None:
        """Start the handlers; with an event, requests stay queued, in order, until it is set."""
        for index in range(self._num_threads):
            name = f"{self._name}-kafka-request-handler-{index}"
            self._tasks.append(asyncio.create_task(self._run(opens), name=name))

    async def shutdown(self) -> None:
        """End all handlers and everything that waits; unanswered requests stay unanswered."""
        futures = [*self._tasks, *self._waiting]
        for future in futures:
            future.cancel()
        await asyncio.gather(*futures, return_exceptions=True)
        self._tasks.clear()

    async def _run(self, opens: asyncio.Event | None) -> None:
        if opens is not None:
            await opens.wait()
        while True:
            pending = await self._channel.receive_request()
            try:
                answer = self._handler.handle(
                    pending.request, pending.listener_name, pending.channel.address
                )
            except Exception as error:  # noqa: BLE001 - told by _refuse
                self._refuse(pending, error)
                continue
            if not isinstance(answer, _LATER):
                self._respond(pending, answer)
                continue
            completion = self._respond_later(pending, answer)
            if not self._handler.waits(pending.request):
                await asyncio.wait((completion,))

    def _respond(self, pending: PendingRequest, message: Any) -> None:
        throttle_s = self._quotas.throttle_time_s(pending.request, pending.size, message)
        if throttle_s > 0:
            self._channel.start_throttling(pending, throttle_s)
            if message is not None and "throttle_time" in message.__dataclass_fields__:
                message = replace(message, throttle_time=_whole_ms(throttle_s))
        if message is None:
            self._channel.send_no_op_response(pending)
        else:
            self._channel.send_response(pending, message)

    def _respond_later(self, pending: PendingRequest, answer: Later) -> asyncio.Future[Any]:
        completion = asyncio.ensure_future(answer)
        self._waiting[completion] = None
        completion.add_done_callback(partial(self._complete, pending))
        return completion

    def _complete(self, pending: PendingRequest, completion: asyncio.Future[Any]) -> None:
        del self._waiting[completion]
        if completion.cancelled():
            self._channel.close_connection(pending)
        elif (error := completion.exception()) is not None:
            self._refuse(pending, error)
        else:
            self._respond(pending, completion.result())

    def _refuse(self, pending: PendingRequest, error: BaseException) -> None:
        if isinstance(error, CloseConnectionError):
            logger.info("closing the connection of %s: %s", pending.channel.address, error)
        else:
            # A bug of ours; one request must not end the handler, and no answer is better than a wrong one.
            logger.error("request %s failed", pending.request, exc_info=error)
        self._channel.close_connection(pending)


def _whole_ms(seconds: float) -> i32Timedelta:
    """Rounded up, and no more than a message can say."""
    return i32Timedelta.parse(timedelta(milliseconds=min(ceil(seconds * 1000), MAX_INT)))
