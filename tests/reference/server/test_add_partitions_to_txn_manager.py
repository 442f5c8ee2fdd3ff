"""Questions to transaction coordinators: one request at a time for each broker, one question of a transactional id."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from kio.schema.errors import ErrorCode

from nemesis.reference.coordinator.key_partitions import partition_for
from nemesis.reference.model import (
    TRANSACTION_STATE_TOPIC_NAME,
    Broker,
    TopicPartition,
    TransactionalProducer,
    UpdateMetadataPartitionState,
)
from nemesis.reference.network.errors import NetworkError
from nemesis.reference.protocol.schema import build, build_items, item_class, response_class
from nemesis.reference.protocol.versions import ApiKey
from nemesis.reference.server.add_partitions_to_txn_manager import AddPartitionsToTxnManager
from nemesis.reference.server.apis.conversion import NO_THROTTLE
from nemesis.reference.server.metadata_cache import MetadataCache
from tests.reference.cluster.hosting import config
from tests.reference.virtual_time import run

A, B = TopicPartition("t", 0), TopicPartition("u", 1)
COORDINATOR = 2
PRODUCER = TransactionalProducer("x", 7, 0)
PARTITIONS = 2
UNLED = next(name for name in "abcdef" if partition_for(name, PARTITIONS) != partition_for("x", 2))
Errors = Mapping[TopicPartition, ErrorCode]


class Coordinator:
    """Answers each request after a second."""

    def __init__(self) -> None:
        self.highest_version = 5
        self.errors: dict[TopicPartition, ErrorCode] = {}
        self.error_of_all = ErrorCode.none
        self.breaks = False
        self.requests: list[Any] = []
        self.version_requests = 0
        self.is_closed = False

    async def send(self, host: str, port: int, request: Any, *, timeout_s: float) -> Any:
        assert (host, port, timeout_s) == ("b", 92, 30)
        if request.__api_key__ == ApiKey.API_VERSIONS:
            self.version_requests += 1
            return self._versions(response_class(type(request)))
        assert request.__version__ == min(5, self.highest_version)
        self.requests.append(request)
        await asyncio.sleep(1)
        if self.breaks:
            raise NetworkError("broken", definite=False)
        return self._results(request)

    def _versions(self, response: type[Any]) -> Any:
        item = {"api_key": 24, "min_version": 0, "max_version": self.highest_version}
        return build(
            response,
            error_code=ErrorCode.none,
            api_keys=build_items(response, "api_keys", [item]),
        )

    def _results(self, request: Any) -> Any:
        response = response_class(type(request))
        result_class = item_class(response, "results_by_transaction")
        topic_class = item_class(result_class, "topic_results")
        results = []
        for transaction in request.transactions:
            topics = []
            for topic in transaction.topics:
                items = [
                    {
                        "partition_index": number,
                        "partition_error_code": self.errors.get(
                            TopicPartition(topic.name, number), ErrorCode.none
                        ),
                    }
                    for number in topic.partitions
                ]
                by_partition = build_items(topic_class, "results_by_partition", items)
                topics.append({"name": topic.name, "results_by_partition": by_partition})
            results.append(
                {
                    "transactional_id": transaction.transactional_id,
                    "topic_results": build_items(result_class, "topic_results", topics),
                }
            )
        return build(
            response,
            throttle_time=NO_THROTTLE,
            error_code=self.error_of_all,
            results_by_transaction=build_items(response, "results_by_transaction", results),
        )

    async def close(self) -> None:
        self.is_closed = True


class Asking:
    """Broker 1, which knows the coordinator of one of two partitions of the transaction log."""

    def __init__(self, directory: Path) -> None:
        self.coordinator = Coordinator()
        cache = MetadataCache(1)
        led = partition_for("x", PARTITIONS)
        states = [
            UpdateMetadataPartitionState(key, UUID(int=7), 1, leader, 0, (leader,), 0, (leader,))
            for key, leader in (
                (TopicPartition(TRANSACTION_STATE_TOPIC_NAME, led), COORDINATOR),
                (TopicPartition(TRANSACTION_STATE_TOPIC_NAME, 1 - led), -1),
            )
        ]
        cache.update(1, 1, [Broker.at(1, "a", 91), Broker.at(COORDINATOR, "b", 92)], states)
        self.manager = AddPartitionsToTxnManager(
            config(directory), metadata_cache=cache, connect=lambda _: self.coordinator
        )

    def ask(
        self,
        producer: TransactionalProducer = PRODUCER,
        *keys: TopicPartition,
        knows_abortable: bool = True,
    ) -> asyncio.Future[Errors]:
        return self.manager.verify(producer, keys or (A, B), knows_abortable=knows_abortable)


def on_asking(directory: Path, scenario: Callable[[Asking], Awaitable[None]]) -> None:
    async def main() -> None:
        asking = Asking(directory)
        await scenario(asking)
        await asking.manager.shutdown()
        assert asking.coordinator.is_closed is bool(asking.coordinator.version_requests)
        assert asyncio.all_tasks() == {asyncio.current_task()}

    run(main())


def test_questions_during_a_request_go_with_the_next_one(tmp_path: Path) -> None:
    ids = [name for name in map(str, range(20)) if partition_for(name, 2) == partition_for("x", 2)]

    async def scenario(asking: Asking) -> None:
        answers = [asking.ask()]
        await asyncio.sleep(0.1)
        answers += [asking.ask(TransactionalProducer(name, 8, 3), A) for name in ids[:2]]
        assert [await answer for answer in answers] == [{}, {}, {}]
        first, second = asking.coordinator.requests
        (transaction,) = first.transactions
        assert (transaction.transactional_id, transaction.verify_only) == ("x", True)
        assert (transaction.producer_id, transaction.producer_epoch) == (7, 0)
        assert [(topic.name, topic.partitions) for topic in transaction.topics] == [
            ("t", (0,)),
            ("u", (1,)),
        ]
        assert [item.transactional_id for item in second.transactions] == ids[:2]
        assert asking.coordinator.version_requests == 1

    on_asking(tmp_path, scenario)


@pytest.mark.parametrize(
    ("error", "knows_abortable", "reported"),
    [
        (ErrorCode.transaction_abortable, True, ErrorCode.transaction_abortable),
        (ErrorCode.transaction_abortable, False, ErrorCode.invalid_txn_state),
        (ErrorCode.producer_fenced, True, ErrorCode.invalid_producer_epoch),
        (ErrorCode.concurrent_transactions, False, ErrorCode.concurrent_transactions),
        (ErrorCode.not_coordinator, False, ErrorCode.not_coordinator),
    ],
)
def test_each_partition_has_the_error_that_producers_know(
    tmp_path: Path, error: ErrorCode, *, knows_abortable: bool, reported: ErrorCode
) -> None:
    async def scenario(asking: Asking) -> None:
        asking.coordinator.errors = {B: error}
        assert await asking.ask(knows_abortable=knows_abortable) == {B: reported}

    on_asking(tmp_path, scenario)


def test_a_producer_that_asks_again_takes_the_older_question_back(tmp_path: Path) -> None:
    async def scenario(asking: Asking) -> None:
        in_flight = asking.ask()
        await asyncio.sleep(0.1)
        older = asking.ask()
        again = asking.ask()
        assert older.result() == dict.fromkeys((A, B), ErrorCode.network_exception)
        newer = asking.ask(TransactionalProducer("x", 7, 1), A)
        fenced = dict.fromkeys((A, B), ErrorCode.invalid_producer_epoch)
        assert again.result() == fenced
        assert asking.ask().result() == fenced
        assert [await answer for answer in (in_flight, newer)] == [{}, {}]
        assert [len(request.transactions) for request in asking.coordinator.requests] == [1, 1]

    on_asking(tmp_path, scenario)


def test_a_coordinator_that_is_not_known_is_reported_at_once(tmp_path: Path) -> None:
    async def scenario(asking: Asking) -> None:
        not_available = {A: ErrorCode.coordinator_not_available}
        answer = asking.ask(TransactionalProducer(UNLED, 7, 0), A)
        assert answer.result() == not_available
        nowhere = AddPartitionsToTxnManager(
            config(tmp_path), metadata_cache=MetadataCache(1), connect=lambda _: asking.coordinator
        )
        assert nowhere.verify(PRODUCER, [A], knows_abortable=True).result() == not_available

    on_asking(tmp_path, scenario)


def test_a_broken_connection_is_retriable_and_the_versions_are_asked_again(tmp_path: Path) -> None:
    async def scenario(asking: Asking) -> None:
        asking.coordinator.breaks = True
        assert await asking.ask() == dict.fromkeys((A, B), ErrorCode.network_exception)
        asking.coordinator.breaks = False
        assert await asking.ask() == {}
        assert asking.coordinator.version_requests == 2

    on_asking(tmp_path, scenario)


def test_an_older_coordinator_is_not_asked(tmp_path: Path) -> None:
    async def scenario(asking: Asking) -> None:
        asking.coordinator.highest_version = 3
        assert await asking.ask() == {}
        assert asking.coordinator.requests == []

    on_asking(tmp_path, scenario)


def test_the_fourth_version_will_do(tmp_path: Path) -> None:
    async def scenario(asking: Asking) -> None:
        asking.coordinator.highest_version = 4
        asking.coordinator.errors = {A: ErrorCode.invalid_producer_id_mapping}
        assert await asking.ask() == {A: ErrorCode.invalid_producer_id_mapping}

    on_asking(tmp_path, scenario)


def test_clients_do_not_hear_that_a_broker_may_not_ask(tmp_path: Path) -> None:
    async def scenario(asking: Asking) -> None:
        asking.coordinator.error_of_all = ErrorCode.cluster_authorization_failed
        assert await asking.ask() == dict.fromkeys((A, B), ErrorCode.invalid_txn_state)

    on_asking(tmp_path, scenario)


def test_a_broker_that_stops_waits_for_no_answer(tmp_path: Path) -> None:
    async def scenario(asking: Asking) -> None:
        answer = asking.ask()
        await asyncio.sleep(0.5)
        answer.cancel()

    on_asking(tmp_path, scenario)
