"""InitProducerId: who wants to send idempotently is given a producer id (KIP-98).

A producer without a transactional id is given a new id, with epoch 0, also if it had another: it raises its epoch
itself (KIP-360). The transaction coordinator answers a producer with a transactional id.
"""

from __future__ import annotations

import logging
from typing import Any, Final

from kio.schema.errors import ErrorCode

from nemesis.reference.coordinator.transaction.transaction_coordinator import (
    TransactionCoordinator,
)
from nemesis.reference.coordinator.transaction.transaction_metadata import ProducerIdAndEpoch
from nemesis.reference.coordinator.transaction.transaction_requests import (
    InitProducerId,
    InitProducerIdResult,
)
from nemesis.reference.log.producer_state_entry import NO_PRODUCER_ID
from nemesis.reference.protocol.schema import build
from nemesis.reference.server.apis.conversion import NO_THROTTLE, milliseconds, response_of
from nemesis.reference.server.apis.transaction_coordination import client_error
from nemesis.reference.server.zk_producer_id_manager import ZkProducerIdManager
from nemesis.reference.zk.errors import ZooKeeperError
from nemesis.reference.zk.producer_id_block import ProducerIdsExhaustedError

_logger = logging.getLogger(__name__)

_NO_PRODUCER_EPOCH: Final = -1
_FIRST_VERSION_WITH_FENCED: Final = 4


class ProducerApis:
    """Needs the producer ids and the coordinator of this broker."""

    def __init__(
        self, producer_ids: ZkProducerIdManager, coordinator: TransactionCoordinator
    ) -> None:
        self._producer_ids = producer_ids
        self._coordinator = coordinator

    async def handle_init_producer_id(self, message: Any) -> Any:
        """The response, once there is an id; COORDINATOR_LOAD_IN_PROGRESS, to be asked again, if ZooKeeper has none."""
        if (error := _refusal(message)) is not None:
            return _answer(message, error)
        try:
            result = await self._initialized(message)
        except ZooKeeperError as failure:
            _logger.warning("no producer id is given out: %s", failure)
            return _answer(message, ErrorCode.coordinator_load_in_progress)
        except ProducerIdsExhaustedError as failure:
            _logger.error("%s", failure)
            return _answer(message, ErrorCode.unknown_server_error)
        error = client_error(result.error, message.__version__, _FIRST_VERSION_WITH_FENCED)
        return _answer(message, error, result.producer_id, result.producer_epoch)

    async def _initialized(self, message: Any) -> InitProducerIdResult:
        if message.transactional_id is None:
            producer_id = await self._producer_ids.generate_producer_id()
            return InitProducerIdResult(ErrorCode.none, producer_id, 0)
        producer_id = getattr(message, "producer_id", NO_PRODUCER_ID)
        expected = (
            None
            if producer_id == NO_PRODUCER_ID
            else ProducerIdAndEpoch(producer_id, message.producer_epoch)
        )
        timeout_ms = milliseconds(message.transaction_timeout)
        return await self._coordinator.init_producer_id(
            InitProducerId(message.transactional_id, timeout_ms, expected)
        )


def _refusal(message: Any) -> ErrorCode | None:
    """Why no id is given; an id without an epoch, or an epoch without an id, is as little allowed as in Kafka."""
    has_id = getattr(message, "producer_id", NO_PRODUCER_ID) != NO_PRODUCER_ID
    has_epoch = getattr(message, "producer_epoch", _NO_PRODUCER_EPOCH) != _NO_PRODUCER_EPOCH
    return ErrorCode.invalid_request if has_id is not has_epoch else None


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
