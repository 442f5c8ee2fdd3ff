"""The queue between the connections and the request handlers, bounded: a full one makes the connections wait.

There are two of each: data-plane requests go to ``num.io.threads`` handlers, the controller's requests
to one handler that serves them first come, first served (Kafka's ``control.plane.listener.name``), so
that a LeaderAndIsr never waits behind produces. A handler is free again when its request is answered,
except for requests that wait by their nature (``RequestHandler.waits``): those are completed by a task
of their own, as Kafka's purgatory does.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any, NamedTuple, Protocol

from reference.protocol.codec import Request
from reference.protocol.versions import CONTROL_APIS

logger = logging.getLogger(__name__)


class CloseConnectionError(Exception):
    """The request cannot be answered in the protocol: its connection is closed, as Kafka does for acks=0."""


class PendingRequest(NamedTuple):
    """A request in the channel; ``response`` gets a kio message, None for no answer, or an error."""

    request: Request
    response: asyncio.Future[Any]


class RequestHandler(Protocol):
    """KafkaApis."""

    async def handle(self, request: Request) -> Any:
        """The kio response, or None when the request gets none."""

    def waits(self, request: Request) -> bool:
        """True when answering may take as long as others (replicas, the controller, new records) take."""


class RequestChannel:
    """Carries requests to the handlers and their responses back."""

    def __init__(self, *, queued_max_requests: int, num_io_threads: int) -> None:
        self._data_plane: asyncio.Queue[PendingRequest] = asyncio.Queue(queued_max_requests)
        self._control_plane: asyncio.Queue[PendingRequest] = asyncio.Queue(queued_max_requests)
        self._num_io_threads = num_io_threads
        self._handlers: list[asyncio.Task[None]] = []
        self._waiting: set[asyncio.Task[None]] = set()

    async def send(self, request: Request) -> Any:
        """Queue a request (waiting for room) and return what its handler answered."""
        pending = PendingRequest(request, asyncio.get_running_loop().create_future())
        is_control = request.api_key in CONTROL_APIS
        await (self._control_plane if is_control else self._data_plane).put(pending)
        return await pending.response

    def start(
        self, handler: RequestHandler, *, control_plane_opens: asyncio.Event | None = None
    ) -> None:
        """Start the handler tasks; control requests stay queued, in order, until the event is set."""
        self._start_handler("control", self._serve_control_plane(handler, control_plane_opens))
        for index in range(self._num_io_threads):
            self._start_handler(str(index), self._serve(self._data_plane, handler))

    async def shutdown(self) -> None:
        """End all handlers and everything that waits; unanswered requests stay unanswered."""
        tasks = [*self._handlers, *self._waiting]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._handlers.clear()

    def _start_handler(self, name: str, serving: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(serving, name=f"kafka-request-handler-{name}")
        self._handlers.append(task)

    async def _serve_control_plane(
        self, handler: RequestHandler, opens: asyncio.Event | None
    ) -> None:
        if opens is not None:
            await opens.wait()
        await self._serve(self._control_plane, handler)

    async def _serve(self, queue: asyncio.Queue[PendingRequest], handler: RequestHandler) -> None:
        while True:
            pending = await queue.get()
            answering = _answer(pending, handler)
            if handler.waits(pending.request):
                self._keep(answering)
            else:
                await answering

    def _keep(self, answering: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(answering, name="delayed-operation")
        self._waiting.add(task)
        task.add_done_callback(self._waiting.discard)


async def _answer(pending: PendingRequest, handler: RequestHandler) -> None:
    try:
        response = await handler.handle(pending.request)
    except CloseConnectionError as error:
        _fail(pending, error)
    except asyncio.CancelledError:
        pending.response.cancel()
        raise
    except Exception as error:
        # A bug of ours; one request must not end the handler, and no answer is better than a wrong one.
        logger.exception("request %s failed", pending.request)
        _fail(pending, CloseConnectionError(str(error)))
    else:
        if not pending.response.done():
            pending.response.set_result(response)


def _fail(pending: PendingRequest, error: Exception) -> None:
    if not pending.response.done():
        pending.response.set_exception(error)
