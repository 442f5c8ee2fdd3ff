"""The controller's channels to the brokers: for each broker one queue, one connection and one request-send task.

Requests to a broker are sent in order, one in flight, and sent again until the broker answers or is removed: a request
can therefore arrive twice, and what makes that harmless are the epochs that it carries. Removing a broker, or
resigning, drops its queue. Source: kafka.controller.ControllerChannelManager and RequestSendThread.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Protocol

from nemesis.reference.model import PLAINTEXT, Broker, BrokerEndPoint
from nemesis.reference.network.errors import NetworkError
from nemesis.reference.trace import Kind, Tracer

_logger = logging.getLogger(__name__)

ResponseCallback = Callable[[Any], None]


class Connection(Protocol):
    """What ``nemesis.reference.network.network_client.BrokerConnection`` offers."""

    async def send(self, host: str, port: int, request: Any, *, timeout_s: float) -> Any: ...
    async def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class ControlRequest:
    """A kio request to one broker; ``callback`` gets its kio response."""

    api: str
    request: Any
    callback: ResponseCallback | None = None


class RequestSendThread:
    """Sends one broker's queue, in order, until cancelled."""

    def __init__(
        self,
        controller_id: int,
        broker: BrokerEndPoint,
        *,
        connection: Connection,
        tracer: Tracer,
        timeout_s: float,
        retry_backoff_s: float,
    ) -> None:
        self.broker = broker
        self._queue: asyncio.Queue[ControlRequest] = asyncio.Queue()
        self._connection = connection
        self._tracer = tracer
        self._timeout_s = timeout_s
        self._retry_backoff_s = retry_backoff_s
        self.task = asyncio.get_running_loop().create_task(
            self._run(), name=f"controller-{controller_id}-to-broker-{broker.id}-send-thread"
        )

    def put(self, request: ControlRequest) -> None:
        self._queue.put_nowait(request)

    async def _run(self) -> None:
        try:
            while True:
                item = await self._queue.get()
                response = await self._send_until_answered(item)
                self._answered(item, response)
        finally:
            await self._connection.close()

    def _answered(self, item: ControlRequest, response: Any) -> None:
        try:
            if item.callback is not None:
                item.callback(response)
        except Exception:
            # A bug of ours; without this task the broker would never be told anything again.
            _logger.exception("handling the answer to %s failed", item.api)

    async def _send_until_answered(self, item: ControlRequest) -> Any:
        while True:
            try:
                self._tracer.event(
                    Kind.CONTROL_REQUEST_SENT,
                    api=item.api,
                    peer=self.broker.id,
                    controller_epoch=item.request.controller_epoch,
                    broker_epoch=item.request.broker_epoch,
                )
                return await self._connection.send(
                    self.broker.host, self.broker.port, item.request, timeout_s=self._timeout_s
                )
            except NetworkError as error:
                _logger.info("%s to broker %d: %s; again", item.api, self.broker.id, error)
            except Exception:
                _logger.exception("sending %s to broker %d failed", item.api, self.broker.id)
            await asyncio.sleep(self._retry_backoff_s)


class ControllerChannelManager:
    """The channels of a term of office; brokers come and go. After ``shutdown`` it can be started up again."""

    def __init__(
        self,
        controller_id: int,
        *,
        connection_factory: Callable[[], Connection],
        tracer: Tracer,
        timeout_s: float,
        retry_backoff_s: float,
        listener_name: str = PLAINTEXT,
    ) -> None:
        """``listener_name``: by which listener brokers are told."""
        self._controller_id = controller_id
        self._connection_factory = connection_factory
        self._tracer = tracer
        self._timeout_s = timeout_s
        self._retry_backoff_s = retry_backoff_s
        self._listener_name = listener_name
        self._threads: dict[int, RequestSendThread] = {}
        self._ending: set[asyncio.Task[None]] = set()

    def startup(self, brokers: Iterable[Broker]) -> None:
        for broker in brokers:
            self.add_broker(broker)

    async def shutdown(self) -> None:
        """Drop all queues; returns when no task of ours is left."""
        for broker_id in list(self._threads):
            self.remove_broker(broker_id)
        if self._ending:
            await asyncio.wait(self._ending)

    def add_broker(self, broker: Broker) -> None:
        """Open a channel; nothing changes when there is one."""
        if broker.id in self._threads:
            return
        node = broker.node(self._listener_name)
        if node is None:
            _logger.error("broker %d has no listener %s", broker.id, self._listener_name)
            return
        thread = RequestSendThread(
            self._controller_id,
            node,
            connection=self._connection_factory(),
            tracer=self._tracer,
            timeout_s=self._timeout_s,
            retry_backoff_s=self._retry_backoff_s,
        )
        thread.task.add_done_callback(self._ended)
        self._threads[broker.id] = thread

    def remove_broker(self, broker_id: int) -> None:
        """Drop the broker's queue and end its task: nothing leaves for it any more."""
        thread = self._threads.pop(broker_id, None)
        if thread is not None:
            thread.task.cancel()
            self._ending.add(thread.task)

    def send_request(self, broker_id: int, request: ControlRequest) -> None:
        """Queue a request; one for a broker without a channel is dropped, as it is offline."""
        thread = self._threads.get(broker_id)
        if thread is None:
            _logger.warning("not sending %s to offline broker %d", request.api, broker_id)
            return
        thread.put(request)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._ending.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            _logger.error("%s failed", task.get_name(), exc_info=error)
