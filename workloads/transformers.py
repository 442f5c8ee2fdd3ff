"""Consume, transform, produce: records of one topic are read, and for each another one is written, exactly once.

The processes are members of one group, which assigns the partitions to them. The records that are written and the
position in the partition that is read are committed in one transaction. The position is committed as a member of a
generation (KIP-447): a member that has lost its partitions is refused, and aborts. The new owner of a partition reads
its position once no transaction has one pending, and goes on there. So does a process whose transaction was not
committed.

Now and then a process pauses in the middle of a transaction, perhaps for longer than its session or its transaction
lasts. Before the position is sent, that makes it a zombie which commits late; after that, its position stays pending.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
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
from nemesis.workloads.transformer_members import TransformerMember

GROUP: Final = "transformers"
"""The group of all transformers."""
ABORT_SHARE: Final = 0.15
PAUSE_SHARE: Final = 0.1
"""Of the transactions: the process waits in the middle."""
PAUSE_S: Final = (1.0, 6.0)
LATE_SHARE: Final = 0.3
"""Of the pauses: the share after the position is sent."""
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


class _Draw(NamedTuple):
    """What a process does with its next transaction, drawn before it begins."""

    is_commit: bool
    pause_s: float
    is_late: bool
    """Whether the pause is after the position is sent."""


class _Input(NamedTuple):
    value: int
    offset: int


@dataclass(slots=True)
class _Source:
    """A partition that is read."""

    tp: TopicPartition
    position: int
    waiting: list[_Input] = field(default_factory=list)
    """Read, and not yet transformed."""


class _Incarnation(NamedTuple):
    """One process between two ends."""

    client: KafkaClient
    transactions: ProducerTransactions
    member: TransformerMember


class Transformer:
    """One process."""

    def __init__(
        self,
        name: str,
        settings: TransformerSettings,
        *,
        new_client: Callable[[], KafkaClient],
        new_producer: Callable[[KafkaClient], ProducerTransactions],
        new_member: Callable[[KafkaClient], TransformerMember],
        new_recorder: Callable[[], Recorder],
        rng: Random,
    ) -> None:
        """``new_recorder`` makes the recorder of a new process: reads begin again at the committed offset."""
        self._name = name
        self._settings = settings
        self._new_client = new_client
        self._new_producer = new_producer
        self._new_member = new_member
        self._new_recorder = new_recorder
        self._rng = rng
        self._step = 0
        self._recorder = new_recorder()
        self._sources: dict[TopicPartition, _Source] = {}

    async def run(self) -> None:
        """Be one producer after the other until cancelled."""
        pace = Pace(self._settings.interval_ms, self._rng)
        await run_producers(
            lambda client: self._transform(
                _Incarnation(client, self._new_producer(client), self._new_member(client)), pace
            ),
            new_client=self._new_client,
            rng=self._rng,
            away_s=AWAY_S,
        )

    async def _transform(self, current: _Incarnation, pace: Pace) -> None:
        """Read and write until the producer or the member is fenced."""
        self._begin_again()
        producer, coordinator = current.transactions.producer, current.member.coordinator
        while not producer.is_fenced and not coordinator.is_fenced:
            await pace.wait()
            self._step += 1
            drawn = self._draw()
            if self._settings.permits(self._name, self._step) and not await self._advance(
                current, drawn
            ):
                self._begin_again()

    def _begin_again(self) -> None:
        """Forget what was read: the next inputs are read from the committed position on."""
        self._sources.clear()
        self._recorder = self._new_recorder()

    async def _advance(self, current: _Incarnation, drawn: _Draw) -> bool:
        """Take one step; return whether what was read before is still to be transformed by this process."""
        transactions, member = current.transactions, current.member
        producer = transactions.producer
        is_in_doubt = self._settings.renews_in_doubt and producer.is_in_doubt
        if not producer.is_ready or is_in_doubt or producer.is_open:
            await transactions.initialize()
            return False
        if not await member.prepare():
            return False
        if not member.partitions:
            return True
        tp = member.partitions[self._step % len(member.partitions)]
        source = self._sources.get(tp)
        if source is None:
            position = await member.position(tp)
            if position is not None:
                self._sources[tp] = _Source(tp, position)
            return True
        if not source.waiting:
            await self._read(current.client, source)
        inputs, source.waiting = source.waiting[:MOST_READ], source.waiting[MOST_READ:]
        return not inputs or await self._transact(current, tp, inputs, drawn)

    async def _read(self, client: KafkaClient, source: _Source) -> None:
        """Read committed records from the position on."""
        leader = client.metadata.leader(*source.tp)
        if leader is None:
            await find_leader(client, source.tp)
            return
        polled = await self._settings.reads.poll(
            client, self._recorder, source.tp, source.position, leader, is_committed=True
        )
        if polled is None:
            await client.refresh_metadata()
            return
        source.waiting = [
            _Input(number_of(record, self._settings.shape), record.offset)
            for record in polled.records
        ]
        source.position = polled.position_after(source.position)

    async def _transact(
        self, current: _Incarnation, source: TopicPartition, inputs: list[_Input], drawn: _Draw
    ) -> bool:
        """Write a record for each that was read; return whether the transaction was committed."""
        known = self._settings.outputs()
        outputs = [self._rng.choice(known) for _ in inputs]
        for tp in dict.fromkeys(outputs):
            if current.client.metadata.leader(*tp) is None:
                await find_leader(current.client, tp)
        if await self._write(current, source, inputs, outputs, drawn):
            has_ended = await current.transactions.end(is_commit=drawn.is_commit)
            if has_ended and drawn.is_commit:
                current.member.committed(source, inputs[-1].offset + 1)
            return has_ended and drawn.is_commit
        producer = current.transactions.producer
        is_left = producer.is_in_doubt and self._settings.renews_in_doubt
        if producer.is_open and not producer.is_fenced and not is_left:
            await current.transactions.end(is_commit=False)
        return False

    async def _write(
        self,
        current: _Incarnation,
        source: TopicPartition,
        inputs: list[_Input],
        outputs: list[TopicPartition],
        drawn: _Draw,
    ) -> bool:
        """Write records and position in a transaction; return whether all were acknowledged."""
        transactions = current.transactions
        if not await transactions.begin([*dict.fromkeys(outputs)]):
            return False
        for tp, read in zip(outputs, inputs, strict=True):
            if not await transactions.send(tp, derived_from=read.value):
                return False
        await asyncio.sleep(0.0 if drawn.is_late else drawn.pause_s)
        position = inputs[-1].offset + 1
        if not await transactions.send_offset(current.member.coordinator, source, position):
            return False
        await asyncio.sleep(drawn.pause_s if drawn.is_late else 0.0)
        return True

    def _draw(self) -> _Draw:
        rng = self._rng
        return _Draw(
            is_commit=rng.random() >= ABORT_SHARE,
            pause_s=rng.uniform(*PAUSE_S) if rng.random() < PAUSE_SHARE else 0.0,
            is_late=rng.random() < LATE_SHARE,
        )
