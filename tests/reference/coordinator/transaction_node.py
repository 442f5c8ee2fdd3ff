"""A broker with a transaction coordinator: real logs and replicas; the test is its controller, clients and leaders."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from pathlib import Path
from typing import Any
from uuid import UUID

from kio.schema.errors import ErrorCode

from nemesis.reference.coordinator.key_partitions import partition_for
from nemesis.reference.coordinator.transaction.transaction_completions import (
    MarkerErrors,
    TransactionMarker,
)
from nemesis.reference.coordinator.transaction.transaction_coordinator import (
    TransactionCoordinator,
)
from nemesis.reference.coordinator.transaction.transaction_loading import LoadedTransactions
from nemesis.reference.coordinator.transaction.transaction_metadata import (
    ProducerIdAndEpoch,
    TransactionMetadata,
)
from nemesis.reference.coordinator.transaction.transaction_requests import (
    InitProducerId,
    InitProducerIdResult,
)
from nemesis.reference.coordinator.transaction.transaction_state_manager import (
    TransactionStateManager,
)
from nemesis.reference.model import (
    TRANSACTION_STATE_TOPIC_NAME,
    TopicPartition,
    TransactionalProducer,
)
from nemesis.reference.ports import WallClock
from nemesis.reference.server.coordinator_replicas import CoordinatorReplicas
from nemesis.reference.server.coordinator_roles import CoordinatorRoles
from tests.reference.cluster.hosting import lisr
from tests.reference.log.batches import NOW_MS
from tests.reference.server.one_broker import Node
from tests.reference.server.verification import verifications
from tests.reference.virtual_time import run

STATE_ID = UUID(int=60)
PARTITIONS = 4
ID = "t"
NUMBER = partition_for(ID, PARTITIONS)
"""The partition of the transactional id."""
A, B = TopicPartition("a", 0), TopicPartition("b", 1)
TIMEOUT_MS = 60_000


def state_partition(number: int = NUMBER) -> TopicPartition:
    return TopicPartition(TRANSACTION_STATE_TOPIC_NAME, number)


class Leaders:
    """The leaders of partitions: markers wait until the test has them answered."""

    def __init__(self) -> None:
        self.deleted: set[TopicPartition] = set()
        self.waiting: list[
            tuple[TransactionMarker, tuple[TopicPartition, ...], Callable[[MarkerErrors], None]]
        ] = []

    def exists(self, topic_partition: TopicPartition) -> bool:
        return topic_partition not in self.deleted

    def send(
        self,
        marker: TransactionMarker,
        partitions: Iterable[TopicPartition],
        on_answer: Callable[[MarkerErrors], None],
    ) -> None:
        self.waiting.append((marker, tuple(partitions), on_answer))

    def answer(self, error: ErrorCode = ErrorCode.none, **errors: ErrorCode) -> TransactionMarker:
        """Answer the oldest markers, each partition with the error of its topic."""
        marker, partitions, on_answer = self.waiting.pop(0)
        on_answer({key: errors.get(key.topic, error) for key in partitions})
        return marker


class TransactionNode:
    """Broker 1, whose peers are silent."""

    def __init__(self, directory: Path, properties: Mapping[str, Any]) -> None:
        settings = {"transaction.state.log.num.partitions": PARTITIONS, **properties}
        self.node = Node(directory, **settings)
        loop = asyncio.get_running_loop()
        self.now_ms: WallClock = lambda: NOW_MS + round(loop.time() * 1000)
        self.leaders = Leaders()
        self.next_producer_id = 100
        self.ids_may_come = asyncio.Event()
        self.ids_may_come.set()
        self.transactions = TransactionStateManager(
            self.node.config,
            logs=CoordinatorReplicas(
                self.node.manager.appends,
                partition_of=self.node.manager.hosted.partition,
                on_storage_error=self.node.manager.storage_failures.handle,
                verifications=verifications(self.node.manager.hosted.partition),
            ),
            scheduler=self.node.scheduler,
            wall_clock=self.now_ms,
            retrieve_partition_count=self._partition_count,
        )
        self.coordinator = TransactionCoordinator(
            self.node.config,
            self.transactions,
            channels=self.leaders,
            scheduler=self.node.scheduler,
            wall_clock=self.now_ms,
            generate_producer_id=self._generate_producer_id,
            tracer=self.node.trace,
        )
        self.node.manager.add_role_listener(
            CoordinatorRoles({TRANSACTION_STATE_TOPIC_NAME: self.coordinator}, lambda _: None)
        )

    async def _partition_count(self) -> int:
        await asyncio.sleep(0.01)
        return PARTITIONS

    async def _generate_producer_id(self) -> int:
        await self.ids_may_come.wait()
        self.next_producer_id += 1
        return self.next_producer_id - 1

    # As controller

    def give_role(
        self, leader: int, leader_epoch: int, *, isr: tuple[int, ...] = (1,)
    ) -> ErrorCode:
        partition = state_partition()
        state = lisr(
            leader,
            leader_epoch,
            isr,
            replicas=(1, 2, 3),
            topic_id=STATE_ID,
            topic_partition=partition,
        )
        _, answers = self.node.lisr(state)
        return answers[partition]

    async def lead(self, leader_epoch: int = 0, *, isr: tuple[int, ...] = (1,)) -> None:
        assert self.give_role(1, leader_epoch, isr=isr) is ErrorCode.none
        while self.transactions.is_loading:
            await asyncio.sleep(0.01)

    # As clients

    async def init(
        self,
        expected: tuple[int, int] | None = None,
        *,
        timeout_ms: int = TIMEOUT_MS,
        transactional_id: str = ID,
    ) -> InitProducerIdResult:
        named = None if expected is None else ProducerIdAndEpoch(*expected)
        return await self.coordinator.init_producer_id(
            InitProducerId(transactional_id, timeout_ms, named)
        )

    async def begun(self, **values: Any) -> TransactionalProducer:
        result = await self.init(**values)
        assert result.error is ErrorCode.none
        return TransactionalProducer(ID, result.producer_id, result.producer_epoch)

    async def add(self, producer: TransactionalProducer, *keys: TopicPartition) -> ErrorCode:
        answer: asyncio.Future[ErrorCode] = asyncio.get_running_loop().create_future()
        self.coordinator.add_partitions(producer, frozenset(keys or (A, B)), answer.set_result)
        return await answer

    async def end(self, producer: TransactionalProducer, *, is_commit: bool = True) -> ErrorCode:
        answer: asyncio.Future[ErrorCode] = asyncio.get_running_loop().create_future()
        self.coordinator.end_transaction(producer, answer.set_result, is_commit=is_commit)
        return await answer

    # What there is

    @property
    def state(self) -> str:
        return self.coordinator.describe_transaction(ID).state

    def stored(self) -> dict[str, TransactionMetadata]:
        """The transactions as the log has them."""
        log = self.node.logs.get_log(state_partition())
        assert log is not None
        loaded = LoadedTransactions()
        if log.log_end_offset:
            loaded.take_in(log.read(0, 1 << 30, log.log_end_offset, min_one_message=True))
        return loaded.transactions()


def on_transaction_node(
    directory: Path, scenario: Callable[[TransactionNode], Awaitable[None]], **properties: Any
) -> None:
    """Run with a broker that leads nothing; afterwards nothing waits any more."""

    async def main() -> None:
        node = TransactionNode(directory, properties)
        await node.node.manager.startup()
        node.node.update_metadata()
        await scenario(node)
        node.coordinator.shutdown()
        await node.node.manager.shutdown()
        assert node.node.waiting == 0
        await asyncio.sleep(0)
        assert asyncio.all_tasks() == {asyncio.current_task()}

    run(main())
