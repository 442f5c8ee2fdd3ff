"""What a broker with many partitions keeps in memory.

Three real brokers, each of which has a replica of every partition. Shown is the resident set size of the largest
of them: once with hardly any partitions, once with 2,000 when all replicas are in sync, and again after clients have
written to all of them. Required: under 300 MB.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, cast

from kio.schema.errors import ErrorCode
from kio.schema.produce.v9 import request as produce
from kio.schema.types import TopicName
from kio.static.primitive import i16, i32, i32Timedelta
from rich.console import Console
from rich.table import Table

from benchmarks.cluster import BROKERS, PARTITIONS, READY_TIMEOUT_S, TOPIC, Cluster, cluster
from nemesis.workloads.kafka.record_batch import build

if TYPE_CHECKING:
    from kio.static.primitive import Records

SIZES = (PARTITIONS, 2_000)
RECORDS_PER_PARTITION = 20
RECORD_BYTES = 1_000
ALLOWED_BYTES = 300_000_000


@dataclass(frozen=True, slots=True)
class Memory:
    """Of the largest broker, in bytes."""

    in_sync: int
    written: int


def main() -> None:
    """Measure each size, print a table."""
    measured = {size: asyncio.run(measure(size)) for size in SIZES}
    few, many = measured.values()
    table = Table(
        "partitions",
        "in sync",
        f"after {RECORDS_PER_PARTITION} batches each",
        f"under {ALLOWED_BYTES / 1e6:.0f} MB",
        title=f"largest of {BROKERS} brokers, a replica of every partition on each",
    )
    for size, memory in measured.items():
        table.add_row(
            f"{size:,}",
            f"{memory.in_sync / 1e6:.0f} MB",
            f"{memory.written / 1e6:.0f} MB",
            "yes" if max(memory.in_sync, memory.written) < ALLOWED_BYTES else "NO",
        )
    console = Console(width=100)
    console.print(table)
    more = SIZES[-1] - SIZES[0]
    console.print(
        f"a partition more: {(many.in_sync - few.in_sync) / more / 1e3:.0f} kB,"
        f" written to: {(many.written - few.written) / more / 1e3:.0f} kB"
    )


async def measure(partitions: int) -> Memory:
    """Return what the largest broker has."""
    async with cluster(through_links=False, partitions=partitions) as running:
        async with asyncio.timeout(READY_TIMEOUT_S):
            await running.until_in_sync()
        in_sync = max(running.broker_memory_bytes())
        await _write(running)
        return Memory(in_sync, max(running.broker_memory_bytes()))


async def _write(running: Cluster) -> None:
    """Write to every partition, so often; each leader gets one batch for each of its partitions at a time."""
    client = running.client("producer")
    try:
        while not await client.refresh_metadata():
            pass
        led: dict[int, list[int]] = {}
        for number, partition in client.metadata.topics[TOPIC].partitions.items():
            led.setdefault(partition.leader, []).append(number)
        for _ in range(RECORDS_PER_PARTITION):
            batch = build([(None, b"v" * RECORD_BYTES)], client.timestamp_ms())
            for leader, numbers in led.items():
                answer = await client.request(leader, _request(numbers, batch), READY_TIMEOUT_S)
                for partition_response in answer.responses[0].partition_responses:
                    if partition_response.error_code is not ErrorCode.none:
                        raise RuntimeError(
                            f"a record was not acknowledged: {partition_response.error_code.name}"
                        )
    finally:
        client.close()


def _request(partitions: list[int], batch: bytes) -> produce.ProduceRequest:
    data = tuple(
        produce.PartitionProduceData(index=i32(number), records=cast("Records", batch))
        for number in partitions
    )
    return produce.ProduceRequest(
        transactional_id=None,
        acks=i16(-1),
        timeout=i32Timedelta.parse(timedelta(seconds=READY_TIMEOUT_S)),
        topic_data=(produce.TopicProduceData(name=TopicName(TOPIC), partition_data=data),),
    )


if __name__ == "__main__":
    main()
