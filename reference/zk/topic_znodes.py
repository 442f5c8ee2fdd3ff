"""Topics: ``/brokers/topics/T`` with the assignment; a new one gets its ``/config/topics/T`` first.

Source: kafka.zk.KafkaZkClient of Kafka 3.9.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from uuid import UUID

from nemesis.reference.model import TopicPartition
from nemesis.reference.ports import Create, SetData
from nemesis.reference.zk import config_znodes, zk_data
from nemesis.reference.zk.errors import BadVersionError, MultiError, NoNodeError, ZnodeFormatError
from nemesis.reference.zk.fenced_writes import ControllerFence, FencedWrites
from nemesis.reference.zk.pipelining import pipelined
from nemesis.reference.zk.zk_data import ReplicaAssignment, TopicAssignment
from nemesis.reference.zk.zookeeper_session import ZooKeeperSession

_logger = logging.getLogger(__name__)

_ANY_VERSION = -1


class _Attempts:
    """A conditional write, and how often it was sent: only one that was sent again may have refused itself."""

    def __init__(self, session: ZooKeeperSession, path: str, data: bytes, version: int) -> None:
        self._session = session
        self._write = (path, data, version)
        self.count = 0

    async def attempt(self) -> None:
        self.count += 1
        await self._session.writes.set_data(*self._write)


class TopicZnodes:
    """See the module."""

    def __init__(self, session: ZooKeeperSession, fenced: FencedWrites) -> None:
        self._session = session
        self._fenced = fenced

    async def get_all_topics(self) -> list[str]:
        """Names, sorted; arms the child change handler of ``/brokers/topics``."""
        return sorted(await self._session.get_children(zk_data.TOPICS))

    async def get_replica_assignments(self, topics: Sequence[str]) -> list[TopicAssignment]:
        """Assignments of those topics that exist and can be read (a znode of another format is logged)."""

        async def read(topic: str) -> TopicAssignment | None:
            try:
                data, _ = await self._session.get(zk_data.topic_path(topic))
                return zk_data.decode_topic(topic, data)
            except NoNodeError:
                return None
            except ZnodeFormatError as error:
                _logger.error("topic %s is ignored: %s", topic, error)
                return None

        return [
            assignment for assignment in await pipelined(topics, read) if assignment is not None
        ]

    async def topic_exists(self, topic: str) -> bool:
        return await self._session.exists(zk_data.topic_path(topic)) is not None

    async def create_topic(self, assignment: TopicAssignment, config: Mapping[str, str]) -> None:
        """Write the topic's configuration, then its assignment; raises ``NodeExistsError`` if the topic exists.

        Both or none: a topic that somebody else has created meanwhile keeps its settings, as it may not in Kafka.
        """
        topic = Create(zk_data.topic_path(assignment.topic), zk_data.encode_topic(assignment))
        while True:
            settings = await self._write_of_config(assignment.topic, config_znodes.encode(config))
            try:
                await self._session.retry_request_until_connected(
                    lambda ops=(settings, topic): self._session.writes.multi(ops)  # type: ignore[misc]
                )
            except MultiError as error:
                if error.index == 0:
                    continue  # the settings came or went since they were looked for
                # The id was drawn for this call: whoever reads it back wrote it.
                existing = await self.get_replica_assignments([assignment.topic])
                if not existing or existing[0].topic_id != assignment.topic_id:
                    raise error.error from error
            return

    async def _write_of_config(self, topic: str, data: bytes) -> Create | SetData:
        """Settings may be there without their topic: somebody changed them while it was deleted."""
        path = config_znodes.entity_path(config_znodes.TOPICS, topic)
        is_there = await self._session.exists(path) is not None
        return SetData(path, data, _ANY_VERSION) if is_there else Create(path, data)

    async def set_topic_assignment(
        self, assignment: TopicAssignment, fence: ControllerFence
    ) -> None:
        """Write the whole assignment over what is there; a topic that is gone stays so.

        Raises ``ControllerMovedError``.
        """
        op = SetData(
            zk_data.topic_path(assignment.topic), zk_data.encode_topic(assignment), _ANY_VERSION
        )
        try:
            await self._fenced.write(op, fence)
        except NoNodeError:
            return

    async def add_partitions(
        self, topic: str, choose: Callable[[TopicAssignment], Mapping[int, ReplicaAssignment]]
    ) -> TopicAssignment:
        """Add what ``choose`` returns for the present assignment; return the whole new one.

        The znode is compared and set, and ``choose`` is asked again after a conflict: what the controller or somebody
        else writes meanwhile is not lost, as it can be in Kafka. Raises ``NoNodeError`` and ``ZnodeFormatError``.
        """
        path = zk_data.topic_path(topic)
        wanted: TopicAssignment | None = None
        while True:
            data, stat = await self._session.get(path)
            present = zk_data.decode_topic(topic, data)
            if present == wanted:
                return present  # only the reply was lost
            wanted = replace(present, partitions={**present.partitions, **choose(present)})
            write = _Attempts(self._session, path, zk_data.encode_topic(wanted), stat.version)
            try:
                await self._session.retry_request_until_connected(write.attempt)
            except BadVersionError:
                _logger.info("%s was written meanwhile; reading it again", path)
                if write.count == 1:
                    wanted = None  # it was certainly somebody else, be it with the same words
            else:
                return wanted

    async def update_replica_assignment(
        self,
        topic_partition: TopicPartition,
        assignment: ReplicaAssignment,
        fence: ControllerFence,
    ) -> None:
        """Write one partition's assignment; what the topic's znode says of the others stays.

        The znode is compared and set: partitions that somebody adds meanwhile are not lost, as they can be in Kafka.
        Raises ``ControllerMovedError``, ``NoNodeError`` when the topic is gone and ``ZnodeFormatError``.
        """

        def changed(topic: TopicAssignment) -> TopicAssignment:
            partitions = {**topic.partitions, topic_partition.partition: assignment}
            return replace(topic, partitions=partitions)

        await self._change(topic_partition.topic, changed, fence)

    async def set_topic_id(
        self, topic: str, topic_id: UUID, fence: ControllerFence
    ) -> TopicAssignment:
        """Give a topic that has no id this one; returns what is there then. Raises as ``update_replica_assignment``."""
        return await self._change(
            topic,
            lambda assignment: replace(assignment, topic_id=assignment.topic_id or topic_id),
            fence,
        )

    async def _change(
        self,
        topic: str,
        change: Callable[[TopicAssignment], TopicAssignment],
        fence: ControllerFence,
    ) -> TopicAssignment:
        """Compare and set under the fence, again after each conflict; returns what was written."""
        path = zk_data.topic_path(topic)
        while True:
            data, stat = await self._session.get(path)
            changed = change(zk_data.decode_topic(topic, data))
            try:
                await self._fenced.write(
                    SetData(path, zk_data.encode_topic(changed), stat.version), fence
                )
            except BadVersionError:
                _logger.info("%s was written meanwhile; reading it again", path)
            else:
                return changed
