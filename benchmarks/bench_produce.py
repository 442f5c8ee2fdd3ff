"""Produce throughput of the reference: three brokers, three replicas, min ISR 2, acks=all, records of 1 kB.

Each load goes to two clusters in turn: one whose connections all pass the proxy, as in every run of the harness,
and one whose brokers are reached directly. Medians of alternating rounds; ``ratio`` is against the direct one.
"""

from __future__ import annotations

import asyncio
from statistics import median

from rich.console import Console
from rich.table import Table

from benchmarks.cluster import BROKERS, MIN_INSYNC_REPLICAS, PARTITIONS, cluster
from benchmarks.produce_load import LOADS, RECORD_BYTES

ROUNDS = 3


def main() -> None:
    """Run the loads, print a table."""
    rates = asyncio.run(measure())
    table = Table(
        "load",
        "brokers reached",
        "records/s",
        "MB/s",
        "ratio",
        title=f"{BROKERS} brokers, {PARTITIONS} partitions × {BROKERS} replicas, "
        f"min ISR {MIN_INSYNC_REPLICAS}, acks=all, {RECORD_BYTES} B",
    )
    for load, (direct, linked) in rates.items():
        for how, rate in (("directly", direct), ("through the links", linked)):
            mb_per_s = rate * RECORD_BYTES / 1e6
            table.add_row(load, how, f"{rate:,.0f}", f"{mb_per_s:.1f}", f"{rate / direct:.2f}")
    Console(width=100).print(table)


async def measure() -> dict[str, tuple[float, float]]:
    """Return for each load the median records/s directly and through the links."""
    rates = {}
    async with cluster(through_links=False) as direct, cluster() as linked:
        for name, load in LOADS.items():
            rounds = [(await load(direct), await load(linked)) for _ in range(ROUNDS)]
            rates[name] = (median(r[0] for r in rounds), median(r[1] for r in rounds))
    return rates


if __name__ == "__main__":
    main()
