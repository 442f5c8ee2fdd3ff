"""Transactional beside idempotent produce, on the reference and on Apache Kafka.

Three brokers each, one cluster after the other, three replicas, acks=all, records of 1 kB. ``PRODUCERS`` clients of
confluent-kafka (librdkafka), each a thread of its own, go around the partitions. Each sends ``RECORDS`` records, then

``idempotent``      waits until all are acknowledged (``flush``)
``transactional``   commits them (``commit_transaction``), which waits for the same and for the coordinator

The two are measured in turn, A B B A. Rates count acknowledged or committed records only. Required of the reference:
the transactional rate is at least 70 % of the idempotent one. Kafka's own ratio comes from the same run.

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
ROUNDS: Final = 6
WARM_UP_S: Final = 2.0
MEASURED_S: Final = 8.0
WARM_ROUNDS: Final = 2
"""Measured and dropped: a JVM compiles what it executes."""
TIMEOUT_S: Final = 30.0
REQUIRED_RATIO: Final = 0.7
_VALUE: Final = b"v" * 1_000

Step = Callable[[int], None]
"""Sends a number of records and returns when all of them are kept."""


def main(rounds: int = ROUNDS) -> list[Figure]:
    """Measure both targets, print a table, return the figures of the reference."""
    rates = {target: asyncio.run(_rates(target, rounds)) for target in TARGETS}
    Console(width=120).print(_table(rates))
    idempotent, transactional = rates["reference"]
    allowed_s = RECORDS / (REQUIRED_RATIO * idempotent)
    return [
        Figure(
            benchmark="transactions",
            what="transactional produce, beside idempotent produce",
            size=RECORDS,
            unit="records",
            seconds=RECORDS / transactional,
            required_s=allowed_s,
        )
    ]


async def _rates(target: str, rounds: int) -> tuple[float, float]:
    """Return the medians, records per second: idempotent, transactional."""
    async with cluster(target=target, tracing=False, through_links=False) as running:
        return await asyncio.to_thread(_alternate, running, rounds)


def _alternate(running: Cluster, rounds: int) -> tuple[float, float]:
    kinds = (_idempotent, _transactional)
    rates: dict[Callable[..., Step], list[float]] = {kind: [] for kind in kinds}
    for index in range(WARM_ROUNDS + rounds):
        for kind in kinds if index % 2 == 0 else kinds[::-1]:
            rate = _rate(running, kind, index)
            if index >= WARM_ROUNDS:
                rates[kind].append(rate)
    return median(rates[_idempotent]), median(rates[_transactional])


def _rate(running: Cluster, kind: Callable[..., Step], index: int) -> float:
    """Return the records per second of all producers together, after a warm-up."""
    start = time.perf_counter() + WARM_UP_S
    stop = start + MEASURED_S

    def produce(number: int) -> int:
        step = kind(running, f"{index}-{number}")
        kept, partition = 0, number
        while time.perf_counter() < stop:
            began = time.perf_counter()
            step(partition % PARTITIONS)
            partition += 1
            kept += RECORDS if began >= start and time.perf_counter() < stop else 0
        return kept

    with ThreadPoolExecutor(PRODUCERS) as pool:
        return sum(pool.map(produce, range(PRODUCERS))) / MEASURED_S


def _idempotent(running: Cluster, name: str) -> Step:
    producer = _producer(running, {"client.id": name})

    def step(partition: int) -> None:
        _send(producer, partition)
        if producer.flush(TIMEOUT_S):
            raise RuntimeError("records were not acknowledged in time")

    return step


def _transactional(running: Cluster, name: str) -> Step:
    producer = _producer(running, {"client.id": name, "transactional.id": name})
    producer.init_transactions(TIMEOUT_S)

    def step(partition: int) -> None:
        producer.begin_transaction()
        _send(producer, partition)
        producer.commit_transaction(TIMEOUT_S)

    return step


def _producer(running: Cluster, settings: dict[str, str]) -> Producer:
    return Producer(
        {
            "bootstrap.servers": running.bootstrap_servers,
            "acks": "all",
            "enable.idempotence": True,
            "linger.ms": 5,
            "batch.size": 16_384,
            **settings,
        }
    )


def _send(producer: Producer, partition: int) -> None:
    for _ in range(RECORDS):
        producer.produce(TOPIC, _VALUE, partition=partition, on_delivery=_require_delivered)
        producer.poll(0)


def _require_delivered(error: object, message: object) -> None:
    del message
    if error is not None:
        raise RuntimeError(f"a record was not acknowledged: {error}")


def _table(rates: dict[str, tuple[float, float]]) -> Table:
    title = f"{PRODUCERS} producers, {RECORDS} records of 1 kB per transaction"
    table = Table("target", "idempotent, records/s", "transactional", "ratio", title=title)
    for target, (idempotent, transactional) in rates.items():
        ratio = transactional / idempotent
        table.add_row(target, f"{idempotent:,.0f}", f"{transactional:,.0f}", f"{ratio:.2f}")
    return table
