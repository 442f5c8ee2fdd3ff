"""Brokers tell the controller something by sequential znodes, which it reads and deletes.

What the two kinds of them share: ``/log_dir_event_notification`` and ``/isr_change_notification``. Source:
kafka.zk.KafkaZkClient.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from nemesis.reference.ports import Delete
from nemesis.reference.zk.errors import NoNodeError, ZnodeFormatError
from nemesis.reference.zk.fenced_writes import ControllerFence, FencedWrites
from nemesis.reference.zk.pipelining import pipelined
from nemesis.reference.zk.zookeeper_session import ZooKeeperSession

_logger = logging.getLogger(__name__)
_Content = TypeVar("_Content")


class SequentialNotifications(Generic[_Content]):
    """See the module. ``decode`` takes a znode's path and data and raises ``ZnodeFormatError``."""

    def __init__(
        self,
        session: ZooKeeperSession,
        fenced: FencedWrites,
        *,
        path: str,
        prefix: str,
        decode: Callable[[str, bytes], _Content],
    ) -> None:
        self._session = session
        self._fenced = fenced
        self._path = path
        self._prefix = prefix
        self._decode = decode

    async def propagate(self, data: bytes) -> None:
        """Tell the controller. After a lost reply it may be told twice."""
        await self._session.retry_request_until_connected(
            lambda: self._session.writes.create(
                f"{self._path}/{self._prefix}", data, sequential=True
            )
        )

    async def get_all(self) -> list[str]:
        """Names of the znodes, in the order of their creation; arms the child change handler."""
        names = await self._session.get_children(self._path)
        return sorted(name for name in names if name.startswith(self._prefix))

    async def read(self, names: Sequence[str]) -> list[_Content]:
        """What the znodes say, in this order; one that cannot be read is logged and left out."""

        async def read(name: str) -> list[_Content]:
            path = f"{self._path}/{name}"
            try:
                data, _ = await self._session.get(path)
                return [self._decode(path, data)]
            except NoNodeError:
                return []
            except ZnodeFormatError as error:
                _logger.error("a notification is ignored: %s", error)
                return []

        return [content for contents in await pipelined(names, read) for content in contents]

    async def delete(self, names: Sequence[str], fence: ControllerFence) -> None:
        """Remove these znodes. Raises ``ControllerMovedError``."""

        async def delete(name: str) -> None:
            try:
                await self._fenced.write(Delete(f"{self._path}/{name}"), fence)
            except NoNodeError:
                return

        await pipelined(names, delete)
