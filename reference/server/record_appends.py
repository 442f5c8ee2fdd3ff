"""The produce requests of a broker, and those of them that wait for the ISR.

Each refusal becomes an error code of its own partition; a request never fails as a whole. A log that fails while
appending takes its replica offline, because its content is unknown afterwards. The results go to ``respond``, and the
request returns what ``respond`` returns: at once if nothing has to be waited for, as a future otherwise.

Source: kafka.server.ReplicaManager.appendRecords of Kafka 3.9.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final, TypeVar

from kio.schema.errors import ErrorCode

from nemesis.reference.cluster.errors import ReplicaError
from nemesis.reference.cluster.partition import Partition
from nemesis.reference.delayed_operations import DelayedOperationPurgatory
from nemesis.reference.log.errors import KafkaStorageError, LogError, RecordError
from nemesis.reference.log.log_append_info import LogAppendInfo
from nemesis.reference.log.log_validator import AppendOrigin
from nemesis.reference.log.verification_state import VerificationGuard
from nemesis.reference.model import INTERNAL_TOPICS, ProducePartitionResult, TopicPartition
from nemesis.reference.server.delayed_produce import DelayedProduce, acknowledge

_VALID_ACKS: Final = (-1, 0, 1)
_NO_GUARDS: Final[Mapping[TopicPartition, VerificationGuard]] = MappingProxyType({})

ProduceResults = dict[TopicPartition, ProducePartitionResult]
Response = TypeVar("Response")


class RecordAppends:
    """Appends to the leaders of this broker, and answers when the ISR has the records."""

    def __init__(
        self,
        *,
        partition_of: Callable[[TopicPartition], Partition],
        on_storage_error: Callable[[TopicPartition, KafkaStorageError], None],
    ) -> None:
        self._partition_of = partition_of
        self._on_storage_error = on_storage_error
        self.purgatory = DelayedOperationPurgatory[TopicPartition]()

    def append_records(
        self,
        *,
        timeout_ms: int,
        acks: int,
        entries: Mapping[TopicPartition, bytes],
        respond: Callable[[ProduceResults], Response],
        origin: AppendOrigin = AppendOrigin.CLIENT,
        guards: Mapping[TopicPartition, VerificationGuard] = _NO_GUARDS,
    ) -> Response | asyncio.Future[Response]:
        """Append to the leaders here; with acks −1, wait until the ISR has it or ``timeout_ms`` has passed.

        A client may not append to an internal topic. ``guards`` are those of verified transactions.
        """
        if acks not in _VALID_ACKS:
            refusal = ProducePartitionResult(ErrorCode.invalid_required_acks)
            return respond(dict.fromkeys(entries, refusal))
        results: ProduceResults = {}
        appended: dict[TopicPartition, LogAppendInfo] = {}
        for topic_partition, records in entries.items():
            outcome = self._append(
                topic_partition, records, acks, origin, guards.get(topic_partition)
            )
            if isinstance(outcome, ProducePartitionResult):
                results[topic_partition] = outcome
            else:
                appended[topic_partition] = outcome
        if acks != -1:
            for topic_partition, info in appended.items():
                results[topic_partition] = acknowledge(
                    self._partition_of(topic_partition), info, acks
                )
            return respond(results)
        delayed = DelayedProduce(appended, acks=acks, partition_of=self._partition_of)
        for topic_partition in appended:
            delayed.try_complete(topic_partition)
        if delayed.is_complete:
            return respond(results | delayed.results())
        return self.purgatory.watch(
            delayed,
            appended,
            timeout_s=timeout_ms / 1000,
            respond=lambda settled: respond(results | settled),
        )

    def _append(
        self,
        topic_partition: TopicPartition,
        records: bytes,
        acks: int,
        origin: AppendOrigin,
        guard: VerificationGuard | None,
    ) -> LogAppendInfo | ProducePartitionResult:
        if origin is AppendOrigin.CLIENT and topic_partition.topic in INTERNAL_TOPICS:
            text = f"Cannot append to internal topic {topic_partition.topic}"
            return ProducePartitionResult(ErrorCode.invalid_topic_exception, error_message=text)
        try:
            partition = self._partition_of(topic_partition)
            return partition.append_as_leader(records, acks, origin, guard)
        except ReplicaError as error:
            return ProducePartitionResult(error.code, error_message=str(error))
        except KafkaStorageError as error:
            self._on_storage_error(topic_partition, error)
            return ProducePartitionResult(ErrorCode.kafka_storage_error)
        except (LogError, RecordError) as error:
            return ProducePartitionResult(error.error_code, error_message=str(error))
