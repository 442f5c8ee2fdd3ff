"""The last reads of committed records: each partition from its start to its last stable offset."""

from __future__ import annotations

import asyncio

from nemesis.history.recorder import Recorder
from nemesis.workloads.base import WorkloadContext
from nemesis.workloads.clients import Clients, find_leader
from nemesis.workloads.final_reads import FINAL_PAUSE_S
from nemesis.workloads.kafka.client import KafkaClient
from nemesis.workloads.kafka.poll_answers import Polled
from nemesis.workloads.partitions import TopicPartition
from nemesis.workloads.reads import Reads

PROCESS = "committed"


async def read_committed(
    context: WorkloadContext,
    clients: Clients,
    reads: Reads,
    partitions: list[TopicPartition],
    deadline: float,
) -> None:
    """Read the partitions one after the other; leave out what cannot be read before the deadline."""
    client = clients.client(PROCESS)
    recorder = context.recorder(PROCESS)
    try:
        async with asyncio.timeout_at(deadline):
            for tp in partitions:
                await _read_to_end(client, recorder, reads, tp)
    except TimeoutError:
        pass  # what was not read is not judged
    finally:
        client.close()


async def _read_to_end(
    client: KafkaClient, recorder: Recorder, reads: Reads, tp: TopicPartition
) -> None:
    position = 0
    while True:
        leader = client.metadata.leader(*tp)
        polled: Polled | None = None
        if leader is None:
            await find_leader(client, tp)
        else:
            polled = await reads.poll(client, recorder, tp, position, leader, is_committed=True)
        if polled is None:
            await client.refresh_metadata()
            await asyncio.sleep(FINAL_PAUSE_S)
            continue
        after = polled.position_after(position)
        if after == position and polled.first_offset == 0:
            if position >= polled.last_stable_offset:
                return
            await asyncio.sleep(FINAL_PAUSE_S)
        position = after
