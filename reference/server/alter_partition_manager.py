"""Carries ISR proposals of this broker's leaders to the controller, with AlterPartition (KIP-497).

``AlterPartitionManager`` is what the leaders' broker knows of it; under ``inter.broker.protocol.version=2.6`` another
one is behind it (``zk_alter_partition_manager``).

One task, one request in flight, with all proposals that are queued by then; one proposal per partition at a time. A
proposal stays queued until the controller has answered *for it*: a lost answer, a controller that moved or an old
broker epoch only mean that it is sent again, which the controller takes as done when its state equals the proposal
already (KAFKA-14144). A proposal leaves the queue before its callback runs, so the callback may submit the next one
(KAFKA-12686).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator, Mapping
from typing import Protocol
from uuid import UUID

from kio.schema.alter_partition.v3.request import (
    AlterPartitionRequest,
    BrokerState,
    PartitionData,
    TopicData,
)
from kio.schema.alter_partition.v3.response import AlterPartitionResponse
from kio.schema.alter_partition.v3.response import PartitionData as PartitionResponse
from kio.schema.errors import ErrorCode
from kio.schema.types import BrokerId
from kio.static.primitive import i8, i32, i64

from nemesis.reference.cluster.partition_state import AlterPartitionCallback, AlterPartitionItem
from nemesis.reference.kafka_config import KafkaConfig
from nemesis.reference.model import LeaderAndIsr, LeaderRecoveryState, TopicPartition
from nemesis.reference.network.errors import NetworkError
from nemesis.reference.server.connection import Connection
from nemesis.reference.server.metadata_cache import MetadataCache

_logger = logging.getLogger(__name__)

_Queued = tuple[AlterPartitionItem, AlterPartitionCallback]
_Key = tuple[UUID | None, int]


class AlterPartitionManager(Protocol):
    """What ReplicaManager needs of the way that proposals go; it does not know which one."""

    def submit(self, item: AlterPartitionItem, callback: AlterPartitionCallback) -> bool: ...
    def startup(self) -> None: ...
    async def shutdown(self) -> None: ...


class DefaultAlterPartitionManager:
    """The queue of proposals and the task that sends them."""

    def __init__(
        self,
        config: KafkaConfig,
        *,
        metadata_cache: MetadataCache,
        broker_epoch: Callable[[], int],
        connection: Connection,
    ) -> None:
        self._broker_id = config.broker_id
        self._timeout_s = config.controller_socket_timeout_ms / 1000
        self._backoff_s = config.controller_retry_backoff_ms / 1000
        self._metadata_cache = metadata_cache
        self._listener_name = config.listener_config.to_controller_listener_name
        self._broker_epoch = broker_epoch
        self._connection = connection
        self._queue: dict[TopicPartition, _Queued] = {}
        self._queued = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def submit(self, item: AlterPartitionItem, callback: AlterPartitionCallback) -> bool:
        """Queue ``item``; False if one of this partition is still queued (then the callback is never called)."""
        if item.topic_partition in self._queue:
            return False
        self._queue[item.topic_partition] = (item, callback)
        self._queued.set()
        return True

    def startup(self) -> None:
        """Start sending; needs a running loop."""
        self._task = asyncio.get_running_loop().create_task(self._run(), name="alter-partition")

    async def shutdown(self) -> None:
        """Stop sending; what is queued is dropped, as with the process."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        await self._connection.close()

    async def _run(self) -> None:
        while True:
            await self._queued.wait()
            try:
                went_well = await self._send_queued()
            except Exception:
                # A bug of ours; without this task no ISR of this broker would ever change again.
                _logger.exception("sending AlterPartition failed")
                went_well = False
            if not went_well:
                await asyncio.sleep(self._backoff_s)
            if not self._queue:
                self._queued.clear()

    async def _send_queued(self) -> bool:
        """Send what is queued once; return False when it is wise to wait before the next time."""
        controller = self._metadata_cache.controller_node(self._listener_name)
        if controller is None:
            return False
        sent = {
            (item.topic_id, item.topic_partition.partition): (item, callback)
            for item, callback in self._queue.values()
        }
        request = self._request(sent)
        try:
            response = await self._connection.send(
                controller.host, controller.port, request, timeout_s=self._timeout_s
            )
        except NetworkError as error:
            _logger.info("AlterPartition to controller %d: %s", controller.id, error)
            return False
        return self.handle_response(sent, response)

    def _request(self, sent: Mapping[_Key, _Queued]) -> AlterPartitionRequest:
        by_topic: dict[UUID | None, list[PartitionData]] = {}
        for (topic_id, partition), (item, _) in sent.items():
            by_topic.setdefault(topic_id, []).append(
                PartitionData(
                    partition_index=i32(partition),
                    leader_epoch=i32(item.leader_epoch),
                    new_isr_with_epochs=tuple(
                        BrokerState(broker_id=BrokerId(broker), broker_epoch=i64(epoch))
                        for broker, epoch in item.new_isr
                    ),
                    leader_recovery_state=i8(int(item.leader_recovery_state)),
                    partition_epoch=i32(item.partition_epoch),
                )
            )
        return AlterPartitionRequest(
            broker_id=BrokerId(self._broker_id),
            broker_epoch=i64(self._broker_epoch()),
            topics=tuple(
                TopicData(topic_id=topic_id, partitions=tuple(partitions))
                for topic_id, partitions in by_topic.items()
            ),
        )

    def handle_response(
        self, sent: Mapping[_Key, _Queued], response: AlterPartitionResponse
    ) -> bool:
        """Settle the proposals that the controller has answered; return whether all went well."""
        if response.error_code is not ErrorCode.none:
            _logger.info("AlterPartition refused: %s", response.error_code.name)
            return False
        errors = 0
        for key, answer in _answers(response):
            if key not in sent:
                continue
            item, callback = sent[key]
            self._queue.pop(item.topic_partition, None)
            if answer.error_code is ErrorCode.none:
                callback(ErrorCode.none, _leader_and_isr(answer))
            else:
                errors += 1
                callback(answer.error_code, None)
        return errors == 0


def _answers(response: AlterPartitionResponse) -> Iterator[tuple[_Key, PartitionResponse]]:
    for topic in response.topics:
        for partition in topic.partitions:
            yield (topic.topic_id, int(partition.partition_index)), partition


def _leader_and_isr(answer: PartitionResponse) -> LeaderAndIsr:
    return LeaderAndIsr(
        leader=int(answer.leader_id),
        leader_epoch=int(answer.leader_epoch),
        isr=tuple(map(int, answer.isr)),
        leader_recovery_state=LeaderRecoveryState(answer.leader_recovery_state),
        partition_epoch=int(answer.partition_epoch),
    )
