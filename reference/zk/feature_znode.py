"""``/feature``: the cluster's finalized features (KIP-584). Kafka 3.9 in ZooKeeper mode has none, but keeps the znode.

The controller creates it when it takes office; one that says that features are disabled is enabled. Source:
kafka.zk.FeatureZNode and KafkaController.enableFeatureVersioning.
"""

from __future__ import annotations

import logging

from nemesis.reference.zk import zk_data, znode_json
from nemesis.reference.zk.errors import (
    BadVersionError,
    NodeExistsError,
    NoNodeError,
    ZnodeFormatError,
)
from nemesis.reference.zk.zookeeper_session import ZooKeeperSession

_logger = logging.getLogger(__name__)

VERSION = 2
DISABLED, ENABLED = 0, 1


def encode(status: int = ENABLED) -> bytes:
    return znode_json.encode({"version": VERSION, "status": status, "features": {}})


class FeatureZnode:
    """See the module."""

    def __init__(self, session: ZooKeeperSession) -> None:
        self._session = session

    async def enable_feature_versioning(self) -> None:
        """Leave ``/feature`` enabled; what cannot be read, or is of a newer Kafka, is logged and left alone."""
        try:
            data, stat = await self._session.get(zk_data.FEATURE)
            status = znode_json.integer(
                zk_data.FEATURE, znode_json.decode(zk_data.FEATURE, data), "status"
            )
        except NoNodeError:
            await self._create()
        except ZnodeFormatError as error:
            _logger.error("the finalized features are ignored: %s", error)
        else:
            if status == DISABLED:
                await self._enable(stat.version)

    async def _create(self) -> None:
        try:
            await self._session.create(zk_data.FEATURE, encode())
        except NodeExistsError:
            _logger.info("%s was created meanwhile", zk_data.FEATURE)

    async def _enable(self, version: int) -> None:
        try:
            await self._session.retry_request_until_connected(
                lambda: self._session.writes.set_data(zk_data.FEATURE, encode(), version)
            )
        except (BadVersionError, NoNodeError) as error:
            _logger.info("%s was written meanwhile: %s", zk_data.FEATURE, error)
