"""Producers of 1 kB records with acks=all, each measured over a window after a warm-up.

``batched``           confluent-kafka (librdkafka), which gathers records for ``LINGER_MS``
``one_partition``     the same with batches of 64 kB, all to one partition: one leader takes it all
``one_at_a_time``     our own client as workloads use it: ``PROCESSES`` of them, one record per request, one in flight

Rates count acknowledged records only. Any failed record ends the benchmark: a rate of a cluster that refuses
would say nothing.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from statistics import median

from confluent_kafka import KafkaError as ConfluentError
from confluent_kafka import Producer

from benchmarks.cluster import PARTITIONS, TOPIC, Cluster
from nemesis.workloads.kafka.client import KafkaClient

RECORD_BYTES = 1_000
LINGER_MS = 5
LARGE_BATCH_BYTES = 65_536
LARGE_LINGER_MS = 100
PROCESSES = 16
WARM_UP_S = 0.5
MEASURED_S = 2.0
REQUEST_TIMEOUT_S = 10.0


@dataclass(frozen=True, slots=True)
class Throughput:
    """What a load achieved; ``broker_us_per_record`` is processor time of all brokers, steady on a busy machine."""

    records_per_s: float
    broker_us_per_record: float


Load = Callable[[Cluster], Awaitable[Throughput]]
"""Puts load on a cluster and returns what was acknowledged."""

_VALUE = b"v" * RECORD_BYTES
PARTITION_UA = -1
"""librdkafka's name for: the client chooses."""


class _Window:
    """Counts acknowledgements, and those from the end of the warm-up to the end of the measurement."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._cpu_before_s = cluster.broker_cpu_s()
        self._start = time.perf_counter() + WARM_UP_S
        self._end = self._start + MEASURED_S
        self._acknowledged = 0
        self._in_window = 0

    @property
    def is_over(self) -> bool:
        return time.perf_counter() >= self._end

    def count(self) -> None:
        self._acknowledged += 1
        if self._start <= time.perf_counter() < self._end:
            self._in_window += 1

    def result(self) -> Throughput:
        """Call when every record has been acknowledged."""
        cpu_s = self._cluster.broker_cpu_s() - self._cpu_before_s
        return Throughput(self._in_window / MEASURED_S, cpu_s / self._acknowledged * 1e6)


async def batched(cluster: Cluster) -> Throughput:
    """Produce as fast as the cluster takes it, records gathered into batches."""
    return await asyncio.to_thread(_produce, cluster, {"linger.ms": LINGER_MS})


async def large_batches(
    cluster: Cluster, *, producers: int, partition: int = PARTITION_UA
) -> Throughput:
    """Produce full batches of 64 kB, to one partition if it is named, else to all of the topic's."""
    settings = {"linger.ms": LARGE_LINGER_MS, "batch.size": LARGE_BATCH_BYTES}
    return await asyncio.to_thread(
        _produce, cluster, settings, producers=producers, partition=partition
    )


async def one_at_a_time(cluster: Cluster) -> Throughput:
    """Produce one record per request from several client processes at once."""
    window = _Window(cluster)
    async with asyncio.TaskGroup() as group:
        for index in range(PROCESSES):
            group.create_task(_send_until_over(cluster, index, window))
    return window.result()


LOADS: dict[str, Load] = {
    f"own client, {PROCESSES} × one record": one_at_a_time,
    f"confluent-kafka, linger {LINGER_MS} ms": batched,
}

ONE_PARTITION_LOADS: dict[str, Load] = {
    f"one partition, batches of 64 kB, {producers} × confluent-kafka": partial(
        large_batches, producers=producers, partition=0
    )
    for producers in (1, 4, 16)
}


async def alternate(
    load: Load, first: Cluster, second: Cluster, *, rounds: int
) -> tuple[Throughput, Throughput]:
    """Give the load to two clusters in turn, A B B A A B ...; return the medians of each.

    A slow moment then hits both, and so does what one load leaves to the next (pages to write back).
    """
    results: dict[Cluster, list[Throughput]] = {first: [], second: []}
    for index in range(rounds):
        for cluster in (first, second) if index % 2 == 0 else (second, first):
            results[cluster].append(await load(cluster))
    return _median(results[first]), _median(results[second])


def _median(results: list[Throughput]) -> Throughput:
    return Throughput(
        median(result.records_per_s for result in results),
        median(result.broker_us_per_record for result in results),
    )


def _produce(
    cluster: Cluster,
    settings: Mapping[str, int],
    *,
    producers: int = 1,
    partition: int = PARTITION_UA,
) -> Throughput:
    clients = [
        Producer(
            {
                "bootstrap.servers": cluster.bootstrap_servers,
                "acks": "all",
                "enable.idempotence": False,
                "queue.buffering.max.messages": 10_000,
                **settings,
            }
        )
        for _ in range(producers)
    ]
    window = _Window(cluster)
    on_delivery = partial(_delivered, window)
    while not window.is_over:
        for client in clients:
            try:
                client.produce(TOPIC, _VALUE, partition=partition, on_delivery=on_delivery)
            except BufferError:
                client.poll(0.01 / producers)
            else:
                client.poll(0)
    if any(client.flush(REQUEST_TIMEOUT_S) for client in clients):
        raise RuntimeError("records were still not acknowledged after the benchmark")
    return window.result()


def _delivered(window: _Window, error: ConfluentError | None, message: object) -> None:
    del message
    if error is not None:
        raise RuntimeError(f"a record was not acknowledged: {error}")
    window.count()


async def _send_until_over(cluster: Cluster, index: int, window: _Window) -> None:
    client: KafkaClient = cluster.client(f"producer-{index}")
    try:
        while not await client.refresh_metadata():
            pass
        partition = index % PARTITIONS
        while not window.is_over:
            await client.send(
                TOPIC, partition, [(None, _VALUE)], acks=-1, timeout_s=REQUEST_TIMEOUT_S
            )
            window.count()
            partition = (partition + 1) % PARTITIONS
    finally:
        client.close()
