"""AddPartitionsToTxn, AddOffsetsToTxn, EndTxn, ListTransactions and DescribeTransactions, of a transaction coordinator.

AddPartitionsToTxn has one transaction up to version 3, of a client; from version 4 on several, of a broker, which may
ask whether partitions were added instead (KIP-890). AddOffsetsToTxn adds the offsets partition of a group, whose topic
need not exist yet.

Source: kafka.server.KafkaApis of Kafka 3.9.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Mapping
from datetime import timedelta
from functools import partial
from typing import Any, Final

from kio.schema.errors import ErrorCode

from nemesis.reference.coordinator.key_partitions import partition_for
from nemesis.reference.coordinator.transaction.transaction_coordinator import (
    TransactionCoordinator,
)
from nemesis.reference.coordinator.transaction.transaction_requests import (
    TransactionDescription,
)
from nemesis.reference.model import (
    GROUP_METADATA_TOPIC_NAME,
    TopicPartition,
    TransactionalProducer,
)
from nemesis.reference.protocol.schema import build, build_items, item_class
from nemesis.reference.server.apis.conversion import NO_THROTTLE, response_of, timestamp
from nemesis.reference.server.apis.groups import answer_of
from nemesis.reference.server.kafka_request_handler import Later
from nemesis.reference.server.metadata_cache import MetadataCache

_FIRST_VERSION_OF_BROKERS: Final = 4
_FIRST_VERSION_WITH_FENCED: Final = 2
_ALL_DURATIONS: Final = -1
_Errors = Mapping[TopicPartition, ErrorCode]


class TransactionCoordinatorApis:
    """Needs the coordinator of this broker, and the cache to refuse partitions that do not exist."""

    def __init__(
        self,
        coordinator: TransactionCoordinator,
        metadata_cache: MetadataCache,
        *,
        offsets_partition_count: int,
    ) -> None:
        """``offsets_partition_count`` is how many partitions the offsets topic will have if it does not exist."""
        self._coordinator = coordinator
        self._metadata_cache = metadata_cache
        self._offsets_partition_count = offsets_partition_count

    async def handle_add_partitions_to_txn(self, message: Any) -> Any:
        """The response once the partitions are in the log."""
        if message.__version__ < _FIRST_VERSION_OF_BROKERS:
            producer = TransactionalProducer(
                message.v3_and_below_transactional_id,
                message.v3_and_below_producer_id,
                message.v3_and_below_producer_epoch,
            )
            errors = await self._added(producer, _partitions(message.v3_and_below_topics))
            return _client_response(message, errors)
        results = await asyncio.gather(
            *(self._answered(transaction) for transaction in message.transactions)
        )
        return _broker_response(message, results)

    async def _answered(self, transaction: Any) -> _Errors:
        producer = _producer(transaction)
        partitions = _partitions(transaction.topics)
        if not transaction.verify_only:
            return await self._added(producer, partitions)
        unknown = self._unknown(partitions)
        return unknown or self._coordinator.verify_partitions(producer, partitions)

    async def _added(
        self, producer: TransactionalProducer, partitions: list[TopicPartition]
    ) -> _Errors:
        if unknown := self._unknown(partitions):
            return unknown
        added: asyncio.Future[ErrorCode] = asyncio.get_running_loop().create_future()
        self._coordinator.add_partitions(producer, frozenset(partitions), added.set_result)
        return dict.fromkeys(partitions, await added)

    def _unknown(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, ErrorCode]:
        """Return the errors of a request that names unknown partitions; empty if it names none."""
        errors = {
            key: (
                ErrorCode.operation_not_attempted
                if self._metadata_cache.contains(key)
                else ErrorCode.unknown_topic_or_partition
            )
            for key in partitions
        }
        return errors if ErrorCode.unknown_topic_or_partition in errors.values() else {}

    def handle_add_offsets_to_txn(self, message: Any) -> Any | Later:
        """The response once the offsets partition of the group is in the log."""
        existing = len(self._metadata_cache.topic_partitions(GROUP_METADATA_TOPIC_NAME))
        number = partition_for(message.group_id, existing or self._offsets_partition_count)
        partition = TopicPartition(GROUP_METADATA_TOPIC_NAME, number)

        def response(error: ErrorCode) -> Any:
            code = client_error(error, message.__version__, _FIRST_VERSION_WITH_FENCED)
            return build(response_of(message), throttle_time=NO_THROTTLE, error_code=code)

        add = partial(self._coordinator.add_partitions, _producer(message), frozenset((partition,)))
        return answer_of(add, response)

    def handle_end_txn(self, message: Any) -> Any | Later:
        """The response once the decision is in the log."""

        def response(error: ErrorCode) -> Any:
            code = client_error(error, message.__version__, _FIRST_VERSION_WITH_FENCED)
            return build(response_of(message), throttle_time=NO_THROTTLE, error_code=code)

        end = partial(
            self._coordinator.end_transaction, _producer(message), is_commit=message.committed
        )
        return answer_of(end, response)

    def handle_list_transactions(self, message: Any) -> Any:
        listed = self._coordinator.list_transactions(
            message.state_filters,
            message.producer_id_filters,
            getattr(message, "duration_filter", _ALL_DURATIONS),
        )
        response = response_of(message)
        items = (
            {
                "transactional_id": item.transactional_id,
                "producer_id": item.producer_id,
                "transaction_state": item.state,
            }
            for item in listed.transactions
        )
        return build(
            response,
            throttle_time=NO_THROTTLE,
            error_code=listed.error,
            unknown_state_filters=listed.unknown_states,
            transaction_states=build_items(response, "transaction_states", items),
        )

    def handle_describe_transactions(self, message: Any) -> Any:
        response = response_of(message)
        state_class = item_class(response, "transaction_states")
        descriptions = map(self._coordinator.describe_transaction, message.transactional_ids)
        return build(
            response,
            throttle_time=NO_THROTTLE,
            transaction_states=build_items(
                response, "transaction_states", (_described(state_class, d) for d in descriptions)
            ),
        )


def client_error(error: ErrorCode, version: int, first_with_fenced: int) -> ErrorCode:
    """Return the error for a client; before a version, producers do not know PRODUCER_FENCED."""
    is_unknown = error is ErrorCode.producer_fenced and version < first_with_fenced
    return ErrorCode.invalid_producer_epoch if is_unknown else error


def _producer(item: Any) -> TransactionalProducer:
    return TransactionalProducer(item.transactional_id, item.producer_id, item.producer_epoch)


def _partitions(topics: Iterable[Any]) -> list[TopicPartition]:
    return [TopicPartition(topic.name, number) for topic in topics for number in topic.partitions]


def _client_response(message: Any, errors: _Errors) -> Any:
    response = response_of(message)
    codes = {
        key: client_error(error, message.__version__, _FIRST_VERSION_WITH_FENCED)
        for key, error in errors.items()
    }
    field = "results_by_topic_v3_and_below"
    return build(
        response, throttle_time=NO_THROTTLE, **{field: _topic_results(response, field, codes)}
    )


def _broker_response(message: Any, results: Collection[_Errors]) -> Any:
    response = response_of(message)
    result_class = item_class(response, "results_by_transaction")
    items = (
        {
            "transactional_id": transaction.transactional_id,
            "topic_results": _topic_results(result_class, "topic_results", errors),
        }
        for transaction, errors in zip(message.transactions, results, strict=True)
    )
    return build(
        response,
        throttle_time=NO_THROTTLE,
        error_code=ErrorCode.none,
        results_by_transaction=build_items(response, "results_by_transaction", items),
    )


def _topic_results(owner: type[Any], field: str, errors: _Errors) -> tuple[Any, ...]:
    topic_class = item_class(owner, field)
    by_topic: dict[str, list[dict[str, Any]]] = {}
    for key, error in errors.items():
        item = {"partition_index": key.partition, "partition_error_code": error}
        by_topic.setdefault(key.topic, []).append(item)
    return build_items(
        owner,
        field,
        (
            {
                "name": topic,
                "results_by_partition": build_items(topic_class, "results_by_partition", items),
            }
            for topic, items in by_topic.items()
        ),
    )


def _described(state_class: type[Any], description: TransactionDescription) -> dict[str, Any]:
    topics: dict[str, list[int]] = {}
    for topic, number in sorted(description.partitions):
        topics.setdefault(topic, []).append(number)
    items = ({"topic": topic, "partitions": tuple(numbers)} for topic, numbers in topics.items())
    return {
        "error_code": description.error,
        "transactional_id": description.transactional_id,
        "transaction_state": description.state,
        "transaction_timeout": timedelta(milliseconds=description.timeout_ms),
        "transaction_start_time": timestamp(description.start_timestamp),
        "producer_id": description.producer_id,
        "producer_epoch": description.producer_epoch,
        "topics": build_items(state_class, "topics", items),
    }
