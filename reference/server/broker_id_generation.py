"""A broker without ``broker.id`` gets one: that of its log directories, else the next one that ZooKeeper gives out.

``/brokers/seqid`` is written, and the version that it then has is nobody else's; the id is that much above
``reserved.broker.max.id``. It is found again in ``meta.properties``. All parts of a broker are named after its id, so
this comes before any of them is made, in a ZooKeeper session of its own.
Source: kafka.server.KafkaServer.getOrGenerateBrokerId.
"""

from __future__ import annotations

import logging

import msgspec

from nemesis.reference.kafka_config import KafkaConfig
from nemesis.reference.ports import Disk, ZooKeeperClient
from nemesis.reference.server.broker_metadata_checkpoint import BrokerMetadataCheckpoint
from nemesis.reference.trace import NullTracer
from nemesis.reference.zk.kafka_zk_client import KafkaZkClient

_logger = logging.getLogger(__name__)


async def with_broker_id(
    config: KafkaConfig, *, disk: Disk, zookeeper: ZooKeeperClient
) -> KafkaConfig:
    """Return the configuration with a broker id.

    ``zookeeper`` is started and closed if an id has to be generated, for which it is waited for as long as it takes.
    Raises ``BrokerMetadataError`` when log directories contradict one another.
    """
    if config.broker_id >= 0:
        return config
    broker_id = BrokerMetadataCheckpoint(disk, config.log_dirs).stored_broker_id()
    if broker_id is None:
        broker_id = config.reserved_broker_max_id + await _sequence_id(zookeeper)
        _logger.info("broker.id is %d from now on", broker_id)
    return msgspec.structs.replace(config, broker_id=broker_id)


async def _sequence_id(zookeeper: ZooKeeperClient) -> int:
    zk_client = KafkaZkClient(zookeeper, tracer=NullTracer())
    try:
        await zookeeper.start()
        generate = zk_client.brokers.generate_broker_sequence_id
        return await zk_client.session.retry_across_sessions(generate)
    finally:
        await zookeeper.close()
