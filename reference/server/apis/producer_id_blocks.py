"""AllocateProducerIds: a broker asks the active controller for a block of producer ids (KIP-730).

Apache Kafka's brokers do so since ``inter.broker.protocol.version`` 3.0; the reference's take their blocks themselves
(``nemesis.reference.server.zk_producer_id_manager``). Any broker but the active controller answers NOT_CONTROLLER.
"""

from __future__ import annotations

from typing import Any

from kio.schema.errors import ErrorCode

from nemesis.reference.controller.kafka_controller import KafkaController
from nemesis.reference.protocol.schema import build
from nemesis.reference.server.apis.conversion import NO_THROTTLE, response_of


class ProducerIdBlockApis:
    """Needs this broker's controller, active or not."""

    def __init__(self, controller: KafkaController) -> None:
        self._controller = controller

    async def handle_allocate_producer_ids(self, message: Any) -> Any:
        """The response; without a block its first id and its length are 0, as in Kafka."""
        block = await self._controller.allocate_producer_ids(
            message.broker_id, message.broker_epoch
        )
        if isinstance(block, ErrorCode):
            return _answer(message, error_code=block)
        return _answer(
            message,
            error_code=ErrorCode.none,
            producer_id_start=block.first_producer_id,
            producer_id_len=block.size,
        )


def _answer(message: Any, **values: Any) -> Any:
    no_block = {"producer_id_start": 0, "producer_id_len": 0}
    return build(response_of(message), throttle_time=NO_THROTTLE, **no_block | values)
