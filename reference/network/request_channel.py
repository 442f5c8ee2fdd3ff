"""The queue between the connections and the request handlers, bounded: a full one makes the connections wait.

There are two of each: data-plane requests go to ``num.io.threads`` handlers, the controller's requests
to one handler that serves them first come, first served (Kafka's ``control.plane.listener.name``), so
that a LeaderAndIsr never waits behind produces. A handler is free again when its request is answered,
except for requests that wait by their nature (``RequestHandler.waits``): those are answered when they
are complete, as those in Kafka's purgatory are.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from functools import partial
from types import CoroutineType
from typing import Any, Final, NamedTuple, Protocol

from reference.protocol.codec import Request
from reference.protocol.versions import CONTROL_APIS

logger = logging.getLogger(__name__)

Later = asyncio.Future[Any] | Coroutine[Any, Any, Any]
"""An answer that is yet to come."""
_LATER: Final = (asyncio.Future, CoroutineType)


class CloseConnectionError(Exception):
    """The request cannot be answered in the protocol: its connection is closed, as Kafka does for acks=0."""


class Connection(Protocol):
    """Where a request came from; exactly one of these is called for it, unless the broker stops first."""

    def answer(self, request: Request, response: Any) -> None:
        """Send a kio message; None: the request gets no answer. Raises nothing."""

    def refuse(self, reason: str) -> None:
        """Close the connection instead. Raises nothing."""


class PendingRequest(NamedTuple):
    """A request in the channel, and who wants its answer."""

    request: Request
    connection: Connection


class RequestHandler(Protocol):
    """KafkaApis."""

    def handle(self, request: Request) -> Any | Later:
        """The kio response, or None when the request gets none; or what it will be."""

    def waits(self, request: Request) -> bool:
        """True when answering may take as long as others (replicas, the controller, new records) take."""


class RequestChannel:
    """Carries requests to the handlers and their responses back."""

    def __init__(self, *, queued_max_requests: int, num_io_threads: int) -> None:
        self._data_plane: asyncio.Queue[PendingRequest] = asyncio.Queue(queued_max_requests)
        self._control_plane: asyncio.Queue[PendingRequest] = asyncio.Queue(queued_max_requests)
        self._num_io_threads = num_io_threads
        self._handlers: list[asyncio.Task[None]] = []
        self._waiting: dict[asyncio.Future[Any], None] = {}

    def send_request(self, request: Request, connection: Connection) -> None:
        """Queue a request, or let it wait for room; its connection sends no other one before the answer."""
        pending = PendingRequest(request, connection)
        queue = self._control_plane if request.api_key in CONTROL_APIS else self._data_plane
        if queue.full():
            waiting = asyncio.create_task(queue.put(pending), name="full-request-queue")
            self._waiting[waiting] = None
            waiting.add_done_callback(self._waiting.pop)
        else:
            queue.put_nowait(pending)

    def start(
        self, handler: RequestHandler, *, control_plane_opens: asyncio.Event | None = None
    ) -> None:
        """Start the handler tasks; control requests stay queued, in order, until the event is set."""
        self._start_handler("control", self._serve_control_plane(handler, control_plane_opens))
        for index in range(self._num_io_threads):
            self._start_handler(str(index), self._serve(self._data_plane, handler))

    async def shutdown(self) -> None:
        """End all handlers and everything that waits; unanswered requests stay unanswered."""
        futures = [*self._handlers, *self._waiting]
        for future in futures:
            future.cancel()
        await asyncio.gather(*futures, return_exceptions=True)
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
            try:
                answer = handler.handle(pending.request)
            except Exception as error:  # noqa: BLE001 - told by _refuse
                _refuse(pending, error)
                continue
            if not isinstance(answer, _LATER):
                pending.connection.answer(pending.request, answer)
                continue
            completion = self._answer_later(pending, answer)
            if not handler.waits(pending.request):
                await asyncio.wait((completion,))

    def _answer_later(self, pending: PendingRequest, answer: Later) -> asyncio.Future[Any]:
        completion = asyncio.ensure_future(answer)
        self._waiting[completion] = None
        completion.add_done_callback(partial(self._complete, pending))
        return completion

    def _complete(self, pending: PendingRequest, completion: asyncio.Future[Any]) -> None:
        del self._waiting[completion]
        if completion.cancelled():
            pending.connection.refuse("the broker stops")
        elif (error := completion.exception()) is not None:
            _refuse(pending, error)
        else:
            pending.connection.answer(pending.request, completion.result())


def _refuse(pending: PendingRequest, error: BaseException) -> None:
    if not isinstance(error, CloseConnectionError):
        # A bug of ours; one request must not end the handler, and no answer is better than a wrong one.
        logger.error("request %s failed", pending.request, exc_info=error)
    pending.connection.refuse(str(error))
