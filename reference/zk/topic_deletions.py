"""``/admin/delete_topics/T``: which topics are to be deleted, and what deleting one takes out of ZooKeeper.

Whoever wants a topic gone creates the znode; the controller deletes the topic's own znodes and this one last, so that
a deletion which a failover broke off is found and finished by the next controller. Source: kafka.zk.KafkaZkClient of
Kafka 3.9.
"""

from __future__ import annotations

from collections.abc import Iterable

from nemesis.reference.ports import Delete
from nemesis.reference.zk import config_znodes, zk_data
from nemesis.reference.zk.errors import NoNodeError, NotEmptyError
from nemesis.reference.zk.fenced_writes import ControllerFence, FencedWrites
from nemesis.reference.zk.pipelining import pipelined
from nemesis.reference.zk.zookeeper_session import ZooKeeperSession


class TopicDeletions:
    """See the module. What is deleted is deleted under the fence; what is gone already is no error."""

    def __init__(self, session: ZooKeeperSession, fenced: FencedWrites) -> None:
        self._session = session
        self._fenced = fenced

    async def get_topic_deletions(self) -> list[str]:
        """Topics marked for deletion, sorted; arms the child change handler of ``/admin/delete_topics``."""
        return sorted(await self._session.get_children(zk_data.DELETE_TOPICS))

    async def is_topic_marked_for_deletion(self, topic: str) -> bool:
        return await self._session.exists(zk_data.delete_topic_path(topic)) is not None

    async def create_delete_topic_path(self, topic: str) -> None:
        """Mark the topic; raises ``NodeExistsError`` when it is."""
        await self._session.create(zk_data.delete_topic_path(topic), b"")

    async def delete_topic_deletions(self, topics: Iterable[str], fence: ControllerFence) -> None:
        """Take the marks away. Raises ``ControllerMovedError``."""
        await pipelined(
            [zk_data.delete_topic_path(topic) for topic in topics],
            lambda path: self._delete_mark(path, fence),
        )

    async def delete_topic(self, topic: str, fence: ControllerFence) -> None:
        """Delete the topic's znode with all below it, then its configuration, then its mark.

        Raises ``ControllerMovedError``, and ``NotEmptyError`` when somebody creates znodes below it meanwhile.
        """
        await self._delete_recursively(zk_data.topic_path(topic), fence)
        await self._delete(config_znodes.entity_path(config_znodes.TOPICS, topic), fence)
        await self._delete_mark(zk_data.delete_topic_path(topic), fence)

    async def _delete_mark(self, path: str, fence: ControllerFence) -> None:
        """Nothing belongs below a mark; what somebody has put there all the same must not keep it alive."""
        try:
            await self._delete(path, fence)
        except NotEmptyError:
            await self._delete_recursively(path, fence)

    async def _delete_recursively(self, path: str, fence: ControllerFence) -> None:
        try:
            children = await self._session.get_children(path)
        except NoNodeError:
            return
        await pipelined(
            [f"{path}/{child}" for child in sorted(children)],
            lambda child: self._delete_recursively(child, fence),
        )
        await self._delete(path, fence)

    async def _delete(self, path: str, fence: ControllerFence) -> None:
        try:
            await self._fenced.write(Delete(path), fence)
        except NoNodeError:
            return
