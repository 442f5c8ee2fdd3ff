"""Two producers of 1 kB records with acks=all, each measured over a window after a warm-up.

``batched``           confluent-kafka (librdkafka), which gathers records for ``LINGER_MS`` and pipelines its batches
``one_at_a_time``     our own client as workloads use it: ``PROCESSES`` of them, one record per request, one in flight

Rates count acknowledged records only. Any failed record ends the benchmark: a rate of a cluster that refuses
would say nothing.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from functools import partial

from confluent_kafka import KafkaError as ConfluentError
from confluent_kafka import Producer

from benchmarks.cluster import PARTITIONS, TOPIC, Cluster
from workloads.kafka.client import KafkaClient

RECORD_BYTES = 1_000
LINGER_MS = 5
PROCESSES = 16
WARM_UP_S = 0.5
MEASURED_S = 2.0
REQUEST_TIMEOUT_S = 10.0

Load = Callable[[Cluster], Awaitable[float]]
"""Puts load on a cluster and returns acknowledged records per second."""

_VALUE = b"v" * RECORD_BYTES


class _Window:
    """Counts acknowledgements from the end of the warm-up to the end of the measurement."""

    def __init__(self) -> None:
        self._start = time.perf_counter() + WARM_UP_S
        self._end = self._start + MEASURED_S
        self._acknowledged = 0

    @property
    def is_over(self) -> bool:
        return time.perf_counter() >= self._end

    @property
    def records_per_s(self) -> float:
        return self._acknowledged / MEASURED_S

    def count(self) -> None:
        if self._start <= time.perf_counter() < self._end:
            self._acknowledged += 1


async def batched(cluster: Cluster) -> float:
    """Produce as fast as the cluster takes it, records gathered into batches; return records/s."""
    return await asyncio.to_thread(_produce_batched, cluster.bootstrap_servers)


async def one_at_a_time(cluster: Cluster) -> float:
    """Produce one record per request from several client processes at once; return records/s."""
    window = _Window()
    async with asyncio.TaskGroup() as group:
        for index in range(PROCESSES):
            group.create_task(_send_until_over(cluster, index, window))
    return window.records_per_s


LOADS: dict[str, Load] = {
    f"confluent-kafka, linger {LINGER_MS} ms": batched,
    f"own client, {PROCESSES} × one record": one_at_a_time,
}


def _produce_batched(bootstrap_servers: str) -> float:
    producer = Producer(
        {
            "bootstrap.servers": bootstrap_servers,
            "acks": "all",
            "enable.idempotence": False,
            "linger.ms": LINGER_MS,
            "queue.buffering.max.messages": 10_000,
        }
    )
    window = _Window()
    on_delivery = partial(_delivered, window)
    while not window.is_over:
        try:
            producer.produce(TOPIC, _VALUE, on_delivery=on_delivery)
        except BufferError:
            producer.poll(0.01)
        else:
            producer.poll(0)
    if producer.flush(REQUEST_TIMEOUT_S):
        raise RuntimeError("records were still not acknowledged after the benchmark")
    return window.records_per_s


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
