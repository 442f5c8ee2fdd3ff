"""Processes AllocateProducerIds: gives the next block of producer ids to a live broker (KIP-730).

A block that cannot be taken from ``/latest_producer_id_block`` is refused and the controller stays in office: nothing
of the cluster's metadata rests on that znode. Source: kafka.controller.KafkaController.processAllocateProducerIds.
"""

from __future__ import annotations

import logging

from kio.schema.errors import ErrorCode

from nemesis.reference.controller.controller_context import ControllerContext
from nemesis.reference.controller.controller_events import (
    AllocateProducerIds,
    AllocateProducerIdsResult,
)
from nemesis.reference.zk.errors import NoNodeError, ZnodeFormatError
from nemesis.reference.zk.producer_id_block import ProducerIdBlockZnode, ProducerIdsExhaustedError

_logger = logging.getLogger(__name__)


class ProducerIdAllocations:
    """Runs in the event task."""

    def __init__(self, context: ControllerContext, blocks: ProducerIdBlockZnode) -> None:
        self._context = context
        self._blocks = blocks

    async def process(self, event: AllocateProducerIds) -> None:
        """Answer the event. Raises ``SessionExpiredError``; the event is then refused, and a block may be left out."""
        error = self._error_of_sender(event)
        event.answer(await self._next_block(event.broker_id) if error is None else error)

    def _error_of_sender(self, event: AllocateProducerIds) -> ErrorCode | None:
        broker_epoch = self._context.live_broker_epochs.get(event.broker_id)
        if broker_epoch is None:
            return ErrorCode.broker_id_not_registered
        return None if broker_epoch == event.broker_epoch else ErrorCode.stale_broker_epoch

    async def _next_block(self, broker_id: int) -> AllocateProducerIdsResult:
        try:
            return await self._blocks.allocate(broker_id)
        except (NoNodeError, ZnodeFormatError, ProducerIdsExhaustedError) as error:
            _logger.error("broker %d gets no producer ids: %s", broker_id, error)
            return ErrorCode.unknown_server_error
