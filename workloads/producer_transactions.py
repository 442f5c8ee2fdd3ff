"""The transactions of one transactional producer, each request an operation of the history.

A transaction has a number that no other transaction of the run has, and each of its records a value that no other
record has. Each method returns whether its request succeeded; ``producer`` says what a failure means.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from itertools import count
from random import Random  # noqa: TID251 - the type; every instance is seeded from the run's
from types import MappingProxyType
from typing import Any, NamedTuple

from nemesis.history.events import IDEMPOTENT, Kind
from nemesis.history.recorder import Recorder
from nemesis.workloads.kafka.client import KafkaClient
from nemesis.workloads.kafka.consumer_coordinator import ConsumerCoordinator
from nemesis.workloads.kafka.errors import BrokerError
from nemesis.workloads.kafka.group_offset_requests import Committed
from nemesis.workloads.kafka.transactional_producer import TransactionalProducer
from nemesis.workloads.operations import Operation, OperationLog
from nemesis.workloads.partitions import TopicPartition, partition_columns
from nemesis.workloads.record_values import RecordShape, new_record

ALL_REPLICAS = -1


class TransactionNumbers(NamedTuple):
    """What all producers of a run share."""

    operations: OperationLog
    transactions: count[int]
    values: count[int]
    """The values of records."""
    commits: count[int]
    """The numbers of committed offsets."""
    shape: RecordShape


class ProducerTransactions:
    """See the module."""

    def __init__(
        self,
        producer: TransactionalProducer,
        client: KafkaClient,
        numbers: TransactionNumbers,
        recorder: Recorder,
    ) -> None:
        self.producer = producer
        self._client = client
        self._numbers = numbers
        self._recorder = recorder
        self._transaction = -1

    async def initialize(self) -> bool:
        """Become the producer of the transactional id: the former one is fenced, and its transaction aborted."""
        with self._init_operation() as operation:
            await self.producer.initialize()
            self._ready(operation)
        return operation.succeeded

    async def raise_epoch(self) -> bool:
        """Go on in the next epoch."""
        identity = self.producer.identity
        former = {"producer_id": identity.producer_id, "producer_epoch": identity.epoch}
        with self._init_operation(former) as operation:
            try:
                await self.producer.raise_epoch()
            finally:
                operation.add(node=self.producer.node)
            self._ready(operation)
        return operation.succeeded

    async def begin(self, tps: Sequence[TopicPartition]) -> bool:
        """Begin a transaction and add the partitions to it, by a request unless their leaders add them."""
        self._transaction = next(self._numbers.transactions)
        self._recorder.record(Kind.TRANSACTION_BEGUN, **self._columns)
        if self.producer.is_implicit:
            await self.producer.add_partitions(tps)
            return True
        columns = {"f": "add-partitions", "count": len(tps)} | self._columns
        with self._operation(columns) as operation:
            await self._coordinated(operation, self.producer.add_partitions(tps))
        return operation.succeeded

    async def send(self, tp: TopicPartition, *, derived_from: int | None = None) -> bool:
        """Send a record to a partition of the transaction."""
        value = next(self._numbers.values)
        batch = self.producer.next_batch(*tp)
        columns = partition_columns(self._client, tp) | self._columns
        columns |= {
            "f": "send",
            "value": value,
            "acks": ALL_REPLICAS,
            "delivery": IDEMPOTENT,
            "sequence": batch.base_sequence,
        }
        if derived_from is not None:
            columns["derived_from"] = derived_from
        record = new_record(value, self._numbers.shape, b"transaction")
        with self._operation(columns) as operation:
            sent = await self.producer.send(*tp, [record])
            operation.ok(offset=sent.offset, node=sent.node)
        return operation.succeeded

    async def send_offset(
        self, coordinator: ConsumerCoordinator, tp: TopicPartition, offset: int
    ) -> bool:
        """Commit an offset in the transaction, as a member of a group; an error tells the member what it has lost."""
        number, member = next(self._numbers.commits), coordinator.membership
        columns = partition_columns(self._client, tp) | self._columns
        columns |= {"f": "send-offset", "group": member.group, "offset": offset, "value": number}
        columns |= {
            "member": member.member_id,
            "generation": member.generation,
            "instance": member.instance,
        }
        with self._operation(columns) as operation:
            try:
                await self.producer.commit_offsets(member, {tp: Committed(offset, -1, str(number))})
            except BrokerError as error:
                coordinator.note(error.code)
                raise
            operation.ok()
        return operation.succeeded

    async def end(self, *, is_commit: bool) -> bool:
        """Commit or abort the transaction."""
        f = "commit-transaction" if is_commit else "abort-transaction"
        with self._operation({"f": f} | self._columns) as operation:
            await self._coordinated(operation, self.producer.end(is_commit=is_commit))
        return operation.succeeded

    async def _coordinated(self, operation: Operation, request: Awaitable[None]) -> None:
        """Await a request to the coordinator; the operation names the broker that answered, or was asked last."""
        try:
            await request
        finally:
            operation.add(node=self.producer.node)
        operation.ok()

    def _init_operation(self, former: Mapping[str, Any] = MappingProxyType({})) -> Operation:
        """``former``: the columns of the epoch from which the producer goes on."""
        columns = {
            "f": "init-producer-id",
            "transactional_id": self.producer.identity.transactional_id,
            "timeout_ms": self.producer.transaction_timeout_ms,
            **former,
        }
        return self._operation(columns)

    def _ready(self, operation: Operation) -> None:
        identity = self.producer.identity
        operation.ok(
            producer_id=identity.producer_id,
            producer_epoch=identity.epoch,
            node=self.producer.node,
            count=self.producer.unanswered,
        )

    def _operation(self, columns: dict[str, Any]) -> Operation:
        return self._numbers.operations.operation(self._recorder, columns)

    @property
    def _columns(self) -> dict[str, Any]:
        identity = self.producer.identity
        return {
            "transactional_id": identity.transactional_id,
            "transaction": self._transaction,
            "producer_id": identity.producer_id,
            "producer_epoch": identity.epoch,
        }


async def run_producers(
    produce: Callable[[KafkaClient], Awaitable[None]],
    *,
    new_client: Callable[[], KafkaClient],
    rng: Random,
    away_s: tuple[float, float],
) -> None:
    """Be one producer after the other until cancelled; between two of them the process is away for so long."""
    while True:
        client = new_client()
        try:
            await produce(client)
        finally:
            client.close()
        await asyncio.sleep(rng.uniform(*away_s))
