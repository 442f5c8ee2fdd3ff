"""Asks transaction coordinators whether they have partitions (KIP-890); implements ``TransactionCoordinators``.

All questions to a broker that coordinates go in one AddPartitionsToTxn at a time. Its queue has one question of a
transactional id: the producer of an older one has sent its request again, or is fenced. A coordinator that is not known
is reported at once, and one that does not answer after its time-out; nothing is asked twice, because the producer sends
its request again.

A Kafka broker before 3.5 does not know the question. So each broker is asked for its versions first; the partitions of
such a coordinator count as verified, as in Kafka.

Source: kafka.server.AddPartitionsToTxnManager of Kafka 3.9.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from kio.index import load_request_schema
from kio.schema.errors import ErrorCode

from nemesis.reference.coordinator.key_partitions import partition_for
from nemesis.reference.coordinator.transaction.transaction_state_manager import REQUEST_TIMEOUT_MS
from nemesis.reference.kafka_config import KafkaConfig
from nemesis.reference.model import (
    TRANSACTION_STATE_TOPIC_NAME,
    BrokerEndPoint,
    TopicPartition,
    TransactionalProducer,
)
from nemesis.reference.network.errors import NetworkError
from nemesis.reference.protocol.schema import build, build_items, item_class
from nemesis.reference.protocol.versions import OFFERED, ApiKey
from nemesis.reference.server.connection import ConnectionFactory
from nemesis.reference.server.inter_broker_senders import InterBrokerSenders
from nemesis.reference.server.metadata_cache import MetadataCache

_logger = logging.getLogger(__name__)

_FIRST_VERSION_THAT_VERIFIES: Final = 4
_TIMEOUT_S: Final = REQUEST_TIMEOUT_MS / 1000
Errors = Mapping[TopicPartition, ErrorCode]


@dataclass(frozen=True, slots=True, eq=False)
class _Question:
    producer: TransactionalProducer
    partitions: tuple[TopicPartition, ...]
    knows_abortable: bool
    answer: asyncio.Future[Errors]

    def settle(self, errors: Errors) -> None:
        """Answer, unless the request that asked is gone."""
        if not self.answer.done():
            self.answer.set_result(errors)

    def refuse(self, error: ErrorCode) -> None:
        self.settle(dict.fromkeys(self.partitions, error))


class AddPartitionsToTxnManager:
    """Needs the cache for coordinators and their addresses."""

    def __init__(
        self, config: KafkaConfig, *, metadata_cache: MetadataCache, connect: ConnectionFactory
    ) -> None:
        self._listener_name = config.listener_config.inter_broker_listener_name
        self._metadata_cache = metadata_cache
        self._senders = InterBrokerSenders(
            "add-partitions-to-txn-sender",
            f"broker-{config.broker_id}-add-partitions-manager",
            connect=connect,
            new_queue=dict[str, _Question],
            send_all=self._settle_all,
        )
        self._highest_versions: dict[int, int] = {}
        """Of AddPartitionsToTxn, by broker; forgotten with the connection."""

    def verify(
        self,
        producer: TransactionalProducer,
        partitions: Collection[TopicPartition],
        *,
        knows_abortable: bool,
    ) -> asyncio.Future[Errors]:
        """Return the errors of those partitions that are not in the transaction of the producer."""
        answer: asyncio.Future[Errors] = asyncio.get_running_loop().create_future()
        question = _Question(producer, tuple(partitions), knows_abortable, answer)
        coordinator = self._coordinator(producer.transactional_id)
        if coordinator is None:
            question.refuse(ErrorCode.coordinator_not_available)
        else:
            self._enqueue(coordinator.id, question)
        return answer

    async def shutdown(self) -> None:
        """Ask nothing from now on; open questions stay without an answer, as their requests do."""
        await self._senders.shutdown()

    def _coordinator(self, transactional_id: str) -> BrokerEndPoint | None:
        count = len(self._metadata_cache.topic_partitions(TRANSACTION_STATE_TOPIC_NAME))
        if count == 0:
            return None
        number = partition_for(transactional_id, count)
        key = TopicPartition(TRANSACTION_STATE_TOPIC_NAME, number)
        info = self._metadata_cache.partition_info(key)
        return None if info is None else self._node(info.leader)

    def _node(self, broker_id: int) -> BrokerEndPoint | None:
        return self._metadata_cache.alive_broker_node(broker_id, self._listener_name)

    def _enqueue(self, broker_id: int, question: _Question) -> None:
        queue = self._senders.queue(broker_id)
        transactional_id = question.producer.transactional_id
        queued = queue.get(transactional_id)
        if queued is not None:
            if question.producer.epoch < queued.producer.epoch:
                question.refuse(ErrorCode.invalid_producer_epoch)
                return
            is_fenced = queued.producer.epoch < question.producer.epoch
            # Of the same epoch it is the producer's older request: a retriable error, as its connection is gone.
            queued.refuse(
                ErrorCode.invalid_producer_epoch if is_fenced else ErrorCode.network_exception
            )
        queue[transactional_id] = question

    async def _settle_all(self, broker_id: int, queue: dict[str, _Question]) -> None:
        questions = list(queue.values())
        try:
            await self._ask(broker_id, questions)
        except NetworkError as failure:
            _logger.info("verification by broker %d: %s", broker_id, failure)
            self._highest_versions.pop(broker_id, None)
            error = ErrorCode.network_exception
        except Exception:
            _logger.exception("verification by broker %d failed", broker_id)
            error = ErrorCode.unknown_server_error
        else:
            return
        for question in questions:
            question.refuse(error)

    async def _ask(self, broker_id: int, questions: list[_Question]) -> None:
        response = await self._answered(broker_id, questions)
        if response is None:
            for question in questions:
                question.settle({})
        elif response.error_code is not ErrorCode.none:
            error = _error_of_all(response.error_code)
            for question in questions:
                question.refuse(error)
        else:
            results = {item.transactional_id: item for item in response.results_by_transaction}
            for question in questions:
                _settle(question, results.get(question.producer.transactional_id))

    async def _answered(self, broker_id: int, questions: list[_Question]) -> Any | None:
        """Return the response; None if the broker does not know the question. Raises NetworkError."""
        node = self._node(broker_id)
        if node is None:
            raise NetworkError(f"broker {broker_id} is not alive", definite=True)
        connection = self._senders.connection(broker_id)
        highest = self._highest_versions.get(broker_id)
        if highest is None:
            request = build(load_request_schema(ApiKey.API_VERSIONS, 0))
            offered = await connection.send(node.host, node.port, request, timeout_s=_TIMEOUT_S)
            highest = self._highest_versions[broker_id] = _highest_version(offered)
        if highest < _FIRST_VERSION_THAT_VERIFIES:
            _logger.warning("broker %d does not verify transactions", broker_id)
            return None
        request = _request(questions, min(highest, OFFERED[ApiKey.ADD_PARTITIONS_TO_TXN].highest))
        return await connection.send(node.host, node.port, request, timeout_s=_TIMEOUT_S)


def _highest_version(offered: Any) -> int:
    return max(
        (
            item.max_version
            for item in offered.api_keys
            if item.api_key == ApiKey.ADD_PARTITIONS_TO_TXN
        ),
        default=-1,
    )


def _request(questions: Iterable[_Question], version: int) -> Any:
    schema = load_request_schema(ApiKey.ADD_PARTITIONS_TO_TXN, version)
    transaction_class = item_class(schema, "transactions")
    transactions = (
        {
            "transactional_id": question.producer.transactional_id,
            "producer_id": question.producer.producer_id,
            "producer_epoch": question.producer.epoch,
            "verify_only": True,
            "topics": build_items(transaction_class, "topics", _topics(question.partitions)),
        }
        for question in questions
    )
    return build(schema, transactions=build_items(schema, "transactions", transactions))


def _topics(partitions: Iterable[TopicPartition]) -> list[dict[str, Any]]:
    by_topic: dict[str, list[int]] = {}
    for topic, number in partitions:
        by_topic.setdefault(topic, []).append(number)
    return [{"name": topic, "partitions": tuple(numbers)} for topic, numbers in by_topic.items()]


def _error_of_all(error: ErrorCode) -> ErrorCode:
    """Clients do not expect that a broker may not ask."""
    is_forbidden = error is ErrorCode.cluster_authorization_failed
    return ErrorCode.invalid_txn_state if is_forbidden else error


def _settle(question: _Question, result: Any | None) -> None:
    if result is None:
        question.refuse(ErrorCode.network_exception)
        return
    question.settle(
        {
            TopicPartition(topic.name, item.partition_index): _error_for_producer(
                item.partition_error_code, knows_abortable=question.knows_abortable
            )
            for topic in result.topic_results
            for item in topic.results_by_partition
            if item.partition_error_code is not ErrorCode.none
        }
    )


def _error_for_producer(error: ErrorCode, *, knows_abortable: bool) -> ErrorCode:
    """Producers handle INVALID_PRODUCER_EPOCH in answers to Produce; older ones do not know TRANSACTION_ABORTABLE."""
    if error is ErrorCode.producer_fenced:
        return ErrorCode.invalid_producer_epoch
    if error is ErrorCode.transaction_abortable and not knows_abortable:
        return ErrorCode.invalid_txn_state
    return error
