"""Producers: each sends one request at a time, and goes around the partitions.

A request brings one record to one partition, or batches of several records to several partitions of one leader. Each
record is an operation of its own. A process of a history does one thing at a time, so the second record of a request
belongs to the process ``producer-0.1``, the third one to ``producer-0.2``, and so on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import count
from random import Random  # noqa: TID251 - the type only
from typing import Any, Final

from nemesis.history.events import IDEMPOTENT
from nemesis.history.recorder import Recorder
from nemesis.workloads.base import WorkloadContext
from nemesis.workloads.clients import Clients, find_leader
from nemesis.workloads.kafka.client import KafkaClient
from nemesis.workloads.kafka.compression import CodecName
from nemesis.workloads.kafka.errors import KafkaError
from nemesis.workloads.kafka.idempotent_producer import SEQUENCES, IdempotentProducer
from nemesis.workloads.kafka.produces import Sent
from nemesis.workloads.kafka.record_batch import NewRecord, build
from nemesis.workloads.operations import Avoid, Operation, OperationLog, Pace
from nemesis.workloads.partitions import KnownPartitions, TopicPartition, partition_columns
from nemesis.workloads.produce_consume_options import ProduceConsumeOptions
from nemesis.workloads.record_values import new_record

ALL_REPLICAS: Final = -1
"""``acks=all``."""


@dataclass(slots=True)
class _Producer:
    """One producer process."""

    name: str
    client: KafkaClient
    rng: Random
    acks: int
    idempotent: IdempotentProducer | None
    recorders: list[Recorder] = field(default_factory=list)
    """One for each record of a request."""


@dataclass(slots=True)
class _Batch:
    """Records for one partition, and the operations that they are."""

    codec: CodecName
    records: list[NewRecord] = field(default_factory=list)
    operations: list[Operation] = field(default_factory=list)

    @property
    def succeeded(self) -> bool:
        return all(operation.succeeded for operation in self.operations)

    def add_size(self, size: int) -> None:
        """Let each operation record the size of the batch, in bytes."""
        for operation in self.operations:
            operation.add(count=size)

    def complete(self, outcome: Sent | KafkaError) -> None:
        """Complete each operation with the outcome of the batch."""
        for index, operation in enumerate(self.operations):
            if isinstance(outcome, KafkaError):
                operation.failed(outcome)
            else:
                offset = outcome.offset + index if outcome.offset >= 0 else -1
                operation.ok(offset=offset, node=outcome.node)


class Producers:
    """The producer processes of a workload, which share one sequence of values."""

    def __init__(
        self,
        context: WorkloadContext,
        options: ProduceConsumeOptions,
        *,
        clients: Clients,
        partitions: KnownPartitions,
        log: OperationLog,
        values: count[int],
    ) -> None:
        """``values``: no two records of the run have the same one."""
        self._context = context
        self._options = options
        self._shape = options.record_shape
        self._clients = clients
        self._partitions = partitions
        self._log = log
        self._values = values

    async def run(self, process: str, index: int) -> None:
        """Send until cancelled; ``index`` is the producer's number."""
        client = self._clients.client(process)
        rng = self._clients.rng()
        pace, avoid = Pace(self._options.send_interval_ms, rng), Avoid(self._options.avoid_ms)
        idempotent = (
            self._clients.idempotent(client) if index < self._options.idempotent_producers else None
        )
        acks = ALL_REPLICAS if idempotent else self._options.acks[index % len(self._options.acks)]
        producer = _Producer(process, client, rng, acks, idempotent)
        turn = index
        try:
            while True:
                await pace.wait()
                turn += 1
                choices = avoid.not_avoided(self._partitions.known)
                if not choices:
                    continue
                first = turn % len(choices)
                tp = choices[first]
                if not self._context.permits(process, turn - index):
                    continue
                if client.metadata.leader(*tp) is None and not await find_leader(client, tp):
                    avoid.add(tp)
                    continue
                if idempotent is not None and not idempotent.is_ready:
                    await self._init_producer_id(producer, idempotent)
                    continue
                tps = self._of_one_leader(client, [*choices[first:], *choices[:first]])
                failed = await self._send(producer, tps if idempotent is None else [tp])
                for failed_tp in failed:
                    avoid.add(failed_tp)
                if failed:
                    await client.refresh_metadata()
        finally:
            client.close()

    def _of_one_leader(
        self, client: KafkaClient, choices: list[TopicPartition]
    ) -> list[TopicPartition]:
        """Return the first choice, then others of the same leader; as many as a request may have."""
        most = self._options.batch_partitions
        if most == 1:
            return choices[:1]
        leader = client.metadata.leader(*choices[0])
        return [tp for tp in choices if client.metadata.leader(*tp) == leader][:most]

    async def _send(self, producer: _Producer, tps: list[TopicPartition]) -> list[TopicPartition]:
        """Send a batch to each partition in one request; return the partitions that did not take theirs."""
        batches: dict[TopicPartition, _Batch] = {}
        with ExitStack() as operations:
            slot = 0
            for tp in tps:
                batch = batches[tp] = _Batch(_one_of(self._options.compression, producer.rng))
                for index in range(_up_to(self._options.batch_records, producer.rng)):
                    columns, record = self._record(producer, tp, index)
                    operation = self._log.operation(self._recorder(producer, slot), columns)
                    batch.operations.append(operations.enter_context(operation))
                    batch.records.append(record)
                    slot += 1
            outcomes = await self._outcomes(producer, batches)
            for tp, batch in batches.items():
                batch.complete(outcomes[tp])
        return [tp for tp, batch in batches.items() if not batch.succeeded]

    def _record(
        self, producer: _Producer, tp: TopicPartition, index: int
    ) -> tuple[dict[str, Any], NewRecord]:
        """Return the columns of an operation, and the record that it sends as the batch's ``index``-th."""
        value = next(self._values)
        columns = partition_columns(producer.client, tp)
        columns |= {"f": "send", "value": value, "acks": producer.acks}
        key = producer.name
        if self._options.keys:
            columns["key"] = number = producer.rng.randrange(self._options.keys)
            key = f"key-{number}"
        if producer.idempotent is not None:
            batch = producer.idempotent.next_batch(*tp)
            columns |= {
                "delivery": IDEMPOTENT,
                "producer_id": batch.producer_id,
                "producer_epoch": batch.producer_epoch,
                "sequence": (batch.base_sequence + index) % SEQUENCES,
            }
        record = new_record(value, self._shape, key.encode())
        if self._options.keys and record.value is None:
            columns["tombstone"] = True
        return columns, record

    async def _outcomes(
        self, producer: _Producer, batches: Mapping[TopicPartition, _Batch]
    ) -> Mapping[TopicPartition, Sent | KafkaError]:
        """Send the batches; return the outcome of each."""
        now_ms = producer.client.timestamp_ms()
        if self._options.administration_clients:
            for tp, data in _built(batches, now_ms).items():
                batches[tp].add_size(len(data))
        try:
            if producer.idempotent is not None:
                ((tp, batch),) = batches.items()
                return {tp: await producer.idempotent.send(*tp, batch.records, batch.codec)}
            return await producer.client.send_batches(
                _built(batches, now_ms), acks=producer.acks, timeout_s=self._clients.timeout_s
            )
        except KafkaError as error:
            return dict.fromkeys(batches, error)

    def _recorder(self, producer: _Producer, slot: int) -> Recorder:
        """Return the recorder of a request's record with this number."""
        while len(producer.recorders) <= slot:
            number = len(producer.recorders)
            name = f"{producer.name}.{number}" if number else producer.name
            producer.recorders.append(self._context.recorder(name))
        return producer.recorders[slot]

    async def _init_producer_id(self, producer: _Producer, idempotent: IdempotentProducer) -> None:
        columns = {"f": "init-producer-id"}
        with self._log.operation(self._recorder(producer, 0), columns) as operation:
            operation.ok(producer_id=await idempotent.init_producer_id())


def _built(batches: Mapping[TopicPartition, _Batch], now_ms: int) -> dict[TopicPartition, bytes]:
    """The bytes of each batch. What an idempotent producer adds does not change their number."""
    return {tp: build(batch.records, now_ms, codec=batch.codec) for tp, batch in batches.items()}


# What leaves no choice draws nothing: a load without these options has the random numbers that it had before them.
def _up_to(most: int, rng: Random) -> int:
    return 1 if most == 1 else rng.randint(1, most)


def _one_of(codecs: Sequence[CodecName], rng: Random) -> CodecName:
    return codecs[0] if len(codecs) == 1 else rng.choice(codecs)
