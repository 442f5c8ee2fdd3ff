"""Final reads: every partition is read from its start to the leader's high watermark."""

from __future__ import annotations

import asyncio
from typing import Final

from nemesis.history.events import Kind
from nemesis.history.recorder import Recorder
from nemesis.workloads.base import WorkloadContext
from nemesis.workloads.clients import Clients, find_leader
from nemesis.workloads.kafka.client import KafkaClient
from nemesis.workloads.kafka.errors import KafkaError
from nemesis.workloads.partitions import TopicPartition, partition_columns
from nemesis.workloads.reads import Reads

FINAL_PAUSE_S: Final = 0.1
"""How long a final reader waits before it asks again; without a pause it would ask as fast as brokers answer."""
MOST_READERS: Final = 4


class FinalReads:
    """Reads partitions to their end, a few at a time."""

    def __init__(self, context: WorkloadContext, *, clients: Clients, reads: Reads) -> None:
        self._context = context
        self._clients = clients
        self._reads = reads

    async def existing_topics(self, deadline: float) -> KafkaClient:
        """Return a closed client whose metadata is fresh, or as old as it is at the deadline."""
        client = self._clients.client("final-metadata")
        while not await client.refresh_metadata():
            if asyncio.get_running_loop().time() > deadline:
                break
            await asyncio.sleep(0.1)
        client.close()
        return client

    async def read_all(self, partitions: list[TopicPartition], deadline: float) -> None:
        """Read the partitions; a partition that cannot be read to its end is recorded with the error."""
        readers = min(MOST_READERS, len(partitions)) or 1
        shares = [partitions[index::readers] for index in range(readers)]
        async with asyncio.TaskGroup() as group:
            for index, share in enumerate(shares):
                group.create_task(self._read_to_end(f"final-{index}", share, deadline))

    async def _read_to_end(
        self, process: str, share: list[TopicPartition], deadline: float
    ) -> None:
        client, recorder = self._clients.client(process), self._context.recorder(process)
        try:
            for tp in share:
                await self._read_partition(client, recorder, tp, deadline)
        finally:
            client.close()

    async def _read_partition(
        self, client: KafkaClient, recorder: Recorder, tp: TopicPartition, deadline: float
    ) -> None:
        position, start, end, error = 0, 0, -1, "CLIENT_TIMED_OUT"
        loop = asyncio.get_running_loop()
        while loop.time() < deadline:
            if client.metadata.leader(*tp) is None and not await find_leader(client, tp):
                error = "LEADER_UNKNOWN"
                await asyncio.sleep(FINAL_PAUSE_S)
                continue
            polled = await self._reads.poll(client, recorder, tp, position)
            if polled is not None and polled.position_after(position) > position:
                position, start = polled.position_after(position), max(start, polled.log_start)
                continue
            end = await self._end_offset(client, tp)
            if polled is not None and 0 <= end <= position:
                error = "NONE"
                break
            await asyncio.sleep(FINAL_PAUSE_S)
            await client.refresh_metadata()
        recorder.record(
            Kind.FINAL_READ,
            offset=position,
            high_watermark=end,
            log_start_offset=start,
            error=error,
            **partition_columns(client, tp),
        )

    async def _end_offset(self, client: KafkaClient, tp: TopicPartition) -> int:
        """Return the offset at which a final read ends; −1 while the leader does not answer."""
        try:
            return await client.end_offset(*tp, timeout_s=self._clients.timeout_s)
        except KafkaError:
            return -1
