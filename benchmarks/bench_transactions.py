"""Transactional beside idempotent produce, on the reference and on Apache Kafka.

Three brokers each, one cluster after the other, three replicas, acks=all. ``PRODUCERS`` clients of
confluent-kafka (librdkafka), each a thread of its own, go around the partitions. Each sends ``RECORDS`` records, then

``idempotent``      waits until all are acknowledged (``flush``)
``transactional``   commits them (``commit_transaction``), which waits for the same and for the coordinator

The two are measured in turn, A B B A, for each size of records: a transaction adds the same requests and appends to
few bytes and to many. Rates count acknowledged or committed records only. Required of the reference: the transactional
rate is at least 70 % of the idempotent one. Kafka's own ratio comes from the same run.

``python -m benchmarks transactions 2`` measures two rounds.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from statistics import median
from typing import Final

from confluent_kafka import Producer
from rich.console import Console
from rich.table import Table

from benchmarks.cluster import PARTITIONS, TOPIC, Cluster, cluster
from benchmarks.figures import Figure

TARGETS: Final = ("reference", "kafka")
PRODUCERS: Final = 16
RECORDS: Final = 100
"""Of one transaction."""
RECORD_BYTES: Final = (1_000, 10_000)
ROUNDS: Final = 4
WARM_UP_S: Final = 2.0
MEASURED_S: Final = 8.0
WARM_ROUNDS: Final = 2
"""Measured and dropped: a JVM compiles what it executes."""
TIMEOUT_S: Final = 30.0
REQUIRED_RATIO: Final = 0.7

Rates = tuple[float, float]
"""Records per second: idempotent, transactional."""
Step = Callable[[int], None]
"""Sends the records of a transaction to a partition and returns when all of them are kept."""


def main(rounds: int = ROUNDS) -> list[Figure]:
    """Measure both targets, print a table, return the figures of the reference."""
    rates = {
        (target, size): rate
        for target in TARGETS
        for size, rate in asyncio.run(_rates(target, rounds)).items()
    }
    Console(width=120).print(_table(rates))
    return [_figure(size, rates["reference", size]) for size in RECORD_BYTES]


def _figure(record_bytes: int, rates: Rates) -> Figure:
    idempotent, transactional = rates
    return Figure(
        benchmark="transactions",
        what=f"transactional beside idempotent produce, records of {record_bytes // 1000} kB",
        size=RECORDS,
        unit="records",
        seconds=RECORDS / transactional,
        required_s=RECORDS / (REQUIRED_RATIO * idempotent),
    )


async def _rates(target: str, rounds: int) -> dict[int, Rates]:
    """Return the medians by the size of records."""
    async with cluster(target=target, tracing=False, through_links=False) as running:
        return {
            size: await asyncio.to_thread(_alternate, running, rounds, size)
            for size in RECORD_BYTES
        }


def _alternate(running: Cluster, rounds: int, record_bytes: int) -> Rates:
    kinds = (_idempotent, _transactional)
    rates: dict[Callable[..., Step], list[float]] = {kind: [] for kind in kinds}
    for index in range(WARM_ROUNDS + rounds):
        for kind in kinds if index % 2 == 0 else kinds[::-1]:
            rate = _rate(running, kind, index, record_bytes)
            if index >= WARM_ROUNDS:
                rates[kind].append(rate)
    return median(rates[_idempotent]), median(rates[_transactional])


def _rate(running: Cluster, kind: Callable[..., Step], index: int, record_bytes: int) -> float:
    """Return the records per second of all producers together, after a warm-up."""
    start = time.perf_counter() + WARM_UP_S
    stop = start + MEASURED_S

    def produce(number: int) -> int:
        step = kind(running, f"{record_bytes}-{index}-{number}", record_bytes)
        kept, partition = 0, number
        while time.perf_counter() < stop:
            began = time.perf_counter()
            step(partition % PARTITIONS)
            partition += 1
            kept += RECORDS if began >= start and time.perf_counter() < stop else 0
        return kept

    with ThreadPoolExecutor(PRODUCERS) as pool:
        return sum(pool.map(produce, range(PRODUCERS))) / MEASURED_S


def _idempotent(running: Cluster, name: str, record_bytes: int) -> Step:
    producer = _producer(running, {"client.id": name})
    value = b"v" * record_bytes

    def step(partition: int) -> None:
        _send(producer, partition, value)
        if producer.flush(TIMEOUT_S):
            raise RuntimeError("records were not acknowledged in time")

    return step


def _transactional(running: Cluster, name: str, record_bytes: int) -> Step:
    producer = _producer(running, {"client.id": name, "transactional.id": name})
    producer.init_transactions(TIMEOUT_S)
    value = b"v" * record_bytes

    def step(partition: int) -> None:
        producer.begin_transaction()
        _send(producer, partition, value)
        producer.commit_transaction(TIMEOUT_S)

    return step


def _producer(running: Cluster, settings: dict[str, str]) -> Producer:
    return Producer(
        {
            "bootstrap.servers": running.bootstrap_servers,
            "acks": "all",
            "enable.idempotence": True,
            "linger.ms": 5,
            # As Kafka's own clients have it.
            "socket.nagle.disable": True,
            **settings,
        }
    )


def _send(producer: Producer, partition: int, value: bytes) -> None:
    for _ in range(RECORDS):
        producer.produce(TOPIC, value, partition=partition, on_delivery=_require_delivered)
        producer.poll(0)


def _require_delivered(error: object, message: object) -> None:
    del message
    if error is not None:
        raise RuntimeError(f"a record was not acknowledged: {error}")


def _table(rates: dict[tuple[str, int], Rates]) -> Table:
    title = f"{PRODUCERS} producers, {RECORDS} records per transaction"
    table = Table(
        "target", "record", "idempotent, records/s", "transactional", "ratio", title=title
    )
    for (target, size), (idempotent, transactional) in rates.items():
        table.add_row(
            target,
            f"{size // 1000} kB",
            f"{idempotent:,.0f}",
            f"{transactional:,.0f}",
            f"{transactional / idempotent:.2f}",
        )
    return table
