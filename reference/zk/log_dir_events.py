"""``/log_dir_event_notification``: brokers tell the controller that a log directory of theirs has failed (KIP-112).

One sequential znode for each failure, which names the broker and nothing else; the controller asks the broker which
replicas it means, and deletes the znode. Source: kafka.zk.KafkaZkClient and kafka.zk.LogDirEventNotificationZNode.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from reference.ports import Delete
from reference.zk import zk_data, znode_json
from reference.zk.errors import NoNodeError, ZnodeFormatError
from reference.zk.fenced_writes import ControllerFence, FencedWrites
from reference.zk.pipelining import pipelined
from reference.zk.zookeeper_session import ZooKeeperSession

_logger = logging.getLogger(__name__)

PREFIX = "log_dir_event_"
LOG_DIR_FAILURE = 1
"""The only kind of event."""


def encode(broker_id: int) -> bytes:
    return znode_json.encode({"version": 1, "broker": broker_id, "event": LOG_DIR_FAILURE})


def decode(path: str, data: bytes) -> int:
    """Return the broker's id; raises ``ZnodeFormatError``."""
    return znode_json.integer(path, znode_json.decode(path, data), "broker")


class LogDirEvents:
    """See the module."""

    def __init__(self, session: ZooKeeperSession, fenced: FencedWrites) -> None:
        self._session = session
        self._fenced = fenced

    async def propagate_log_dir_event(self, broker_id: int) -> None:
        """Tell the controller. After a lost reply it may be told twice."""
        await self._session.retry_request_until_connected(
            lambda: self._session.zookeeper.create(
                f"{zk_data.LOG_DIR_EVENTS}/{PREFIX}", encode(broker_id), sequential=True
            )
        )

    async def get_all_log_dir_event_notifications(self) -> list[str]:
        """Names of the znodes, in the order of their creation; arms the child change handler."""
        names = await self._session.get_children(zk_data.LOG_DIR_EVENTS)
        return sorted(name for name in names if name.startswith(PREFIX))

    async def get_broker_ids_from_log_dir_events(self, names: Sequence[str]) -> list[int]:
        """The brokers that the znodes name, each once, sorted; one that cannot be read is logged."""

        async def read(name: str) -> int | None:
            path = f"{zk_data.LOG_DIR_EVENTS}/{name}"
            try:
                data, _ = await self._session.get(path)
                return decode(path, data)
            except NoNodeError:
                return None
            except ZnodeFormatError as error:
                _logger.error("a failed log directory is ignored: %s", error)
                return None

        return sorted({found for found in await pipelined(names, read) if found is not None})

    async def delete_log_dir_event_notifications(
        self, names: Sequence[str], fence: ControllerFence
    ) -> None:
        """Remove these znodes. Raises ``ControllerMovedError``."""

        async def delete(name: str) -> None:
            try:
                await self._fenced.write(Delete(f"{zk_data.LOG_DIR_EVENTS}/{name}"), fence)
            except NoNodeError:
                return

        await pipelined(names, delete)
