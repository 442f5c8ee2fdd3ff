"""What the brokers' tracing costs: the same produce load on a cluster that traces and on one that does not.

Both clusters run at once and take the load in turn, so that a slow moment of the machine hits both.
Required: tracing costs less than a tenth of the throughput.
"""

from __future__ import annotations

import asyncio
from statistics import median

from rich.console import Console
from rich.table import Table

from benchmarks.cluster import cluster
from benchmarks.produce_load import LOADS

ROUNDS = 5
ALLOWED_COST = 0.10


def main() -> None:
    """Run the loads, print a table."""
    rates = asyncio.run(measure())
    table = Table("load", "records/s, off", "records/s, on", "cost", f"below {ALLOWED_COST:.0%}")
    for load, (off, on) in rates.items():
        cost = 1 - on / off
        table.add_row(
            load, f"{off:,.0f}", f"{on:,.0f}", f"{cost:.1%}", "yes" if cost < ALLOWED_COST else "NO"
        )
    Console(width=100).print(table)


async def measure() -> dict[str, tuple[float, float]]:
    """Return for each load the median records/s without and with tracing."""
    rates = {}
    async with cluster(tracing=False) as untraced, cluster(tracing=True) as traced:
        for name, load in LOADS.items():
            rounds = [(await load(untraced), await load(traced)) for _ in range(ROUNDS)]
            rates[name] = (median(r[0] for r in rounds), median(r[1] for r in rounds))
    return rates


if __name__ == "__main__":
    main()
