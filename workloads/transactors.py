"""Transactional producers: each writes one transaction after the other to several partitions, and commits or aborts.

A process is one producer after the other. A producer that is fenced ends, and so does one that crashes, in the middle
of a transaction; after a while the process begins as another producer of the same transactional id, and fences the
former one in turn if several processes share the id.

A producer that has a request in doubt takes a new epoch before it goes on: what arrives late is refused then. Without
``renews_in_doubt`` it goes on in its epoch as Kafka's producer does (KAFKA-17754).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from random import Random  # noqa: TID251 - the type; every instance is seeded from the run's
from typing import Final, NamedTuple

from nemesis.workloads.clients import find_leader
from nemesis.workloads.kafka.client import KafkaClient
from nemesis.workloads.operations import Pace
from nemesis.workloads.partitions import KnownPartitions, TopicPartition
from nemesis.workloads.producer_transactions import ProducerTransactions, run_producers

ABORT_SHARE: Final = 0.25
"""Of the transactions whose records were all acknowledged."""
CRASH_SHARE: Final = 0.04
"""Of the transactions: the producer ends in the middle, without a word."""
PAUSE_SHARE: Final = 0.08
"""Of the transactions: the producer waits in the middle, perhaps until its transaction has timed out."""
PAUSE_S: Final = (0.5, 6.0)
RAISE_SHARE: Final = 0.1
"""Of the transactions: the producer takes its next epoch before it begins."""
AWAY_S: Final = (0.5, 3.0)
"""How long a process waits before it begins as another producer."""


class TransactorSettings(NamedTuple):
    """What all processes of a workload have in common."""

    interval_ms: int
    most_partitions: int
    """To which one transaction writes."""
    most_records: int
    """Of one transaction in one partition."""
    renews_in_doubt: bool
    partitions: KnownPartitions
    permits: Callable[[str, int], bool]


class Transaction(NamedTuple):
    """What a producer does next, drawn before it begins."""

    tps: list[TopicPartition]
    """One for each record."""
    is_commit: bool
    crashes: bool
    pause_s: float


class Transactor:
    """One process. ``new_producer`` makes a producer on the client."""

    def __init__(
        self,
        name: str,
        settings: TransactorSettings,
        *,
        new_client: Callable[[], KafkaClient],
        new_producer: Callable[[KafkaClient], ProducerTransactions],
        rng: Random,
    ) -> None:
        self._name = name
        self._settings = settings
        self._new_client = new_client
        self._new_producer = new_producer
        self._rng = rng
        self._step = 0

    async def run(self) -> None:
        """Be one producer after the other until cancelled."""
        pace = Pace(self._settings.interval_ms, self._rng)
        await run_producers(
            lambda client: self._produce(client, self._new_producer(client), pace),
            new_client=self._new_client,
            rng=self._rng,
            away_s=AWAY_S,
        )

    async def _produce(
        self, client: KafkaClient, transactions: ProducerTransactions, pace: Pace
    ) -> None:
        """Write transactions until the producer is fenced or crashes."""
        while True:
            await pace.wait()
            self._step += 1
            drawn = self._draw()
            raises = self._rng.random() < RAISE_SHARE
            if drawn is None or not self._settings.permits(self._name, self._step):
                continue
            for tp in dict.fromkeys(drawn.tps):
                if client.metadata.leader(*tp) is None:
                    await find_leader(client, tp)
            if await self._prepare(transactions, raises=raises):
                await self._transact(transactions, drawn)
            if transactions.producer.is_fenced or drawn.crashes:
                return

    async def _prepare(self, transactions: ProducerTransactions, *, raises: bool) -> bool:
        """Have an epoch in which no request is in doubt and nothing is open; return whether the producer may begin."""
        producer = transactions.producer
        is_in_doubt = self._settings.renews_in_doubt and producer.is_in_doubt
        if not producer.is_ready or is_in_doubt or producer.is_open:
            return await transactions.initialize()
        return await transactions.raise_epoch() if raises or producer.needs_epoch else True

    async def _transact(self, transactions: ProducerTransactions, drawn: Transaction) -> None:
        """Write one transaction and end it; leave it open after a failure that needs a new epoch."""
        is_complete = await transactions.begin([*dict.fromkeys(drawn.tps)])
        if not is_complete:
            return
        for index, tp in enumerate(drawn.tps):
            if is_complete and index == len(drawn.tps) // 2:
                if drawn.crashes:
                    return
                await asyncio.sleep(drawn.pause_s)
            is_complete = is_complete and await transactions.send(tp)
        producer = transactions.producer
        is_left = producer.is_in_doubt and not is_complete and self._settings.renews_in_doubt
        if not producer.is_fenced and not is_left:
            await transactions.end(is_commit=drawn.is_commit and is_complete)

    def _draw(self) -> Transaction | None:
        settings, rng = self._settings, self._rng
        known = settings.partitions.known
        if not known:
            return None
        chosen = rng.sample(known, min(len(known), rng.randint(1, settings.most_partitions)))
        tps = [tp for tp in chosen for _ in range(rng.randint(1, settings.most_records))]
        rng.shuffle(tps)
        return Transaction(
            tps,
            is_commit=rng.random() >= ABORT_SHARE,
            crashes=rng.random() < CRASH_SHARE,
            pause_s=rng.uniform(*PAUSE_S) if rng.random() < PAUSE_SHARE else 0.0,
        )
