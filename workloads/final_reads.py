"""Final reads: every partition is read from its start to the leader's high watermark.

A partition that cannot be read does not keep the ones behind it from their turn. Why a read ended is its ``error``:

* ``NONE``: it reached the end that the leader answers to ListOffsets
* ``NO_RECORDS``: the leader answered the last poll without an error and without records, though the end lies beyond
* ``END_UNKNOWN``: the same, and the leader did not answer ListOffsets
* ``LEADER_UNKNOWN``: the metadata name no leader
* ``CLIENT_TIMED_OUT``: the last poll failed, or the time ended while records still came
"""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass
from typing import Final

from nemesis.history.events import Kind
from nemesis.history.recorder import Recorder
from nemesis.workloads.base import WorkloadContext
from nemesis.workloads.clients import Clients, find_leader
from nemesis.workloads.kafka.client import KafkaClient
from nemesis.workloads.partitions import TopicPartition, partition_columns
from nemesis.workloads.reads import Reads

FINAL_PAUSE_S: Final = 0.1
"""How long a final reader waits before it asks again; without a pause it would ask as fast as brokers answer."""
MOST_READERS: Final = 4


ENDED: Final = "NONE"
"""The error of a read that reached the end of its partition."""
TIMED_OUT: Final = "CLIENT_TIMED_OUT"
LEADER_UNKNOWN: Final = "LEADER_UNKNOWN"
END_UNKNOWN: Final = "END_UNKNOWN"
NO_RECORDS: Final = "NO_RECORDS"


@dataclass(slots=True)
class _FinalRead:
    """How far one partition has been read."""

    tp: TopicPartition
    position: int = 0
    start: int = 0
    end: int = -1
    error: str = TIMED_OUT

    def record(self, client: KafkaClient, recorder: Recorder) -> None:
        recorder.record(
            Kind.FINAL_READ,
            offset=self.position,
            high_watermark=self.end,
            log_start_offset=self.start,
            error=self.error,
            **partition_columns(client, self.tp),
        )


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
        """Read the partitions in turn; one that does not advance waits behind the others."""
        client, recorder = self._clients.client(process), self._context.recorder(process)
        loop = asyncio.get_running_loop()
        turns = deque(_FinalRead(tp) for tp in share)
        try:
            while turns and loop.time() < deadline:
                read = turns[0]
                if await self._advance(client, recorder, read):
                    continue
                if read.error == ENDED:
                    read.record(client, recorder)
                    turns.popleft()
                    continue
                turns.rotate(-1)
                await asyncio.sleep(FINAL_PAUSE_S)
            for read in turns:
                read.record(client, recorder)
        finally:
            client.close()

    async def _advance(self, client: KafkaClient, recorder: Recorder, read: _FinalRead) -> bool:
        """Read once; return whether more may follow at once. Otherwise the read has the error that says why."""
        read.error = TIMED_OUT
        if client.metadata.leader(*read.tp) is None:
            await find_leader(client, read.tp)
        if (leader := client.metadata.leader(*read.tp)) is None:
            read.error = LEADER_UNKNOWN
            return False
        polled = await self._reads.poll(client, recorder, read.tp, read.position, leader)
        if polled is not None and polled.position_after(read.position) > read.position:
            read.position = polled.position_after(read.position)
            read.start = max(read.start, polled.first_offset)
            return True
        read.end = await self._reads.end_offset(client, recorder, read.tp, leader)
        if polled is not None:
            read.error = _reason(read)
        if read.error != ENDED:
            await client.refresh_metadata()
        return False


def _reason(read: _FinalRead) -> str:
    """Return why a read ends here, when its last poll was answered without an error and returned nothing."""
    if read.end < 0:
        return END_UNKNOWN
    return ENDED if read.end <= read.position else NO_RECORDS
