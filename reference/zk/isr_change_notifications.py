"""``/isr_change_notification``: leaders tell the controller which ISRs they have written themselves.

One sequential znode for each batch of partitions; the controller reads their states and deletes the znode. Written
under ``inter.broker.protocol.version=2.6``, watched under any. Source: kafka.zk.KafkaZkClient and
kafka.zk.IsrChangeNotificationSequenceZNode.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from nemesis.reference.model import TopicPartition
from nemesis.reference.zk import zk_data, znode_json
from nemesis.reference.zk.errors import ZnodeFormatError
from nemesis.reference.zk.fenced_writes import FencedWrites
from nemesis.reference.zk.sequential_notifications import SequentialNotifications
from nemesis.reference.zk.zookeeper_session import ZooKeeperSession

PREFIX = "isr_change_"


def encode(partitions: Iterable[TopicPartition]) -> bytes:
    listed = [{"topic": tp.topic, "partition": tp.partition} for tp in partitions]
    return znode_json.encode({"version": 1, "partitions": listed})


def decode(path: str, data: bytes) -> list[TopicPartition]:
    """Return the partitions in the znode's order; raises ``ZnodeFormatError``."""
    value = znode_json.decode(path, data)
    try:
        return [
            TopicPartition(str(item["topic"]), int(item["partition"]))
            for item in value["partitions"]
        ]
    except (KeyError, TypeError, ValueError) as error:
        raise ZnodeFormatError(
            f"{path} is not a list of partitions: {error}: {data[:200]!r}"
        ) from error


class IsrChangeNotifications(SequentialNotifications[list[TopicPartition]]):
    """See the module."""

    def __init__(self, session: ZooKeeperSession, fenced: FencedWrites) -> None:
        super().__init__(
            session, fenced, path=zk_data.ISR_CHANGE_NOTIFICATION, prefix=PREFIX, decode=decode
        )

    async def propagate_isr_changes(self, partitions: Iterable[TopicPartition]) -> None:
        """Tell the controller. After a lost reply it may be told twice."""
        await self.propagate(encode(partitions))

    async def get_partitions_from_isr_change_notifications(
        self, names: Sequence[str]
    ) -> list[TopicPartition]:
        """The partitions that the znodes name, each once; a znode that cannot be read is logged."""
        return list(dict.fromkeys(tp for partitions in await self.read(names) for tp in partitions))
