"""What the brokers' tracing costs: the same produce load on a cluster that traces and on one that does not.

Both clusters of a pair run at once and take the load in turn, so that a slow moment of the machine hits both. Two
clusters differ by more than tracing, though (which broker leads what, where memory lies): between two pairs the cost
moves by several hundredths. So there are several pairs, each of new processes; the median decides, the range is shown.
Required: tracing costs less than a tenth of the throughput. The brokers share all cores with the clients, so their
processor time per record bounds the rate.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from statistics import median

from rich.console import Console
from rich.table import Table

from benchmarks.cluster import cluster
from benchmarks.produce_load import LOADS, Throughput, alternate

PAIRS = 5
ROUNDS = 4
ALLOWED_COST = 0.10

Pair = tuple[Throughput, Throughput]
"""Without and with tracing."""


def main() -> None:
    """Run the loads, print a table."""
    pairs = asyncio.run(measure())
    table = Table("load", "measured", "off", "on", "cost", "range", f"below {ALLOWED_COST:.0%}")
    for load, measured in pairs.items():
        rates = [(off.records_per_s, on.records_per_s) for off, on in measured]
        times = [(off.broker_us_per_record, on.broker_us_per_record) for off, on in measured]
        slower = [1 - on / off for off, on in rates]
        dearer = [1 - off / on for off, on in times]
        for label, values, costs in (
            ("records/s", rates, slower),
            ("broker CPU µs/record", times, dearer),
        ):
            cost = median(costs)
            table.add_row(
                load,
                label,
                f"{median(off for off, _ in values):,.0f}",
                f"{median(on for _, on in values):,.0f}",
                f"{cost:.1%}",
                f"{min(costs):.1%} to {max(costs):.1%}",
                "yes" if cost < ALLOWED_COST else "NO",
            )
    Console(width=120).print(table)


async def measure() -> dict[str, list[Pair]]:
    """Return for each load what every pair of clusters achieved."""
    measured: dict[str, list[Pair]] = defaultdict(list)
    for _ in range(PAIRS):
        async with cluster(tracing=False) as untraced, cluster(tracing=True) as traced:
            for name, load in LOADS.items():
                measured[name].append(await alternate(load, untraced, traced, rounds=ROUNDS))
    return measured


if __name__ == "__main__":
    main()
