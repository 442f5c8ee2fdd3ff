"""Who leads each partition, and its ISR: ``/brokers/topics/T/partitions/P/state``.

The controller writes them, each write is fenced, and an update compares the znode's version, which is the
``partition_epoch``. What a leader writes under ``inter.broker.protocol.version=2.6`` is in ``replication_utils``.
Source: kafka.zk.KafkaZkClient of Kafka 3.9.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from nemesis.reference.model import LeaderAndIsr, TopicPartition
from nemesis.reference.ports import Create, SetData
from nemesis.reference.zk import zk_data
from nemesis.reference.zk.errors import (
    BadVersionError,
    NodeExistsError,
    NoNodeError,
    ZnodeFormatError,
    ZooKeeperError,
)
from nemesis.reference.zk.fenced_writes import ControllerFence, FencedWrites, WriteOutcome
from nemesis.reference.zk.pipelining import pipelined_in_batches
from nemesis.reference.zk.zk_data import LeaderIsrAndControllerEpoch
from nemesis.reference.zk.zookeeper_session import ZooKeeperSession

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
        paths = [zk_data.state_path(topic_partition) for topic_partition in partitions]
        znodes = await pipelined_in_batches(paths, self._session.get_all)
        states: dict[TopicPartition, LeaderIsrAndControllerEpoch] = {}
        for topic_partition, znode in zip(partitions, znodes, strict=True):
            if znode is None:
                continue
            data, stat = znode
            try:
                states[topic_partition] = zk_data.decode_state(topic_partition, data, stat.version)
            except ZnodeFormatError as error:
                _logger.error("%s is ignored: %s", topic_partition, error)
        return states

    async def create_topic_partition_states(
        self, states: Mapping[TopicPartition, LeaderAndIsr], fence: ControllerFence
    ) -> dict[TopicPartition, StateResult]:
        """Create the state znodes, and their parents where they are missing. Raises ``ControllerMovedError``."""

        await self._ensure(sorted({zk_data.partitions_path(tp.topic) for tp in states}), fence)
        await self._ensure([zk_data.partition_path(tp) for tp in states], fence)
        initial = {
            tp: LeaderIsrAndControllerEpoch(
                replace(wanted, partition_epoch=0), fence.controller_epoch
            )
            for tp, wanted in states.items()
        }
        ops = [
            Create(zk_data.state_path(tp), zk_data.encode_state(state))
            for tp, state in initial.items()
        ]
        return _results(initial, await self._fenced.write_all(ops, fence))

    async def update_leader_and_isr(
        self, states: Mapping[TopicPartition, LeaderAndIsr], fence: ControllerFence
    ) -> dict[TopicPartition, StateResult]:
        """Compare-and-set each state on its ``partition_epoch``; a committed one carries the new epoch.

        A conflict is a ``BadVersionError`` among the results. Raises ``ControllerMovedError``.
        """

        updated = {
            tp: LeaderIsrAndControllerEpoch(
                replace(wanted, partition_epoch=wanted.partition_epoch + 1), fence.controller_epoch
            )
            for tp, wanted in states.items()
        }
        ops = [
            SetData(zk_data.state_path(tp), zk_data.encode_state(state), states[tp].partition_epoch)
            for tp, state in updated.items()
        ]
        return _results(updated, await self._fenced.write_all(ops, fence))

    async def _ensure(self, paths: Sequence[str], fence: ControllerFence) -> None:
        outcomes = await self._fenced.write_all([Create(path, b"") for path in paths], fence)
        for outcome in outcomes:
            if isinstance(outcome, ZooKeeperError) and not isinstance(outcome, NodeExistsError):
                raise outcome


def _results(
    states: Mapping[TopicPartition, LeaderIsrAndControllerEpoch], outcomes: Sequence[WriteOutcome]
) -> dict[TopicPartition, StateResult]:
    """What became of each state. Raises what is neither a conflict nor a znode that is gone."""
    results: dict[TopicPartition, StateResult] = {}
    for (topic_partition, state), outcome in zip(states.items(), outcomes, strict=True):
        if isinstance(outcome, (BadVersionError, NodeExistsError, NoNodeError)):
            results[topic_partition] = outcome
        elif isinstance(outcome, ZooKeeperError):
            raise outcome
        else:
            assert outcome is not None
            results[topic_partition] = CommittedState(state, outcome.mzxid)
    return results
