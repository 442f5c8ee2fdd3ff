"""A broker asks the controller to take its partitions before it stops (``controlled.shutdown.enable``).

It asks up to ``controlled.shutdown.max.retries`` times: the controller may be unknown, out of reach or new, or leave
partitions that nobody else can lead. A broker that is not let go stops all the same. Source:
kafka.server.KafkaServer.controlledShutdown.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from kio.schema.controlled_shutdown.v3.request import ControlledShutdownRequest
from kio.schema.errors import ErrorCode
from kio.schema.types import BrokerId
from kio.static.primitive import i64

from nemesis.reference.kafka_config import KafkaConfig
from nemesis.reference.network.errors import NetworkError
from nemesis.reference.server.connection import Connection
from nemesis.reference.server.metadata_cache import MetadataCache

_logger = logging.getLogger(__name__)


async def controlled_shutdown(
    config: KafkaConfig,
    *,
    metadata_cache: MetadataCache,
    broker_epoch: Callable[[], int],
    connection: Connection,
) -> bool:
    """Return whether the controller has let the broker go; the connection is closed then in any case."""
    try:
        for attempt in range(config.controlled_shutdown_max_retries):
            if attempt:
                await asyncio.sleep(config.controlled_shutdown_retry_backoff_ms / 1000)
            request = ControlledShutdownRequest(
                broker_id=BrokerId(config.broker_id), broker_epoch=i64(broker_epoch())
            )
            if await _ask(config, metadata_cache, connection, request):
                return True
        return False
    finally:
        await connection.close()


async def _ask(
    config: KafkaConfig,
    metadata_cache: MetadataCache,
    connection: Connection,
    request: ControlledShutdownRequest,
) -> bool:
    controller = metadata_cache.controller_node(config.listener_config.inter_broker_listener_name)
    if controller is None:
        _logger.info("controlled shutdown: no controller is known")
        return False
    try:
        response = await connection.send(
            controller.host,
            controller.port,
            request,
            timeout_s=config.controller_socket_timeout_ms / 1000,
        )
    except NetworkError as error:
        _logger.warning("controlled shutdown: controller %d: %s", controller.id, error)
        return False
    if response.error_code is not ErrorCode.none:
        _logger.info("controlled shutdown: refused with %s", response.error_code.name.upper())
        return False
    remaining = [f"{p.topic_name}-{p.partition_index}" for p in response.remaining_partitions]
    if remaining:
        _logger.info("controlled shutdown: nobody else can lead %s", ", ".join(remaining))
    return not remaining
