"""``/admin/preferred_replica_election``: partitions whose preferred replica shall lead, as asked for before KIP-460.

Whoever wants it creates the znode; the controller elects, and deletes it when that has been tried. Source:
kafka.zk.KafkaZkClient and kafka.zk.PreferredReplicaElectionZNode of Kafka 3.9.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable

from nemesis.reference.model import TopicPartition
from nemesis.reference.ports import Delete
from nemesis.reference.zk import zk_data, znode_json
from nemesis.reference.zk.errors import NoNodeError, ZnodeFormatError
from nemesis.reference.zk.fenced_writes import ControllerFence, FencedWrites
from nemesis.reference.zk.zookeeper_session import ZooKeeperSession

_logger = logging.getLogger(__name__)


def encode(partitions: Iterable[TopicPartition]) -> bytes:
    return znode_json.encode(
        {
            "version": 1,
            "partitions": [{"topic": tp.topic, "partition": tp.partition} for tp in partitions],
        }
    )


def decode(data: bytes) -> list[TopicPartition]:
    """Return the partitions, each once and in their order; raises ``ZnodeFormatError``."""
    path = zk_data.PREFERRED_REPLICA_ELECTION
    try:
        named = [
            TopicPartition(str(item["topic"]), int(item["partition"]))
            for item in znode_json.decode(path, data)["partitions"]
        ]
    except (KeyError, TypeError, ValueError) as error:
        raise ZnodeFormatError(f"{path} is no list of partitions: {data[:200]!r}") from error
    return list(dict.fromkeys(named))


class PreferredReplicaElectionZnode:
    """See the module."""

    def __init__(self, session: ZooKeeperSession, fenced: FencedWrites) -> None:
        self._session = session
        self._fenced = fenced

    async def get_preferred_replica_election(self) -> list[TopicPartition] | None:
        """The partitions asked for; None without the znode. Arms its change handler in both cases.

        One that cannot be read is logged and asks for nothing, so that the controller removes it.
        """
        if await self._session.exists(zk_data.PREFERRED_REPLICA_ELECTION) is None:
            return None
        try:
            data, _ = await self._session.get(zk_data.PREFERRED_REPLICA_ELECTION)
            return decode(data)
        except NoNodeError:
            return None
        except ZnodeFormatError as error:
            _logger.error("no preferred replica election: %s", error)
            return []

    async def delete_preferred_replica_election(self, fence: ControllerFence) -> None:
        """Remove the znode if it is there. Raises ``ControllerMovedError``."""
        try:
            await self._fenced.write(Delete(zk_data.PREFERRED_REPLICA_ELECTION), fence)
        except NoNodeError:
            return
