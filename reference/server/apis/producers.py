"""InitProducerId: who wants to send idempotently is given a producer id (KIP-98).

A producer without a transactional id is given a new id, with epoch 0, whatever id it had: it raises its epoch itself
(KIP-360). One with a transactional id needs its coordinator, which no broker is: NOT_COORDINATOR.
"""

from __future__ import annotations

import logging
from typing import Any, Final

from kio.schema.errors import ErrorCode

from nemesis.reference.log.producer_state_entry import NO_PRODUCER_ID
from nemesis.reference.protocol.schema import build
from nemesis.reference.server.apis.conversion import NO_THROTTLE, response_of
from nemesis.reference.server.zk_producer_id_manager import ZkProducerIdManager
from nemesis.reference.zk.errors import ZooKeeperError
from nemesis.reference.zk.producer_id_block import ProducerIdsExhaustedError

_logger = logging.getLogger(__name__)

_NO_PRODUCER_EPOCH: Final = -1


class ProducerApis:
    """Needs the producer ids only."""

    def __init__(self, producer_ids: ZkProducerIdManager) -> None:
        self._producer_ids = producer_ids

    async def handle_init_producer_id(self, message: Any) -> Any:
        """The response, once there is an id; COORDINATOR_LOAD_IN_PROGRESS, to be asked again, if ZooKeeper has none."""
        if (error := _refusal(message)) is not None:
            return _answer(message, error)
        try:
            producer_id = await self._producer_ids.generate_producer_id()
        except ZooKeeperError as failure:
            _logger.warning("no producer id is given out: %s", failure)
            return _answer(message, ErrorCode.coordinator_load_in_progress)
        except ProducerIdsExhaustedError as failure:
            _logger.error("%s", failure)
            return _answer(message, ErrorCode.unknown_server_error)
        return _answer(message, ErrorCode.none, producer_id, 0)


def _refusal(message: Any) -> ErrorCode | None:
    """Why no id is given; an id without an epoch, or an epoch without an id, is as little allowed as in Kafka."""
    has_id = getattr(message, "producer_id", NO_PRODUCER_ID) != NO_PRODUCER_ID
    has_epoch = getattr(message, "producer_epoch", _NO_PRODUCER_EPOCH) != _NO_PRODUCER_EPOCH
    if has_id is not has_epoch or message.transactional_id == "":
        return ErrorCode.invalid_request
    if message.transactional_id is None:
        return None
    # There are no transactions. After NOT_COORDINATOR clients would look for another coordinator for ever.
    return ErrorCode.transactional_id_authorization_failed


def _answer(
    message: Any,
    error: ErrorCode,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = _NO_PRODUCER_EPOCH,
) -> Any:
    return build(
        response_of(message),
        throttle_time=NO_THROTTLE,
        error_code=error,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
    )
