"""Produce of transactional batches: what is asked before they are appended, and what their producers are answered."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from datetime import timedelta
from pathlib import Path

import pytest
from kio.index import load_request_schema
from kio.schema.errors import ErrorCode

from nemesis.reference.model import (
    TopicPartition,
    TransactionalProducer,
    UpdateMetadataPartitionState,
)
from nemesis.reference.network.errors import CloseConnectionError
from nemesis.reference.protocol.record_batch import TRANSACTIONAL_FLAG
from nemesis.reference.protocol.schema import build, build_items, item_class
from nemesis.reference.protocol.versions import ApiKey
from nemesis.reference.server.apis.produce import ProduceApis
from tests.reference.cluster.hosting import TOPIC_ID, TP, lisr
from tests.reference.log.batches import NOW_MS, batch
from tests.reference.server.answers import answered
from tests.reference.server.one_broker import BROKERS, Node, on_node
from tests.reference.server.verification import PlayedCoordinators, Question, verifications

NONE = ErrorCode.none
OTHER = TopicPartition("t", 1)
PRODUCER = TransactionalProducer("x", 7, 2)
NOT_VERIFIED = "Unable to verify the partition has been added to the transaction."


def transactional(sequence: int = 0, *, producer_id: int = 7) -> bytes:
    producer = (producer_id, 2, sequence)
    return batch(attributes=TRANSACTIONAL_FLAG, producer=producer, timestamp=NOW_MS)


class Leader:
    """Broker 1, which leads two partitions."""

    def __init__(self, node: Node) -> None:
        self.node = node
        node.lisr(lisr(isr=(1,)), lisr(isr=(1,), topic_partition=OTHER))
        states = [
            UpdateMetadataPartitionState(key, TOPIC_ID, 1, 1, 0, (1,), 0, (1,))
            for key in (TP, OTHER)
        ]
        node.cache.update(1, 1, BROKERS, states)
        self.coordinators = PlayedCoordinators()
        partition_of = node.manager.hosted.partition
        self.apis = ProduceApis(
            node.manager.appends, verifications(partition_of, self.coordinators), node.cache
        )

    def end_of(self, key: TopicPartition = TP) -> int:
        return self.node.manager.hosted.partition(key).leader_log.log_end_offset

    def produce(
        self,
        records: Mapping[TopicPartition, bytes],
        *,
        transactional_id: str | None = "x",
        acks: int = 1,
        version: int = 11,
    ) -> asyncio.Future[dict[int, tuple[ErrorCode, str | None]]]:
        schema = load_request_schema(ApiKey.PRODUCE, version)
        topic_class = item_class(schema, "topic_data")
        items = [{"index": key.partition, "records": data} for key, data in records.items()]
        topic = {"name": "t", "partition_data": build_items(topic_class, "partition_data", items)}
        request = build(
            schema,
            transactional_id=transactional_id,
            acks=acks,
            timeout=timedelta(seconds=1),
            topic_data=build_items(schema, "topic_data", [topic]),
        )

        async def results() -> dict[int, tuple[ErrorCode, str | None]]:
            response = await answered(self.apis.handle_produce(request))
            if response is None:
                return {}
            (topic,) = response.responses
            return {
                item.index: (item.error_code, item.error_message)
                for item in topic.partition_responses
            }

        return asyncio.ensure_future(results())

    async def question(self) -> Question:
        while not self.coordinators.questions:
            await asyncio.sleep(0.01)
        return self.coordinators.questions.pop()


def on_leader(directory: Path, scenario: Callable[[Leader], Awaitable[None]]) -> None:
    async def on(node: Node) -> None:
        await scenario(Leader(node))

    on_node(directory, on)


@pytest.mark.parametrize(("version", "knows_abortable"), [(10, False), (11, True)])
def test_the_coordinator_is_asked_once_for_all_partitions(
    tmp_path: Path, version: int, *, knows_abortable: bool
) -> None:
    async def scenario(leader: Leader) -> None:
        records = {TP: transactional(), OTHER: transactional(5)}
        answer = leader.produce(records, version=version)
        asked = await leader.question()
        assert asked.producer == PRODUCER
        assert asked.partitions == {TP, OTHER}
        assert asked.knows_abortable is knows_abortable
        assert (leader.end_of(TP), leader.end_of(OTHER)) == (0, 0)
        asked.settle()
        assert await answer == {0: (NONE, None), 1: (NONE, None)}
        again = {TP: transactional(1), OTHER: transactional(6)}
        assert await leader.produce(again) == {0: (NONE, None), 1: (NONE, None)}
        assert leader.coordinators.questions == [], "both transactions are open"
        assert (leader.end_of(TP), leader.end_of(OTHER)) == (2, 2)

    on_leader(tmp_path, scenario)


@pytest.mark.parametrize(
    ("error", "reported", "text"),
    [
        (
            ErrorCode.invalid_txn_state,
            ErrorCode.invalid_txn_state,
            "Partition was not added to the transaction",
        ),
        (ErrorCode.transaction_abortable, ErrorCode.transaction_abortable, None),
        (ErrorCode.invalid_producer_epoch, ErrorCode.invalid_producer_epoch, None),
        (ErrorCode.invalid_producer_id_mapping, ErrorCode.invalid_producer_id_mapping, None),
        *(
            (
                error,
                ErrorCode.not_enough_replicas,
                f"{NOT_VERIFIED} Underlying error: {error.name.upper()}",
            )
            for error in (
                ErrorCode.concurrent_transactions,
                ErrorCode.network_exception,
                ErrorCode.coordinator_load_in_progress,
                ErrorCode.coordinator_not_available,
                ErrorCode.not_coordinator,
            )
        ),
    ],
)
def test_what_is_not_verified_is_not_appended(
    tmp_path: Path, error: ErrorCode, reported: ErrorCode, text: str | None
) -> None:
    async def scenario(leader: Leader) -> None:
        plain = batch(producer=(8, 0, 0), timestamp=NOW_MS)
        answer = leader.produce({TP: transactional(), OTHER: plain})
        (await leader.question()).settle(error)
        assert await answer == {0: (reported, text), 1: (NONE, None)}
        assert (leader.end_of(TP), leader.end_of(OTHER)) == (0, 1)

    on_leader(tmp_path, scenario)


def test_the_same_batch_may_come_again_after_a_retriable_error(tmp_path: Path) -> None:
    async def scenario(leader: Leader) -> None:
        first = leader.produce({TP: transactional()})
        (await leader.question()).settle(ErrorCode.concurrent_transactions)
        assert (await first)[0][0] is ErrorCode.not_enough_replicas
        again = leader.produce({TP: transactional()})
        (await leader.question()).settle()
        assert await again == {0: (NONE, None)}

    on_leader(tmp_path, scenario)


def test_a_leader_that_has_resigned_meanwhile_appends_nothing(tmp_path: Path) -> None:
    async def scenario(leader: Leader) -> None:
        answer = leader.produce({TP: transactional()})
        asked = await leader.question()
        leader.node.lisr(lisr(leader=2, leader_epoch=9))
        asked.settle()
        assert (await answer)[0][0] is ErrorCode.not_leader_or_follower
        unasked = await leader.produce({TP: transactional()})
        assert unasked[0][0] is ErrorCode.not_leader_or_follower
        assert leader.coordinators.questions == []

    on_leader(tmp_path, scenario)


def test_transactional_batches_have_one_producer_and_its_transactional_id(tmp_path: Path) -> None:
    async def scenario(leader: Leader) -> None:
        forbidden = ErrorCode.transactional_id_authorization_failed
        plain = batch(producer=(8, 0, 0), timestamp=NOW_MS)
        records = {TP: transactional(), OTHER: plain}
        answer = await leader.produce(records, transactional_id=None)
        assert answer == {0: (forbidden, None), 1: (forbidden, None)}
        two = {TP: transactional(), OTHER: transactional(producer_id=8)}
        unknown = ErrorCode.invalid_producer_id_mapping
        assert await leader.produce(two) == {0: (unknown, None), 1: (unknown, None)}
        assert (leader.end_of(TP), leader.end_of(OTHER)) == (0, 0)

    on_leader(tmp_path, scenario)


def test_without_acks_what_is_not_verified_closes_the_connection(tmp_path: Path) -> None:
    async def scenario(leader: Leader) -> None:
        answer = leader.produce({TP: transactional()}, acks=0)
        (await leader.question()).settle(ErrorCode.invalid_txn_state)
        with pytest.raises(CloseConnectionError):
            await answer
        answer = leader.produce({TP: transactional()}, acks=0)
        (await leader.question()).settle()
        assert await answer == {}
        assert leader.end_of() == 1

    on_leader(tmp_path, scenario)
