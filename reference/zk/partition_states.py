"""Who leads each partition, and its ISR: ``/brokers/topics/T/partitions/P/state``.

The controller writes them, each write is fenced, and an update compares the znode's version, which is the
``partition_epoch``. What a leader writes under ``inter.broker.protocol.version=2.6`` is in ``replication_utils``.
Source: kafka.zk.KafkaZkClient of Kafka 3.9.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from reference.model import LeaderAndIsr, TopicPartition
from reference.ports import Create, SetData
from reference.zk import zk_data
from reference.zk.errors import (
    BadVersionError,
    NodeExistsError,
    NoNodeError,
    ZnodeFormatError,
    ZooKeeperError,
)
from reference.zk.fenced_writes import ControllerFence, FencedWrites
from reference.zk.pipelining import pipelined
from reference.zk.zk_data import LeaderIsrAndControllerEpoch
from reference.zk.zookeeper_session import ZooKeeperSession

_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class CommittedState:
    """A partition state that is in ZooKeeper."""

    state: LeaderIsrAndControllerEpoch
    zxid: int


StateResult = CommittedState | ZooKeeperError


class PartitionStates:
    """See the module."""

    def __init__(self, session: ZooKeeperSession, fenced: FencedWrites) -> None:
        self._session = session
        self._fenced = fenced

    async def get_topic_partition_states(
        self, partitions: Sequence[TopicPartition]
    ) -> dict[TopicPartition, LeaderIsrAndControllerEpoch]:
        """The states that exist; one in another format is logged and left out."""

        async def read(
            topic_partition: TopicPartition,
        ) -> tuple[TopicPartition, LeaderIsrAndControllerEpoch] | None:
            try:
                data, stat = await self._session.get(zk_data.state_path(topic_partition))
                return topic_partition, zk_data.decode_state(topic_partition, data, stat.version)
            except NoNodeError:
                return None
            except ZnodeFormatError as error:
                _logger.error("%s is ignored: %s", topic_partition, error)
                return None

        return dict(found for found in await pipelined(partitions, read) if found is not None)

    async def create_topic_partition_states(
        self, states: Mapping[TopicPartition, LeaderAndIsr], fence: ControllerFence
    ) -> dict[TopicPartition, StateResult]:
        """Create the state znodes, and their parents where they are missing. Raises ``ControllerMovedError``."""

        async def ensure(path: str) -> None:
            try:
                await self._fenced.write(Create(path, b""), fence)
            except NodeExistsError:
                return

        await pipelined(sorted({zk_data.partitions_path(tp.topic) for tp in states}), ensure)
        await pipelined([zk_data.partition_path(tp) for tp in states], ensure)

        async def create(topic_partition: TopicPartition) -> tuple[TopicPartition, StateResult]:
            state = LeaderIsrAndControllerEpoch(
                replace(states[topic_partition], partition_epoch=0), fence.controller_epoch
            )
            op = Create(zk_data.state_path(topic_partition), zk_data.encode_state(state))
            try:
                stat = await self._fenced.write(op, fence)
            except (NodeExistsError, NoNodeError) as error:
                return topic_partition, error
            assert stat is not None
            return topic_partition, CommittedState(state, stat.mzxid)

        return dict(await pipelined(list(states), create))

    async def update_leader_and_isr(
        self, states: Mapping[TopicPartition, LeaderAndIsr], fence: ControllerFence
    ) -> dict[TopicPartition, StateResult]:
        """Compare-and-set each state on its ``partition_epoch``; a committed one carries the new epoch.

        A conflict is a ``BadVersionError`` among the results. Raises ``ControllerMovedError``.
        """

        async def write(topic_partition: TopicPartition) -> tuple[TopicPartition, StateResult]:
            wanted = states[topic_partition]
            state = LeaderIsrAndControllerEpoch(
                replace(wanted, partition_epoch=wanted.partition_epoch + 1), fence.controller_epoch
            )
            op = SetData(
                zk_data.state_path(topic_partition),
                zk_data.encode_state(state),
                wanted.partition_epoch,
            )
            try:
                stat = await self._fenced.write(op, fence)
            except (BadVersionError, NoNodeError) as error:
                return topic_partition, error
            assert stat is not None
            return topic_partition, CommittedState(state, stat.mzxid)

        return dict(await pipelined(list(states), write))
