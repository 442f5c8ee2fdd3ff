"""Consume, transform, produce: records of one partition are read, and for each another one is written, exactly once.

The records that are written and the position in the partition that is read are committed in one transaction. The
producer's transactional id belongs to the partition: a process that takes over fences the former one, and goes on at
the committed offset. After a transaction that was not committed the process goes on there, too.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random  # noqa: TID251 - the type; every instance is seeded from the run's
from typing import Final, NamedTuple

from nemesis.history.recorder import Recorder
from nemesis.workloads.clients import find_leader
from nemesis.workloads.kafka.client import KafkaClient
from nemesis.workloads.operations import Pace
from nemesis.workloads.partitions import TopicPartition
from nemesis.workloads.producer_transactions import ProducerTransactions, run_producers
from nemesis.workloads.reads import Reads
from nemesis.workloads.record_values import RecordShape, number_of

GROUP: Final = "transformers"
"""The group that has the committed offsets; it has no members."""
ABORT_SHARE: Final = 0.15
MOST_READ: Final = 4
"""Records that one transaction reads."""
AWAY_S: Final = (1.0, 5.0)
"""How long a process waits after it was fenced, before it takes over again."""


class TransformerSettings(NamedTuple):
    """What all processes of a workload have in common."""

    interval_ms: int
    reads: Reads
    shape: RecordShape
    outputs: Callable[[], list[TopicPartition]]
    """The partitions to which records are written."""
    renews_in_doubt: bool
    permits: Callable[[str, int], bool]


class _Input(NamedTuple):
    value: int
    offset: int


class Transformer:
    """One process, which reads ``source``."""

    def __init__(
        self,
        name: str,
        source: TopicPartition,
        settings: TransformerSettings,
        *,
        new_client: Callable[[], KafkaClient],
        new_producer: Callable[[KafkaClient], ProducerTransactions],
        new_recorder: Callable[[], Recorder],
        rng: Random,
    ) -> None:
        """``new_recorder`` makes the recorder of a new process: reads begin again at the committed offset."""
        self._name = name
        self._source = source
        self._settings = settings
        self._new_client = new_client
        self._new_producer = new_producer
        self._new_recorder = new_recorder
        self._rng = rng
        self._step = 0

    async def run(self) -> None:
        """Be one producer after the other until cancelled."""
        pace = Pace(self._settings.interval_ms, self._rng)
        await run_producers(
            lambda client: self._transform(client, self._new_producer(client), pace),
            new_client=self._new_client,
            rng=self._rng,
            away_s=AWAY_S,
        )

    async def _transform(
        self, client: KafkaClient, transactions: ProducerTransactions, pace: Pace
    ) -> None:
        """Read and write until the producer is fenced."""
        position: int | None = None
        waiting: list[_Input] = []
        recorder = self._new_recorder()
        producer = transactions.producer
        while not producer.is_fenced:
            await pace.wait()
            self._step += 1
            is_commit = self._rng.random() >= ABORT_SHARE
            if not self._settings.permits(self._name, self._step):
                continue
            is_in_doubt = self._settings.renews_in_doubt and producer.is_in_doubt
            if not producer.is_ready or is_in_doubt or producer.is_open:
                position = None
                await transactions.initialize()
                continue
            if position is None:
                committed = await transactions.stable_offset(GROUP, self._source)
                position = None if committed is None else max(committed, 0)
                recorder = self._new_recorder()
                waiting = []
                continue
            if not waiting:
                waiting, position = await self._read(client, recorder, position)
            inputs, waiting = waiting[:MOST_READ], waiting[MOST_READ:]
            if inputs and not await self._transact(
                client, transactions, inputs, is_commit=is_commit
            ):
                position = None

    async def _read(
        self, client: KafkaClient, recorder: Recorder, position: int
    ) -> tuple[list[_Input], int]:
        """Return committed records from the position on, and the position behind them."""
        leader = client.metadata.leader(*self._source)
        if leader is None:
            await find_leader(client, self._source)
            return [], position
        polled = await self._settings.reads.poll(
            client, recorder, self._source, position, leader, is_committed=True
        )
        if polled is None:
            await client.refresh_metadata()
            return [], position
        read = [
            _Input(number_of(record, self._settings.shape), record.offset)
            for record in polled.records
        ]
        return read, polled.position_after(position)

    async def _transact(
        self,
        client: KafkaClient,
        transactions: ProducerTransactions,
        inputs: list[_Input],
        *,
        is_commit: bool,
    ) -> bool:
        """Write a record for each that was read; return whether the transaction was committed."""
        known = self._settings.outputs()
        outputs = [self._rng.choice(known) for _ in inputs]
        for tp in dict.fromkeys(outputs):
            if client.metadata.leader(*tp) is None:
                await find_leader(client, tp)
        if not await transactions.begin([*dict.fromkeys(outputs)]):
            return False
        for tp, read in zip(outputs, inputs, strict=True):
            if not await transactions.send(tp, derived_from=read.value):
                return False
        if not await transactions.send_offset(GROUP, self._source, inputs[-1].offset + 1):
            return False
        return await transactions.end(is_commit=is_commit) and is_commit
