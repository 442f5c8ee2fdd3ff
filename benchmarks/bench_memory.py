"""What a broker with many partitions keeps in memory.

Three real brokers, each of which has a replica of every partition. Shown is the proportional set size of the largest
of them: once with hardly any partitions, once with 2,000 when all replicas are in sync, and again after clients have
written to all of them. Required: under 300 MB.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from confluent_kafka import KafkaError as ConfluentError
from confluent_kafka import Producer
from rich.console import Console
from rich.table import Table

from benchmarks.cluster import BROKERS, PARTITIONS, READY_TIMEOUT_S, TOPIC, Cluster, cluster

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
        for _ in range(RECORDS_PER_PARTITION):  # a batch each
            await asyncio.to_thread(_write, running, partitions)
        return Memory(in_sync, max(running.broker_memory_bytes()))


def _write(running: Cluster, partitions: int) -> None:
    producer = Producer({"bootstrap.servers": running.bootstrap_servers, "acks": "all"})
    for partition in range(partitions):
        producer.produce(TOPIC, b"v" * RECORD_BYTES, partition=partition, on_delivery=_delivered)
    if producer.flush(READY_TIMEOUT_S):
        raise RuntimeError("records were still not acknowledged after the benchmark")


def _delivered(error: ConfluentError | None, message: object) -> None:
    del message
    if error is not None:
        raise RuntimeError(f"a record was not acknowledged: {error}")


if __name__ == "__main__":
    main()
