"""A broker says that a log directory failed: it is asked about all its replicas, and its answers tell which are lost.

The question is a LeaderAndIsr with what it knows already; it answers KAFKA_STORAGE_ERROR for replicas that are offline,
and those are then taken offline here (``ReplicasFailed``). Source: kafka.controller.KafkaController
(processLogDirEventNotification, onBrokerLogDirFailure); KIP-112.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from nemesis.reference.controller.controller_context import ControllerContext, ReplicaState
from nemesis.reference.controller.controller_events import Event, LogDirEventNotification
from nemesis.reference.controller.replica_state_machine import ReplicaStateMachine
from nemesis.reference.zk import zk_data
from nemesis.reference.zk.kafka_zk_client import KafkaZkClient

_logger = logging.getLogger(__name__)


class LogDirFailures:
    """Runs in the event task."""

    def __init__(
        self,
        context: ControllerContext,
        *,
        zk_client: KafkaZkClient,
        replica_state_machine: ReplicaStateMachine,
        put: Callable[[Event], None],
    ) -> None:
        self._context = context
        self._session = zk_client.session
        self._events = zk_client.log_dir_events
        self._replica_state_machine = replica_state_machine
        self._put = put

    def register_handlers(self) -> None:
        self._session.register_znode_child_change_handler(
            zk_data.LOG_DIR_EVENTS, lambda: self._put(LogDirEventNotification())
        )

    def unregister_handlers(self) -> None:
        self._session.unregister_znode_child_change_handler(zk_data.LOG_DIR_EVENTS)

    async def startup(self) -> None:
        """Forget what was said to earlier controllers: every broker is asked about all its replicas now."""
        await self._delete(await self._events.get_all())

    async def process(self) -> None:
        """Ask the brokers that have said something, then delete what they said, however that ends."""
        names = await self._events.get_all()
        try:
            broker_ids = await self._events.get_broker_ids_from_log_dir_events(names)
            if broker_ids:
                _logger.info("a log directory has failed on brokers %s", broker_ids)
                await self._replica_state_machine.handle_state_changes(
                    self._context.replicas_on_brokers(broker_ids), ReplicaState.ONLINE
                )
        finally:
            await self._delete(names)

    async def _delete(self, names: list[str]) -> None:
        fence = self._context.fence
        if fence is not None:
            await self._events.delete(names, fence)
