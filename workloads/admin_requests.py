"""What administrators ask for: one attempt each, an operation of the history."""

from __future__ import annotations

from typing import Any

from nemesis.history.recorder import Recorder
from nemesis.workloads.kafka.admin import KafkaAdmin
from nemesis.workloads.operations import OperationLog
from nemesis.workloads.partitions import TopicPartition, partition_columns


class AdminRequests:
    """Requests of one administrator. Each returns whether it succeeded for certain."""

    def __init__(
        self, client: KafkaAdmin, recorder: Recorder, log: OperationLog, *, timeout_s: float
    ) -> None:
        self.client = client
        self.recorder = recorder
        self._log = log
        self._timeout_s = timeout_s

    async def create_partitions(self, topic: str, count: int) -> bool:
        """Let a topic have this many partitions."""
        columns = {"f": "create-partitions", "topic": topic, "partition_count": count}
        with self._log.operation(self.recorder, columns) as operation:
            await self.client.create_partitions(topic, count=count, timeout_s=self._timeout_s)
            operation.ok()
        return operation.succeeded

    async def delete_topic(self, topic: str) -> bool:
        columns = {"f": "delete-topic", "topic": topic}
        with self._log.operation(self.recorder, columns) as operation:
            await self.client.delete_topic(topic, timeout_s=self._timeout_s)
            operation.ok()
        return operation.succeeded

    def describe(self, topic: str) -> None:
        """Record the replicas of a topic's partitions, as the client knows them."""
        for partition, known in sorted(self.client.metadata.topics[topic].partitions.items()):
            columns = _partition("describe", (topic, partition))
            with self._log.operation(self.recorder, columns) as operation:
                operation.ok(replicas=list(known.replicas))

    async def reassign(self, tp: TopicPartition, target: list[int]) -> bool:
        """Move a partition to these brokers."""
        columns = _partition("reassign", tp) | {"replicas": target}
        with self._log.operation(self.recorder, columns) as operation:
            await self.client.reassign(*tp, tuple(target), timeout_s=self._timeout_s)
            operation.ok()
        return operation.succeeded

    async def cancel_reassignment(self, tp: TopicPartition) -> bool:
        columns = _partition("cancel-reassign", tp)
        with self._log.operation(self.recorder, columns) as operation:
            await self.client.reassign(*tp, None, timeout_s=self._timeout_s)
            operation.ok()
        return operation.succeeded

    async def elect_preferred_leader(self, tp: TopicPartition) -> bool:
        columns = _partition("elect-leaders", tp)
        with self._log.operation(self.recorder, columns) as operation:
            await self.client.elect_preferred_leader(*tp, timeout_s=self._timeout_s)
            operation.ok()
        return operation.succeeded

    async def delete_records(self, tp: TopicPartition, offset: int) -> bool:
        """Delete the records below an offset."""
        columns = partition_columns(self.client, tp) | {"f": "delete-records", "offset": offset}
        with self._log.operation(self.recorder, columns) as operation:
            leader = self.client.metadata.leader(*tp)
            start = await self.client.delete_records(*tp, offset, timeout_s=self._timeout_s)
            operation.ok(log_start_offset=start, node=leader)
        return operation.succeeded

    async def set_topic_config(self, topic: str, setting: str, value: int) -> bool:
        """Change one setting of a topic, or with −1 let the topic have the broker's setting again."""
        columns = {"f": "alter-config", "topic": topic, "setting": setting, "value": value}
        with self._log.operation(self.recorder, columns) as operation:
            text = None if value < 0 else str(value)
            await self.client.set_topic_config(topic, setting, text, timeout_s=self._timeout_s)
            operation.ok()
        return operation.succeeded


def _partition(function: str, tp: TopicPartition) -> dict[str, Any]:
    return {"f": function, "topic": tp[0], "partition": tp[1]}
