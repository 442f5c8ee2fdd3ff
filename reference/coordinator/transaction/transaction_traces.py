"""What a coordinator traces of transactions: an event for each partition that a transaction includes."""

from __future__ import annotations

from collections.abc import Iterable

from nemesis.reference.coordinator.transaction.transaction_metadata import Transition
from nemesis.reference.coordinator.transaction.transaction_states import TransactionState
from nemesis.reference.model import TopicPartition
from nemesis.reference.trace import ABORT, COMMIT, Kind, Tracer


class TransactionTraces:
    """Events are written once the transition is in the log of the coordinator."""

    def __init__(self, tracer: Tracer) -> None:
        self._tracer = tracer

    def partitions_added(
        self, coordinator_epoch: int, transition: Transition, partitions: Iterable[TopicPartition]
    ) -> None:
        """Record that a transaction includes these partitions."""
        for topic, partition in sorted(partitions):
            self._tracer.event(
                Kind.TRANSACTION_PARTITION_ADDED,
                topic=topic,
                partition=partition,
                producer_id=transition.producer_id,
                producer_epoch=transition.producer_epoch,
                coordinator_epoch=coordinator_epoch,
                timeout_ms=transition.timeout_ms,
            )

    def completed(
        self, coordinator_epoch: int, transition: Transition, partitions: Iterable[TopicPartition]
    ) -> None:
        """Record that a transaction is complete, which had these partitions."""
        is_commit = transition.state is TransactionState.COMPLETE_COMMIT
        for topic, partition in sorted(partitions):
            self._tracer.event(
                Kind.TRANSACTION_COMPLETED,
                topic=topic,
                partition=partition,
                producer_id=transition.producer_id,
                producer_epoch=transition.producer_epoch,
                coordinator_epoch=coordinator_epoch,
                outcome=COMMIT if is_commit else ABORT,
            )
