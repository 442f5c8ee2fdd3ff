"""The last reads of committed records: each partition from its start to its last stable offset.

If the last stable offset is below the high watermark, the leader is asked which transaction holds it. When all
partitions were read, those are polled again and again until their last stable offset has reached the high watermark.
"""

from __future__ import annotations

import asyncio

from nemesis.history.recorder import Recorder
from nemesis.history.vocabulary.transactions import LAST_READER
from nemesis.workloads.base import WorkloadContext
from nemesis.workloads.clients import Clients, find_leader
from nemesis.workloads.final_reads import FINAL_PAUSE_S
from nemesis.workloads.kafka.client import KafkaClient
from nemesis.workloads.kafka.open_transactions import oldest_open
from nemesis.workloads.kafka.poll_answers import Polled
from nemesis.workloads.operations import OperationLog
from nemesis.workloads.partitions import TopicPartition, partition_columns
from nemesis.workloads.reads import Reads


async def read_committed(
    context: WorkloadContext,
    clients: Clients,
    reads: Reads,
    log: OperationLog,
    partitions: list[TopicPartition],
    deadline: float,
) -> None:
    """Read the partitions one after the other; leave out what cannot be read before the deadline."""
    client = clients.client(LAST_READER)
    recorder = context.recorder(LAST_READER)
    behind: dict[TopicPartition, int] = {}
    try:
        async with asyncio.timeout_at(deadline):
            for tp in partitions:
                last = await _read_to_end(client, recorder, reads, tp)
                if last.last_stable_offset < last.high_watermark:
                    behind[tp] = last.last_stable_offset
                    await _ask_for_holder(client, recorder, log, tp, last, clients.timeout_s)
            while behind:
                await asyncio.sleep(FINAL_PAUSE_S)
                for tp, position in [*behind.items()]:
                    polled = await _poll(client, recorder, reads, tp, position)
                    if polled is not None:
                        behind[tp] = polled.position_after(position)
                        if polled.last_stable_offset >= polled.high_watermark:
                            del behind[tp]
    except TimeoutError:
        pass  # what was not read is not judged
    finally:
        client.close()


async def _read_to_end(
    client: KafkaClient, recorder: Recorder, reads: Reads, tp: TopicPartition
) -> Polled:
    """Return the answer in which the last stable offset was reached."""
    position = 0
    while True:
        polled = await _poll(client, recorder, reads, tp, position)
        if polled is None:
            await asyncio.sleep(FINAL_PAUSE_S)
            continue
        after = polled.position_after(position)
        if after == position and polled.first_offset == 0:
            if position >= polled.last_stable_offset:
                return polled
            await asyncio.sleep(FINAL_PAUSE_S)
        position = after


async def _poll(
    client: KafkaClient, recorder: Recorder, reads: Reads, tp: TopicPartition, position: int
) -> Polled | None:
    """Poll committed records once; None after an error, with the client's metadata renewed."""
    leader = client.metadata.leader(*tp)
    polled: Polled | None = None
    if leader is None:
        await find_leader(client, tp)
    else:
        polled = await reads.poll(client, recorder, tp, position, leader, is_committed=True)
    if polled is None:
        await client.refresh_metadata()
    return polled


async def _ask_for_holder(
    client: KafkaClient,
    recorder: Recorder,
    log: OperationLog,
    tp: TopicPartition,
    last: Polled,
    timeout_s: float,
) -> None:
    """Record which transaction holds the last stable offset, as the broker of the last answer knows."""
    columns = partition_columns(client, tp) | {
        "f": "open-transaction",
        "node": last.node,
        "last_stable_offset": last.last_stable_offset,
        "high_watermark": last.high_watermark,
    }
    with log.operation(recorder, columns) as operation:
        oldest = await oldest_open(client, tp, node=last.node, timeout_s=timeout_s)
        if oldest is None:
            operation.ok()
        else:
            operation.ok(
                producer_id=oldest.producer_id,
                producer_epoch=oldest.epoch,
                first_offset=oldest.first_offset,
                wall_ms=oldest.last_write_ms,
            )
