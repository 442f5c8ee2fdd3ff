"""``/admin/reassign_partitions``: partitions to be moved, as asked for before there was an API for it.

Whoever wants replicas moved creates it (the tools of Kafka below 2.5 do); the controller takes out what is done or
cannot be, and deletes the znode when nothing is left. It is a request only: how far a reassignment has come stands in
the topic's znode (KIP-455). Source: kafka.zk.KafkaZkClient and kafka.zk.ReassignPartitionsZNode of Kafka 3.9.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence

from nemesis.reference.model import TopicPartition
from nemesis.reference.ports import Create, Delete, SetData
from nemesis.reference.zk import zk_data
from nemesis.reference.zk.errors import NodeExistsError, NoNodeError, ZnodeFormatError
from nemesis.reference.zk.fenced_writes import ControllerFence, FencedWrites
from nemesis.reference.zk.zookeeper_session import ZooKeeperSession

_logger = logging.getLogger(__name__)

_ANY_VERSION = -1
IsOver = Callable[[TopicPartition, tuple[int, ...]], bool]


class PartitionReassignmentZnode:
    """See the module."""

    def __init__(self, session: ZooKeeperSession, fenced: FencedWrites) -> None:
        self._session = session
        self._fenced = fenced

    async def get_partition_reassignment(
        self,
    ) -> dict[TopicPartition, tuple[int, ...]] | None:
        """The replicas asked for; None without the znode. Arms its change handler in both cases.

        One that cannot be read is logged and asks for nothing, so that the controller removes it.
        """
        if await self._session.exists(zk_data.REASSIGN_PARTITIONS) is None:
            return None
        try:
            data, _ = await self._session.get(zk_data.REASSIGN_PARTITIONS)
            return zk_data.decode_partition_reassignment(data)
        except NoNodeError:
            return None
        except ZnodeFormatError as error:
            _logger.error("no reassignment: %s", error)
            return {}

    async def remove_partitions(self, is_over: IsOver, fence: ControllerFence) -> None:
        """Take out the partitions whose target ``is_over``, and the znode with the last one, or when nothing is in it.

        Nothing happens without the znode. Raises ``ControllerMovedError``.
        """
        asked = await self.get_partition_reassignment()
        if asked is None:
            return
        left = {tp: target for tp, target in asked.items() if not is_over(tp, target)}
        if not left:
            _logger.info("nothing is left in %s; removing it", zk_data.REASSIGN_PARTITIONS)
            await self.delete_partition_reassignment(fence)
        elif left != asked:
            await self.set_or_create_partition_reassignment(left, fence)

    async def set_or_create_partition_reassignment(
        self, targets: Mapping[TopicPartition, Sequence[int]], fence: ControllerFence
    ) -> None:
        """Write what is still to be done, over whatever is there. Raises ``ControllerMovedError``."""
        data = zk_data.encode_partition_reassignment(targets)
        while True:
            try:
                await self._fenced.write(
                    SetData(zk_data.REASSIGN_PARTITIONS, data, _ANY_VERSION), fence
                )
            except NoNodeError:
                try:
                    await self._fenced.write(Create(zk_data.REASSIGN_PARTITIONS, data), fence)
                except NodeExistsError:
                    continue
            return

    async def delete_partition_reassignment(self, fence: ControllerFence) -> None:
        """Remove the znode if it is there. Raises ``ControllerMovedError``."""
        try:
            await self._fenced.write(Delete(zk_data.REASSIGN_PARTITIONS), fence)
        except NoNodeError:
            return
