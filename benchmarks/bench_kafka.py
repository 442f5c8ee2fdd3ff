"""The reference and Apache Kafka side by side: three brokers each, three replicas, acks=all, 1 kB.

Clients and replicas reach brokers past the proxy. Both clusters run at the same time and are loaded in turn, A B B A,
after both were loaded for ``WARM_UP_S``, which a JVM needs to compile what it executes.

``throughput``   confluent-kafka with batches of 64 kB, from one client and from 16, to one partition and to six
``latency``      our own client, one record per request, one request in flight: milliseconds, median and 99th percentile
``failover``     the controller dies with ``FAILOVER_PARTITIONS`` partitions, its ZooKeeper session at once:
                 seconds until every other broker names a living leader for every partition

Nothing is required: the figures say how far a result about the reference's timing carries over.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from functools import partial
from statistics import median, quantiles
from typing import Final, TypeVar

from rich.console import Console
from rich.table import Table

from benchmarks.cluster import TOPIC, Cluster, cluster
from benchmarks.produce_load import (
    PARTITION_UA,
    RECORD_BYTES,
    Load,
    alternate,
    large_batches,
)
from nemesis.faults.zookeeper_view import ZooKeeperView
from nemesis.interfaces.links import Address
from nemesis.interfaces.unsupported import supported

TARGETS: Final = ("reference", "kafka")
WARM_UP_S: Final = 30.0
ROUNDS: Final = 4
SAMPLES: Final = 500
"""Single records, per round."""
SEND_TIMEOUT_S: Final = 10.0
FAILOVER_PARTITIONS: Final = 1_000
FAILOVERS: Final = 3
FAILOVER_TIMEOUT_S: Final = 120.0
POLL_S: Final = 0.02
NO_LEADER: Final = -1
LOADS: Final[dict[str, Load]] = {
    f"64 kB batches, {clients} × confluent-kafka, {name}": partial(
        large_batches, producers=clients, partition=partition
    )
    for clients in (1, 16)
    for name, partition in (("one partition", 0), ("six partitions", PARTITION_UA))
}


def main() -> None:
    """Run everything, print a table."""
    table = Table("what", *TARGETS, "Kafka ÷ reference", title="three brokers, three replicas")
    for label, unit, values in asyncio.run(_measured()):
        first, second = values
        table.add_row(
            label, f"{first:,.1f} {unit}", f"{second:,.1f} {unit}", f"{second / first:.2f}"
        )
    Console(width=120).print(table)


Row = tuple[str, str, tuple[float, float]]
"""What was measured, its unit, and the values of the two targets."""


async def _measured() -> list[Row]:
    return [*await _under_load(), *await _failovers()]


async def _under_load() -> list[Row]:
    async with (
        cluster(target=TARGETS[0], tracing=False, through_links=False) as reference,
        cluster(target=TARGETS[1], tracing=False, through_links=False) as kafka,
    ):
        both = reference, kafka
        for running in both:
            await warm(running)
        rows: list[Row] = []
        for name, load in LOADS.items():
            rates = await alternate(load, reference, kafka, rounds=ROUNDS)
            rows.append(
                (name, "MB/s", _pair(rates, lambda r: r.records_per_s * RECORD_BYTES / 1e6))
            )
        times: dict[Cluster, list[float]] = {running: [] for running in both}
        for index in range(ROUNDS):
            for running in both if index % 2 == 0 else reversed(both):
                times[running] += await _latencies(running)
        for label, measure in (("median", median), ("99th percentile", _percentile_99)):
            values = _pair((times[reference], times[kafka]), measure)
            rows.append((f"one record, {label}", "ms", values))
        return rows


T = TypeVar("T")


def _pair(both: tuple[T, T], measure: Callable[[T], float]) -> tuple[float, float]:
    return measure(both[0]), measure(both[1])


def _percentile_99(times: list[float]) -> float:
    return quantiles(times, n=100)[-1]


async def warm(running: Cluster) -> None:
    """Load it for ``WARM_UP_S`` as it will be loaded."""
    end = time.monotonic() + WARM_UP_S
    while time.monotonic() < end:
        for load in LOADS.values():
            await load(running)
        await _latencies(running)


async def _latencies(running: Cluster) -> list[float]:
    """Return the milliseconds of each of ``SAMPLES`` sends to one partition, one after the other."""
    client = running.client("latency")
    results = []
    try:
        while not await client.refresh_metadata():
            pass
        for _ in range(SAMPLES):
            started = time.perf_counter()
            await client.send(
                TOPIC, 0, [(None, b"v" * RECORD_BYTES)], acks=-1, timeout_s=SEND_TIMEOUT_S
            )
            results.append((time.perf_counter() - started) * 1_000)
    finally:
        client.close()
    return results


async def _failovers() -> list[Row]:
    """Return the medians, of one cluster after the other: each needs the machine for itself."""
    seconds = [await _failover_of(target) for target in TARGETS]
    label = f"failover of the controller, {FAILOVER_PARTITIONS:,} partitions"
    return [(label, "s", (seconds[0], seconds[1]))]


async def _failover_of(target: str) -> float:
    async with (
        cluster(
            target=target, tracing=False, through_links=False, partitions=FAILOVER_PARTITIONS
        ) as running,
        supported(running.runtime.ensemble).admin() as zookeeper,
    ):
        view = ZooKeeperView(zookeeper)
        return median([await _fail(running, view) for _ in range(FAILOVERS)])


async def _fail(running: Cluster, view: ZooKeeperView) -> float:
    """Kill the controller, wait until the others know new leaders, bring it back into every ISR."""
    await running.until_in_sync()
    brokers = (await view.snapshot()).brokers
    controller = await view.controller_now()
    assert controller is not None
    dead = controller.broker_id
    await running.runtime.processes.kill(f"broker-{dead}")
    died = time.monotonic()
    await view.zookeeper.end_session(brokers[dead].session)
    others = [running.runtime.cluster.direct_address(f"broker-{b}") for b in brokers if b != dead]
    async with asyncio.timeout(FAILOVER_TIMEOUT_S):
        await asyncio.gather(*(_until_led_by_others(running, other, dead) for other in others))
    took = time.monotonic() - died
    await running.runtime.processes.restart(f"broker-{dead}")
    return took


async def _until_led_by_others(running: Cluster, broker: Address, dead: int) -> None:
    while not await _is_led_by_others(running, broker, dead):
        await asyncio.sleep(POLL_S)


async def _is_led_by_others(running: Cluster, broker: Address, dead: int) -> bool:
    """Ask this broker and no other: a client of its own knows only its address."""
    client = running.client("watcher", broker)
    try:
        if not await client.refresh_metadata() or TOPIC not in client.metadata.topics:
            return False
        leaders = {p.leader for p in client.metadata.topics[TOPIC].partitions.values()}
        return not leaders & {dead, NO_LEADER}
    finally:
        client.close()


if __name__ == "__main__":
    main()
