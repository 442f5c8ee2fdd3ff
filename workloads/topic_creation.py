"""Topics are created, and their leaders waited for."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from nemesis.history.recorder import Recorder
from nemesis.workloads.base import NotReadyError, WorkloadContext
from nemesis.workloads.clients import Clients
from nemesis.workloads.kafka.admin import KafkaAdmin
from nemesis.workloads.operations import OperationLog
from nemesis.workloads.partitions import KnownPartitions
from nemesis.workloads.produce_consume_options import ProduceConsumeOptions

COMPACTED: Final = {"cleanup.policy": "compact"}

OnCreated = Callable[[KafkaAdmin, Recorder, str], None]
"""Called with the client, its recorder and the name of a topic that has all its leaders."""


class TopicCreation:
    """Creates the initial topics, and the later topics while faults strike."""

    def __init__(
        self,
        context: WorkloadContext,
        options: ProduceConsumeOptions,
        *,
        clients: Clients,
        partitions: KnownPartitions,
        log: OperationLog,
        on_created: OnCreated,
    ) -> None:
        self._context = context
        self._options = options
        self._clients = clients
        self._partitions = partitions
        self._log = log
        self._on_created = on_created

    async def create_initial(self, timeout_s: float) -> None:
        """Create the initial topics; raises ``NotReadyError`` unless all have leaders within ``timeout_s``."""
        client = self._clients.admin("admin-setup")
        recorder = self._context.recorder("admin-setup")
        wanted = [f"orders-{index}" for index in range(self._options.topics)]
        try:
            async with asyncio.timeout(timeout_s):
                for topic in wanted:
                    await self.create_until_known(client, recorder, topic)
        except TimeoutError:
            raise NotReadyError(
                f"the topics {', '.join(wanted)} did not all get leaders within {timeout_s:g} s"
            ) from None
        finally:
            client.close()

    async def create_later(self, process: str) -> None:
        """Create the later topics, one after the other."""
        client, recorder = self._clients.admin(process), self._context.recorder(process)
        try:
            for index in range(self._options.later_topics):
                await asyncio.sleep(self._options.later_topic_interval_ms / 1000)
                if not self._context.permits(process, index):
                    continue
                await self.create_until_known(client, recorder, f"later-{index}", partitions=1)
        finally:
            client.close()

    async def create_until_known(
        self, client: KafkaAdmin, recorder: Recorder, topic: str, *, partitions: int | None = None
    ) -> None:
        """Try until the metadata names the topic with all its leaders; each try is an operation of its own."""
        count = partitions or self._options.partitions
        while True:
            await client.refresh_metadata()
            metadata = client.metadata
            if topic not in metadata.topics and metadata.controller_id in metadata.brokers:
                await self.create(client, recorder, topic, count)
            elif all(metadata.leader(topic, p) is not None for p in range(count)):
                self._partitions.add([(topic, partition) for partition in range(count)])
                self._on_created(client, recorder, topic)
                return
            await asyncio.sleep(0.1)

    async def create(
        self, client: KafkaAdmin, recorder: Recorder, topic: str, partitions: int
    ) -> bool:
        """One attempt to create a topic; returns whether it was created for certain."""
        columns = {"f": "create-topic", "topic": topic, "partition_count": partitions}
        with self._log.operation(recorder, columns) as operation:
            await client.create_topic(
                topic,
                partitions=partitions,
                replication_factor=self._options.replication_factor,
                configs=COMPACTED if self._options.keys else {},
                timeout_s=self._clients.timeout_s,
            )
            operation.ok()
        return operation.succeeded
