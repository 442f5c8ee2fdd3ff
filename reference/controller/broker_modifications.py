"""A live broker changes its registration (end point, rack): everybody is told, nothing is elected.

Each live broker's znode is watched from when it is known until it is gone. One that was registered anew has another
epoch: that is a bounce, which ``ClusterChanges`` sees. Source: kafka.controller.BrokerModificationsHandler and
KafkaController.processBrokerModification.

Limit: as in Kafka, requests to the broker itself go on to the address that it had when its channel was opened.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable

from nemesis.reference.controller.controller_broker_request_batch import (
    ControllerBrokerRequestBatch,
)
from nemesis.reference.controller.controller_context import ControllerContext
from nemesis.reference.controller.controller_events import BrokerModifications, Event
from nemesis.reference.zk import zk_data
from nemesis.reference.zk.kafka_zk_client import KafkaZkClient
from nemesis.reference.zk.pipelining import pipelined

_logger = logging.getLogger(__name__)


class BrokerModificationHandlers:
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
        self._zk_client = zk_client
        self._request_batch = request_batch
        self._put = put
        self._watched: dict[int, None] = {}

    async def register(self, broker_ids: Iterable[int]) -> None:
        """Watch the znodes of these brokers; what has changed since they were read is processed, too."""
        session, new = self._zk_client.session, list(broker_ids)
        for broker_id in new:
            event = BrokerModifications(broker_id)
            session.register_znode_change_handler(
                zk_data.broker_path(broker_id),
                lambda event=event: self._put(event),  # type: ignore[misc]
            )
            self._watched[broker_id] = None
        await pipelined(new, self._watch)

    async def _watch(self, broker_id: int) -> None:
        broker_and_epoch = await self._zk_client.brokers.get_broker_and_epoch(broker_id)
        if broker_and_epoch is not None and broker_and_epoch[0] != self._context.live_brokers.get(
            broker_id
        ):
            self._put(BrokerModifications(broker_id))

    def unregister(self, broker_ids: Iterable[int]) -> None:
        for broker_id in broker_ids:
            self._watched.pop(broker_id, None)
            path = zk_data.broker_path(broker_id)
            self._zk_client.session.unregister_znode_change_handler(path)

    def unregister_all(self) -> None:
        self.unregister(list(self._watched))

    async def process(self, event: BrokerModifications) -> None:
        """Read the broker again, and tell all brokers if it is not as it was."""
        context, broker_id = self._context, event.broker_id
        broker_and_epoch = await self._zk_client.brokers.get_broker_and_epoch(broker_id)
        known = context.live_brokers.get(broker_id)
        if broker_and_epoch is None or known is None:
            return
        broker, epoch = broker_and_epoch
        if epoch != context.live_broker_epochs[broker_id] or broker == known:
            return
        _logger.info("broker %d was %s and is %s", broker_id, known, broker)
        context.live_brokers[broker_id] = broker
        self._request_batch.send_update_metadata(context.live_or_shutting_down_broker_ids, ())
