"""What it costs a Kafka broker to write what it logs of its replicas (``--broker-logs``): a load with and without.

Both clusters of a pair run Kafka 3.9.1 at once, past the proxy, and take the load in turn after both were loaded for
half a minute, which a JVM needs to compile what it executes. As two clusters differ by more than what they write,
there are ``PAIRS`` pairs of new processes; the median decides, the range is shown. Nothing is required: the figure says
how far what is seen with the logs holds without them.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from statistics import median
from typing import Final

from rich.console import Console
from rich.table import Table

from benchmarks.bench_kafka import warm
from benchmarks.cluster import cluster
from benchmarks.produce_load import LOADS, ONE_PARTITION_LOADS, Throughput, alternate
from nemesis.history.sources import JUDGED, EventSource

PAIRS: Final = 3
ROUNDS: Final = 4

Pair = tuple[Throughput, Throughput]
"""Without and with what brokers log of replicas."""


def main() -> None:
    """Run the loads, print a table."""
    pairs = asyncio.run(_measured())
    table = Table("load", "measured", "without", "with", "with ÷ without", "range")
    for load, measured in pairs.items():
        rates = [(off.records_per_s, on.records_per_s) for off, on in measured]
        times = [(off.broker_us_per_record, on.broker_us_per_record) for off, on in measured]
        for label, values in (("records/s", rates), ("broker CPU µs/record", times)):
            ratios = [on / off for off, on in values]
            table.add_row(
                load,
                label,
                f"{median(off for off, _ in values):,.0f}",
                f"{median(on for _, on in values):,.0f}",
                f"{median(ratios):.2f}",
                f"{min(ratios):.2f} to {max(ratios):.2f}",
            )
    Console(width=120).print(table)


async def _measured() -> dict[str, list[Pair]]:
    """Return for each load what every pair of clusters achieved."""
    measured: dict[str, list[Pair]] = defaultdict(list)
    for _ in range(PAIRS):
        async with (
            cluster(target="kafka", tracing=True, through_links=False) as without,
            cluster(
                target="kafka",
                target_options={EventSource.BROKER_LOGS.value: JUDGED},
                tracing=True,
                through_links=False,
            ) as logging,
        ):
            for running in (without, logging):
                await warm(running)
            for name, load in {**LOADS, **ONE_PARTITION_LOADS}.items():
                measured[name].append(await alternate(load, without, logging, rounds=ROUNDS))
    return measured


if __name__ == "__main__":
    main()
