"""Requests of transactional producers: one function for each, and what its answer says.

Versions are those of Kafka 3.9 with ``transaction.version`` 0: FindCoordinator 4, InitProducerId 4,
AddPartitionsToTxn 3, AddOffsetsToTxn 3, TxnOffsetCommit 3, EndTxn 3. Those of ``transaction.version`` 2 are in
``implicit_transactions``.

Numbers are ``cast``, as in ``client``.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple, cast

from kio.schema.add_offsets_to_txn.v3 import request as add_offsets
from kio.schema.add_partitions_to_txn.v3 import request as add_partitions
from kio.schema.end_txn.v3 import request as end_txn
from kio.schema.errors import ErrorCode
from kio.schema.find_coordinator.v4 import request as find_coordinator
from kio.schema.init_producer_id.v4 import request as init_producer_id
from kio.schema.txn_offset_commit.v3 import request as txn_offset_commit
from kio.schema.types import GroupId, ProducerId, TopicName, TransactionalId
from kio.static.primitive import i8, i16, i32, i64

from nemesis.workloads.kafka.group_offset_requests import Committed
from nemesis.workloads.kafka.group_requests import Membership
from nemesis.workloads.kafka.implicit_transactions import (
    ImplicitEndTxnRequest,
    ImplicitTxnOffsetCommitRequest,
)
from nemesis.workloads.kafka.timeouts import milliseconds

NO_PRODUCER: Final = -1
"""The producer id and the epoch of a producer that has none."""
_TRANSACTION: Final = i8(1)
"""The key type of FindCoordinator."""

TopicPartition = tuple[str, int]


class ProducerIdentity(NamedTuple):
    """Who sends a request about a transaction."""

    transactional_id: str
    producer_id: int
    epoch: int


def find_request(transactional_id: str) -> find_coordinator.FindCoordinatorRequest:
    """Ask which broker coordinates the transactional id."""
    return find_coordinator.FindCoordinatorRequest(
        key_type=_TRANSACTION, coordinator_keys=(transactional_id,)
    )


def init_request(
    producer: ProducerIdentity, transaction_timeout_ms: int
) -> init_producer_id.InitProducerIdRequest:
    """Ask for an id and an epoch; a producer that has both asks for its next epoch (KIP-360)."""
    return init_producer_id.InitProducerIdRequest(
        transactional_id=TransactionalId(producer.transactional_id),
        transaction_timeout=milliseconds(transaction_timeout_ms),
        producer_id=ProducerId(producer.producer_id),
        producer_epoch=cast("i16", producer.epoch),
    )


def add_partitions_request(
    producer: ProducerIdentity, tps: Iterable[TopicPartition]
) -> add_partitions.AddPartitionsToTxnRequest:
    """Add partitions to the transaction, which begins with the first."""
    return add_partitions.AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=TransactionalId(producer.transactional_id),
        v3_and_below_producer_id=ProducerId(producer.producer_id),
        v3_and_below_producer_epoch=cast("i16", producer.epoch),
        v3_and_below_topics=tuple(
            add_partitions.AddPartitionsToTxnTopic(
                name=cast("TopicName", topic), partitions=cast("tuple[i32, ...]", tuple(numbers))
            )
            for topic, numbers in _by_topic(tps).items()
        ),
    )


def add_offsets_request(
    producer: ProducerIdentity, group: str
) -> add_offsets.AddOffsetsToTxnRequest:
    """Add the offsets of a group to the transaction."""
    return add_offsets.AddOffsetsToTxnRequest(
        transactional_id=TransactionalId(producer.transactional_id),
        producer_id=ProducerId(producer.producer_id),
        producer_epoch=cast("i16", producer.epoch),
        group_id=GroupId(group),
    )


def commit_offsets_request(
    producer: ProducerIdentity,
    member: Membership,
    commits: Mapping[TopicPartition, Committed],
    *,
    is_implicit: bool,
) -> txn_offset_commit.TxnOffsetCommitRequest:
    """Commit offsets as a member of a group (KIP-447); they count once the transaction commits.

    ``is_implicit``: the coordinator adds the group to the transaction.
    """
    kind = (
        ImplicitTxnOffsetCommitRequest if is_implicit else txn_offset_commit.TxnOffsetCommitRequest
    )
    return kind(
        transactional_id=TransactionalId(producer.transactional_id),
        group_id=GroupId(member.group),
        generation_id=cast("i32", member.generation),
        member_id=member.member_id,
        group_instance_id=member.instance,
        producer_id=ProducerId(producer.producer_id),
        producer_epoch=cast("i16", producer.epoch),
        topics=tuple(
            txn_offset_commit.TxnOffsetCommitRequestTopic(
                name=cast("TopicName", topic),
                partitions=tuple(
                    txn_offset_commit.TxnOffsetCommitRequestPartition(
                        partition_index=cast("i32", number),
                        committed_offset=cast("i64", commits[topic, number].offset),
                        committed_leader_epoch=cast("i32", commits[topic, number].leader_epoch),
                        committed_metadata=commits[topic, number].text,
                    )
                    for number in numbers
                ),
            )
            for topic, numbers in _by_topic(commits).items()
        ),
    )


def end_request(
    producer: ProducerIdentity, *, is_commit: bool, is_implicit: bool
) -> end_txn.EndTxnRequest | ImplicitEndTxnRequest:
    """Commit or abort the transaction; ``is_implicit``: the answer has the producer's next epoch."""
    kind = ImplicitEndTxnRequest if is_implicit else end_txn.EndTxnRequest
    return kind(
        transactional_id=TransactionalId(producer.transactional_id),
        producer_id=ProducerId(producer.producer_id),
        producer_epoch=cast("i16", producer.epoch),
        committed=is_commit,
    )


def own_error(response: Any) -> ErrorCode:
    """Return the error of an answer that has one error only."""
    return cast("ErrorCode", response.error_code)


def added_error(response: Any) -> ErrorCode:
    """Return the first error of an AddPartitionsToTxn: no partition is added unless all are."""
    return _first_error(
        cast("ErrorCode", partition.partition_error_code)
        for topic in response.results_by_topic_v3_and_below
        for partition in topic.results_by_partition
    )


def committed_error(response: Any) -> ErrorCode:
    """Return the first error of a TxnOffsetCommit."""
    return _first_error(
        cast("ErrorCode", partition.error_code)
        for topic in response.topics
        for partition in topic.partitions
    )


def _first_error(errors: Iterable[ErrorCode]) -> ErrorCode:
    """Return the first error, one that says why before OPERATION_NOT_ATTEMPTED."""
    failed = [error for error in errors if error is not ErrorCode.none]
    reasons = [error for error in failed if error is not ErrorCode.operation_not_attempted]
    return next(iter([*reasons, *failed]), ErrorCode.none)


def _by_topic(tps: Iterable[TopicPartition]) -> dict[str, list[int]]:
    partitions: dict[str, list[int]] = defaultdict(list)
    for topic, partition in tps:
        partitions[topic].append(partition)
    return partitions
