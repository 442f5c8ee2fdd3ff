"""Leaders have written ISRs themselves and tell of it: the new states are read, and everybody hears of them.

Until then the controller's elections find out by compare-and-set. What they say is deleted once it is processed, and
by a new controller before it reads all states. Source: kafka.controller.KafkaController
(processIsrChangeNotification).
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from nemesis.reference.controller.controller_broker_request_batch import (
    ControllerBrokerRequestBatch,
)
from nemesis.reference.controller.controller_context import ControllerContext
from nemesis.reference.controller.controller_events import Event, IsrChangeNotification
from nemesis.reference.zk import zk_data
from nemesis.reference.zk.kafka_zk_client import KafkaZkClient

_logger = logging.getLogger(__name__)


class IsrChangeNotificationHandler:
    """Runs in the event task."""

    def __init__(
        self,
        context: ControllerContext,
        *,
        zk_client: KafkaZkClient,
        request_batch: ControllerBrokerRequestBatch,
        put: Callable[[Event], None],
    ) -> None:
        self._context = context
        self._session = zk_client.session
        self._states = zk_client.states
        self._notifications = zk_client.isr_change_notifications
        self._request_batch = request_batch
        self._put = put

    def register_handlers(self) -> None:
        self._session.register_znode_child_change_handler(
            zk_data.ISR_CHANGE_NOTIFICATION, lambda: self._put(IsrChangeNotification())
        )

    def unregister_handlers(self) -> None:
        self._session.unregister_znode_child_change_handler(zk_data.ISR_CHANGE_NOTIFICATION)

    async def startup(self) -> None:
        """Forget what was said to earlier controllers: all states are about to be read."""
        await self._delete(await self._notifications.get_all())

    async def process(self) -> None:
        """Learn and spread the states, then delete what asked for it, however that ends."""
        names = await self._notifications.get_all()
        try:
            partitions = await self._notifications.get_partitions_from_isr_change_notifications(
                names
            )
            known = [tp for tp in partitions if tp in self._context.assignments]
            if unknown := [tp for tp in partitions if tp not in self._context.assignments]:
                _logger.warning("ISR changes of unknown partitions are ignored: %s", unknown)
            if known:
                self._context.leadership |= await self._states.get_topic_partition_states(known)
                self._request_batch.send_update_metadata(
                    self._context.live_or_shutting_down_broker_ids, known
                )
        finally:
            await self._delete(names)

    async def _delete(self, names: list[str]) -> None:
        fence = self._context.fence
        if fence is not None:
            await self._notifications.delete(names, fence)
