"""AddPartitionsToTxn, AddOffsetsToTxn, EndTxn, ListTransactions, DescribeTransactions, InitProducerId: all versions."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from kio.index import load_request_schema
from kio.schema.errors import ErrorCode

from nemesis.reference.coordinator.key_partitions import partition_for
from nemesis.reference.model import (
    GROUP_METADATA_TOPIC_NAME,
    TopicPartition,
    TransactionalProducer,
)
from nemesis.reference.protocol.codec import SIZE_BYTES, decode_response, encode_response
from nemesis.reference.protocol.schema import build, build_items, item_class
from nemesis.reference.protocol.versions import OFFERED, ApiKey
from nemesis.reference.server.apis.producers import ProducerApis
from nemesis.reference.server.apis.transaction_coordination import TransactionCoordinatorApis
from tests.reference.cluster.hosting import TP
from tests.reference.coordinator.transaction_node import ID, TransactionNode, on_transaction_node
from tests.reference.server.answers import answered

NONE = ErrorCode.none
UNKNOWN = TopicPartition("unknown", 0)
OFFSETS_PARTITIONS = 7


def versions(api_key: ApiKey) -> range:
    return range(OFFERED[api_key].lowest, OFFERED[api_key].highest + 1)


def over_the_wire(response: Any) -> Any:
    frame = encode_response(response, correlation_id=1)
    return decode_response(frame[SIZE_BYTES:], type(response))[1]


def apis(node: TransactionNode) -> TransactionCoordinatorApis:
    return TransactionCoordinatorApis(
        node.coordinator, node.node.cache, offsets_partition_count=OFFSETS_PARTITIONS
    )


def topics(owner: type[Any], field: str, keys: Iterable[TopicPartition]) -> tuple[Any, ...]:
    items = ({"name": key.topic, "partitions": (key.partition,)} for key in keys)
    return build_items(owner, field, items)


async def add(
    node: TransactionNode,
    version: int,
    producer: TransactionalProducer,
    *keys: TopicPartition,
    verify_only: bool = False,
) -> dict[TopicPartition, ErrorCode]:
    schema = load_request_schema(ApiKey.ADD_PARTITIONS_TO_TXN, version)
    if version < 4:
        request = build(
            schema,
            v3_and_below_transactional_id=producer.transactional_id,
            v3_and_below_producer_id=producer.producer_id,
            v3_and_below_producer_epoch=producer.epoch,
            v3_and_below_topics=topics(schema, "v3_and_below_topics", keys),
        )
    else:
        item = {
            "transactional_id": producer.transactional_id,
            "producer_id": producer.producer_id,
            "producer_epoch": producer.epoch,
            "verify_only": verify_only,
            "topics": topics(item_class(schema, "transactions"), "topics", keys),
        }
        request = build(schema, transactions=build_items(schema, "transactions", [item]))
    response = over_the_wire(await answered(apis(node).handle_add_partitions_to_txn(request)))
    if version < 4:
        results = response.results_by_topic_v3_and_below
    else:
        assert response.error_code is NONE
        (result,) = response.results_by_transaction
        assert result.transactional_id == producer.transactional_id
        results = result.topic_results
    return {
        TopicPartition(topic.name, item.partition_index): item.partition_error_code
        for topic in results
        for item in topic.results_by_partition
    }


async def end(
    node: TransactionNode, version: int, producer: TransactionalProducer, *, committed: bool = True
) -> ErrorCode:
    request = build(
        load_request_schema(ApiKey.END_TXN, version),
        transactional_id=producer.transactional_id,
        producer_id=producer.producer_id,
        producer_epoch=producer.epoch,
        committed=committed,
    )
    code: ErrorCode = over_the_wire(await answered(apis(node).handle_end_txn(request))).error_code
    return code


@pytest.mark.parametrize("version", versions(ApiKey.ADD_PARTITIONS_TO_TXN))
def test_partitions_are_added_in_every_version(tmp_path: Path, version: int) -> None:
    async def scenario(node: TransactionNode) -> None:
        await node.lead()
        producer = await node.begun()
        assert await add(node, version, producer, TP, UNKNOWN) == {
            TP: ErrorCode.operation_not_attempted,
            UNKNOWN: ErrorCode.unknown_topic_or_partition,
        }
        assert node.state == "Empty"
        assert await add(node, version, producer, TP) == {TP: NONE}
        assert node.coordinator.describe_transaction(ID).partitions == {TP}
        fenced = producer_of(producer, epoch=7)
        name = "invalid_producer_epoch" if version < 2 else "producer_fenced"
        assert await add(node, version, fenced, TP) == {TP: ErrorCode[name]}

    on_transaction_node(tmp_path, scenario)


@pytest.mark.parametrize("version", versions(ApiKey.ADD_OFFSETS_TO_TXN))
def test_offsets_are_added_in_every_version(tmp_path: Path, version: int) -> None:
    async def scenario(node: TransactionNode) -> None:
        await node.lead()
        producer = await node.begun()

        async def add_offsets(sender: TransactionalProducer) -> ErrorCode:
            request = build(
                load_request_schema(ApiKey.ADD_OFFSETS_TO_TXN, version),
                transactional_id=sender.transactional_id,
                producer_id=sender.producer_id,
                producer_epoch=sender.epoch,
                group_id="g",
            )
            answer = await answered(apis(node).handle_add_offsets_to_txn(request))
            code: ErrorCode = over_the_wire(answer).error_code
            return code

        assert await add_offsets(producer) is NONE
        number = partition_for("g", OFFSETS_PARTITIONS)
        partition = TopicPartition(GROUP_METADATA_TOPIC_NAME, number)
        assert node.coordinator.describe_transaction(ID).partitions == {partition}
        assert node.state == "Ongoing"
        name = "invalid_producer_epoch" if version < 2 else "producer_fenced"
        assert await add_offsets(producer_of(producer, epoch=7)) is ErrorCode[name]

    on_transaction_node(tmp_path, scenario)


def producer_of(producer: TransactionalProducer, *, epoch: int) -> TransactionalProducer:
    return TransactionalProducer(producer.transactional_id, producer.producer_id, epoch)


@pytest.mark.parametrize("version", [4, 5])
def test_brokers_verify_partitions(tmp_path: Path, version: int) -> None:
    async def scenario(node: TransactionNode) -> None:
        await node.lead()
        producer = await node.begun()
        abortable = {TP: ErrorCode.transaction_abortable}
        assert await add(node, version, producer, TP, verify_only=True) == abortable
        await add(node, version, producer, TP)
        assert await add(node, version, producer, TP, verify_only=True) == {TP: NONE}
        unknown = {UNKNOWN: ErrorCode.unknown_topic_or_partition}
        assert await add(node, version, producer, UNKNOWN, verify_only=True) == unknown

    on_transaction_node(tmp_path, scenario)


@pytest.mark.parametrize("version", versions(ApiKey.END_TXN))
@pytest.mark.parametrize("committed", [True, False])
def test_a_transaction_ends_in_every_version(tmp_path: Path, version: int, committed: bool) -> None:
    async def scenario(node: TransactionNode) -> None:
        await node.lead()
        producer = await node.begun()
        await add(node, 3, producer, TP)
        fenced = await end(node, version, producer_of(producer, epoch=7), committed=committed)
        name = "invalid_producer_epoch" if version < 2 else "producer_fenced"
        assert fenced is ErrorCode[name]
        assert await end(node, version, producer, committed=committed) is NONE
        assert node.leaders.answer().is_commit is committed
        assert node.state == ("CompleteCommit" if committed else "CompleteAbort")

    on_transaction_node(tmp_path, scenario)


@pytest.mark.parametrize("version", versions(ApiKey.LIST_TRANSACTIONS))
def test_transactions_are_listed_in_every_version(tmp_path: Path, version: int) -> None:
    async def scenario(node: TransactionNode) -> None:
        await node.lead()
        producer = await node.begun()
        await add(node, 3, producer, TP)
        request = build(
            load_request_schema(ApiKey.LIST_TRANSACTIONS, version),
            state_filters=("Ongoing", "x"),
            producer_id_filters=(),
        )
        response = over_the_wire(apis(node).handle_list_transactions(request))
        assert (response.error_code, response.unknown_state_filters) == (NONE, ("x",))
        (item,) = response.transaction_states
        assert (item.transactional_id, item.producer_id, item.transaction_state) == (
            ID,
            producer.producer_id,
            "Ongoing",
        )

    on_transaction_node(tmp_path, scenario)


def test_transactions_are_described(tmp_path: Path) -> None:
    async def scenario(node: TransactionNode) -> None:
        await node.lead()
        producer = await node.begun(timeout_ms=5000)
        await add(node, 3, producer, TP)
        schema = load_request_schema(ApiKey.DESCRIBE_TRANSACTIONS, 0)
        request = build(schema, transactional_ids=(ID, ""))
        response = over_the_wire(apis(node).handle_describe_transactions(request))
        known, invalid = response.transaction_states
        assert invalid.error_code is ErrorCode.invalid_request
        assert (known.error_code, known.transaction_state) == (NONE, "Ongoing")
        assert (known.producer_id, known.producer_epoch) == (producer.producer_id, 0)
        assert known.transaction_timeout.total_seconds() == 5
        (topic,) = known.topics
        assert (topic.topic, topic.partitions) == (TP.topic, (TP.partition,))

    on_transaction_node(tmp_path, scenario)


@pytest.mark.parametrize("version", versions(ApiKey.INIT_PRODUCER_ID))
def test_a_transactional_producer_begins_in_every_version(tmp_path: Path, version: int) -> None:
    async def scenario(node: TransactionNode) -> None:
        await node.lead()
        producers = ProducerApis(None, node.coordinator)  # type: ignore[arg-type]

        async def init(**values: Any) -> Any:
            schema = load_request_schema(ApiKey.INIT_PRODUCER_ID, version)
            timeout = timedelta(minutes=1)
            request = build(schema, transactional_id=ID, transaction_timeout=timeout, **values)
            return over_the_wire(await producers.handle_init_producer_id(request))

        first = await init()
        assert (first.error_code, first.producer_id, first.producer_epoch) == (NONE, 100, 0)
        if version < 3:
            assert (await init()).producer_epoch == 1
            return
        again = await init(producer_id=100, producer_epoch=0)
        assert (again.producer_id, again.producer_epoch) == (100, 1)
        name = "invalid_producer_epoch" if version < 4 else "producer_fenced"
        fenced = await init(producer_id=100, producer_epoch=9)
        assert fenced.error_code is ErrorCode[name]

    on_transaction_node(tmp_path, scenario)
