"""``/log_dir_event_notification``: brokers tell the controller that a log directory of theirs has failed (KIP-112).

One sequential znode for each failure, which names the broker and nothing else; the controller asks the broker which
replicas it means, and deletes the znode. Source: kafka.zk.KafkaZkClient and kafka.zk.LogDirEventNotificationZNode.
"""

from __future__ import annotations

from collections.abc import Sequence

from nemesis.reference.zk import zk_data, znode_json
from nemesis.reference.zk.fenced_writes import FencedWrites
from nemesis.reference.zk.sequential_notifications import SequentialNotifications
from nemesis.reference.zk.zookeeper_session import ZooKeeperSession

PREFIX = "log_dir_event_"
LOG_DIR_FAILURE = 1
"""The only kind of event."""


def encode(broker_id: int) -> bytes:
    return znode_json.encode({"version": 1, "broker": broker_id, "event": LOG_DIR_FAILURE})


def decode(path: str, data: bytes) -> int:
    """Return the broker's id; raises ``ZnodeFormatError``."""
    return znode_json.integer(path, znode_json.decode(path, data), "broker")


class LogDirEvents(SequentialNotifications[int]):
    """See the module."""

    def __init__(self, session: ZooKeeperSession, fenced: FencedWrites) -> None:
        super().__init__(session, fenced, path=zk_data.LOG_DIR_EVENTS, prefix=PREFIX, decode=decode)

    async def propagate_log_dir_event(self, broker_id: int) -> None:
        """Tell the controller. After a lost reply it may be told twice."""
        await self.propagate(encode(broker_id))

    async def get_broker_ids_from_log_dir_events(self, names: Sequence[str]) -> list[int]:
        """The brokers that the znodes name, each once, sorted; one that cannot be read is logged."""
        return sorted(set(await self.read(names)))
