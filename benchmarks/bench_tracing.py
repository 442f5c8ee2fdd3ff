"""What the brokers' tracing costs: the same produce load on a cluster that traces and on one that does not.

Both clusters run at once and take the load in turn, so that a slow moment of the machine hits both.
Required: tracing costs less than a tenth of the throughput. The brokers share all cores with the clients, so their
processor time per record bounds the rate; its ratio moves far less than the rate's when others use the machine.
"""

from __future__ import annotations

import asyncio

from rich.console import Console
from rich.table import Table

from benchmarks.cluster import cluster
from benchmarks.produce_load import LOADS, Throughput, alternate

ROUNDS = 6
ALLOWED_COST = 0.10


def main() -> None:
    """Run the loads, print a table."""
    rates = asyncio.run(measure())
    table = Table("load", "measured", "off", "on", "cost", f"below {ALLOWED_COST:.0%}")
    for load, (off, on) in rates.items():
        slower = 1 - on.records_per_s / off.records_per_s
        dearer = 1 - off.broker_us_per_record / on.broker_us_per_record
        for what, before, after, cost in (
            ("records/s", off.records_per_s, on.records_per_s, slower),
            ("broker CPU µs/record", off.broker_us_per_record, on.broker_us_per_record, dearer),
        ):
            verdict = "yes" if cost < ALLOWED_COST else "NO"
            table.add_row(load, what, f"{before:,.0f}", f"{after:,.0f}", f"{cost:.1%}", verdict)
    Console(width=100).print(table)


async def measure() -> dict[str, tuple[Throughput, Throughput]]:
    """Return for each load the medians without and with tracing."""
    async with cluster(tracing=False) as untraced, cluster(tracing=True) as traced:
        return {
            name: await alternate(load, untraced, traced, rounds=ROUNDS)
            for name, load in LOADS.items()
        }


if __name__ == "__main__":
    main()
