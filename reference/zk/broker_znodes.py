"""What a broker finds or leaves in ZooKeeper when it starts, and who else is alive.

Its registration ``/brokers/ids/N`` is ephemeral, and its czxid is the broker epoch. Source: kafka.zk.KafkaZkClient of
Kafka 3.9; that a previous life's registration is waited for is ours.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from nemesis.reference.model import Broker
from nemesis.reference.ports import ZnodeStat
from nemesis.reference.zk import zk_data
from nemesis.reference.zk.errors import NodeExistsError, NoNodeError, ZnodeFormatError
from nemesis.reference.zk.pipelining import pipelined
from nemesis.reference.zk.zookeeper_session import ZooKeeperSession

_logger = logging.getLogger(__name__)

_MAX_BROKER_ID = 2**31 - 1


class BrokerZnodes:
    """See the module."""

    def __init__(self, session: ZooKeeperSession) -> None:
        self._session = session

    async def make_sure_persistent_paths_exist(self) -> None:
        for path in zk_data.PERSISTENT_PATHS:
            parts = path.split("/")[1:]
            for depth in range(1, len(parts) + 1):
                try:
                    await self._session.create("/" + "/".join(parts[:depth]), b"")
                except NodeExistsError:
                    continue

    async def get_or_create_cluster_id(self, generate: Callable[[], str]) -> str:
        """Return the cluster's id; the first broker of a cluster writes what ``generate`` returns."""
        while True:
            try:
                data, _ = await self._session.get(zk_data.CLUSTER_ID)
                return zk_data.decode_cluster_id(data)
            except NoNodeError:
                try:
                    await self._session.create(
                        zk_data.CLUSTER_ID, zk_data.encode_cluster_id(generate())
                    )
                except NodeExistsError:
                    continue

    async def generate_broker_sequence_id(self) -> int:
        """Return a number that no other broker of the cluster gets: 1 at first. After a lost reply one is left out."""
        while True:
            try:
                stat = await self._session.set_data(zk_data.BROKER_SEQUENCE_ID, b"", -1)
            except NoNodeError:
                await self.make_sure_persistent_paths_exist()
            else:
                return stat.version

    async def register_broker(self, broker: Broker, timestamp_ms: int) -> ZnodeStat:
        """Create ``/brokers/ids/N`` in this session and return its stat; czxid is the broker epoch.

        A znode that another session owns belongs to this broker's previous life: it is waited for.
        """
        path = zk_data.broker_path(broker.id)
        data = zk_data.encode_broker(broker, timestamp_ms)
        while True:
            try:
                return await self._session.create(path, data, ephemeral=True)
            except NodeExistsError:
                existing = await self._own_or_gone(path)
                if existing is not None:
                    return existing

    async def _own_or_gone(self, path: str) -> ZnodeStat | None:
        """Return the stat of an ephemeral of this session; one of another session is waited for: None."""
        gone = asyncio.Event()
        stat = await self._session.retry_request_until_connected(
            lambda: self._session.reads.exists(path, gone.set)
        )
        if stat is None or stat.ephemeral_owner == self._session.session_id:
            return stat
        _logger.info(
            "%s belongs to session 0x%x; waiting for it to end",
            path,
            stat.ephemeral_owner & 0xFFFFFFFFFFFFFFFF,
        )
        await gone.wait()
        return None

    async def get_all_brokers_and_epochs(self) -> dict[Broker, int]:
        """Live brokers with their epochs, by id; arms the child change handler of ``/brokers/ids``."""
        names = await self._session.get_children(zk_data.BROKER_IDS)
        foreign = [name for name in names if not (name.isdecimal() and int(name) <= _MAX_BROKER_ID)]
        if foreign:
            _logger.error("no brokers: %s in %s", foreign, zk_data.BROKER_IDS)
        ids = sorted(int(name) for name in names if name not in foreign)

        brokers = await pipelined(ids, self.get_broker_and_epoch)
        return dict(broker for broker in brokers if broker is not None)

    async def get_broker_and_epoch(self, broker_id: int) -> tuple[Broker, int] | None:
        """A live broker and its epoch; None when it is not there, or cannot be read (that is logged)."""
        try:
            data, stat = await self._session.get(zk_data.broker_path(broker_id))
            return zk_data.decode_broker(broker_id, data), stat.czxid
        except NoNodeError:
            return None
        except ZnodeFormatError as error:
            _logger.error("broker %d is ignored: %s", broker_id, error)
            return None
