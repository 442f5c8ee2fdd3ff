"""Produce throughput of the reference: three brokers, three replicas, min ISR 2, acks=all, records of 1 kB.

Each load goes to two clusters in turn: one whose connections all pass the proxy, as in every run of the harness,
and one whose brokers are reached directly. Medians of alternating rounds; ``ratio`` is against the direct one.

Required: one partition takes 30 MB/s in batches of 64 kB. A client has one request in flight at a leader, which takes
up no other one before it is answered; so one client alone shows how long replication takes, and several how much
the leader can do.
"""

from __future__ import annotations

import asyncio

from rich.console import Console
from rich.table import Table

from benchmarks.cluster import BROKERS, MIN_INSYNC_REPLICAS, PARTITIONS, cluster
from benchmarks.produce_load import (
    LOADS,
    ONE_PARTITION_LOADS,
    RECORD_BYTES,
    Throughput,
    alternate,
)

ROUNDS = 4
REQUIRED_MB_PER_S = 30


def main() -> None:
    """Run the loads, print a table."""
    rates = asyncio.run(measure())
    table = Table(
        "load",
        "brokers reached",
        "records/s",
        "MB/s",
        "broker CPU/record",
        "ratio",
        title=f"{BROKERS} brokers, {PARTITIONS} partitions × {BROKERS} replicas, "
        f"min ISR {MIN_INSYNC_REPLICAS}, acks=all, {RECORD_BYTES} B",
    )
    for load, (direct, linked) in rates.items():
        for how, result in (("directly", direct), ("through the links", linked)):
            rate = result.records_per_s
            table.add_row(
                load,
                how,
                f"{rate:,.0f}",
                f"{rate * RECORD_BYTES / 1e6:.1f}",
                f"{result.broker_us_per_record:,.0f} µs",
                f"{rate / direct.records_per_s:.2f}",
            )
    console = Console(width=120)
    console.print(table)
    one_partition = max(rates[load][0].records_per_s for load in ONE_PARTITION_LOADS)
    holds = one_partition * RECORD_BYTES / 1e6 >= REQUIRED_MB_PER_S
    console.print(f"one partition takes {REQUIRED_MB_PER_S} MB/s: {'yes' if holds else 'NO'}")


async def measure() -> dict[str, tuple[Throughput, Throughput]]:
    """Return for each load the medians directly and through the links."""
    async with cluster(through_links=False) as direct, cluster() as linked:
        return {
            name: await alternate(load, direct, linked, rounds=ROUNDS)
            for name, load in (LOADS | ONE_PARTITION_LOADS).items()
        }


if __name__ == "__main__":
    main()
