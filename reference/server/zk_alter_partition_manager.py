"""Leaders change their ISRs in ZooKeeper themselves, and the controller hears of it later, in batches.

As before AlterPartition, under ``inter.broker.protocol.version=2.6``. Each proposal is one compare-and-set of the
partition's state, one at a time for each partition. Partitions whose ISR has changed are told to the controller by a
znode in ``/isr_change_notification``: looked at every 2.5 s, told after 5 s in which nothing changed or 60 s after the
last time. Source: kafka.server.ZkAlterPartitionManager and, before 2.7, ReplicaManager.maybePropagateIsrChanges.

The leader does not look at broker epochs of members, and nobody else does (see ``docs/limits.md``).
"""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from kio.schema.errors import ErrorCode

from nemesis.reference.cluster.partition_state import AlterPartitionCallback, AlterPartitionItem
from nemesis.reference.kafka_config import KafkaConfig
from nemesis.reference.kafka_scheduler import KafkaScheduler
from nemesis.reference.model import LeaderAndIsr, TopicPartition
from nemesis.reference.zk.errors import ClientClosedError, ZooKeeperError
from nemesis.reference.zk.kafka_zk_client import KafkaZkClient

_logger = logging.getLogger(__name__)

CHECK_INTERVAL_S: Final = 2.5
LINGER_S: Final = 5.0
MAX_DELAY_S: Final = 60.0


class ZkAlterPartitionManager:
    """See the module. Needs a running loop."""

    def __init__(
        self, config: KafkaConfig, *, zk_client: KafkaZkClient, scheduler: KafkaScheduler
    ) -> None:
        self._broker_id = config.broker_id
        self._states = zk_client.replication_utils
        self._notifications = zk_client.isr_change_notifications
        self._scheduler = scheduler
        self._writes: dict[TopicPartition, asyncio.Task[None]] = {}
        self._clock = asyncio.get_running_loop().time
        self._isr_change_set: dict[TopicPartition, None] = {}
        """Partitions of which the controller does not know yet, in the order of their changes."""
        self._last_isr_change = self._last_isr_propagation = self._clock()

    def submit(self, item: AlterPartitionItem, callback: AlterPartitionCallback) -> bool:
        """Start to write ``item``; False while another one of its partition is written (the callback is not called)."""
        topic_partition = item.topic_partition
        if topic_partition in self._writes:
            return False
        self._writes[topic_partition] = asyncio.get_running_loop().create_task(
            self._write(item, callback), name=f"update-leader-and-isr {topic_partition}"
        )
        return True

    def startup(self) -> None:
        """Begin to look for changes to be told."""
        self._scheduler.schedule(
            "isr-change-propagation", self.maybe_propagate_isr_changes, period_s=CHECK_INTERVAL_S
        )

    async def shutdown(self) -> None:
        """Stop writing; what is under way may or may not be done, as when the process dies."""
        writes, self._writes = self._writes, {}
        for write in writes.values():
            write.cancel()
        await asyncio.gather(*writes.values(), return_exceptions=True)

    async def maybe_propagate_isr_changes(self) -> None:
        """Tell the controller of what has changed, if it is time to."""
        now = self._clock()
        is_quiet = self._last_isr_change + LINGER_S < now
        is_overdue = self._last_isr_propagation + MAX_DELAY_S < now
        if not self._isr_change_set or not (is_quiet or is_overdue):
            return
        changes, self._isr_change_set = self._isr_change_set, {}
        try:
            await self._notifications.propagate_isr_changes(changes)
        except ZooKeeperError as error:
            _logger.warning("the controller is not told of ISR changes yet: %s", error)
            self._isr_change_set = changes | self._isr_change_set
        else:
            self._last_isr_propagation = now

    async def _write(self, item: AlterPartitionItem, callback: AlterPartitionCallback) -> None:
        topic_partition = item.topic_partition
        wanted = LeaderAndIsr(
            leader=self._broker_id,
            leader_epoch=item.leader_epoch,
            isr=tuple(broker for broker, _ in item.new_isr),
            leader_recovery_state=item.leader_recovery_state,
            partition_epoch=item.partition_epoch,
        )
        try:
            committed = await self._states.update_leader_and_isr(
                topic_partition, wanted, item.controller_epoch
            )
            error = ErrorCode.invalid_update_version if committed is None else ErrorCode.none
        except ClientClosedError:
            return  # the broker stops: nobody waits for this any more
        except ZooKeeperError as failure:
            _logger.error("%s keeps its ISR: %s", topic_partition, failure)
            committed, error = None, ErrorCode.operation_not_attempted
        self._writes.pop(topic_partition, None)
        if committed is not None:
            self._isr_change_set[topic_partition] = None
            self._last_isr_change = self._clock()
        callback(error, committed)
