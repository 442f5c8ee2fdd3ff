"""A transactional id: its producer, the state of its transaction, and the transition that is on its way to the log.

Each change has two steps. A ``prepare_…`` method returns the transition and notes its state as pending: no other one
begins meanwhile. ``complete_transition`` takes it over once the log has it.

A producer's epoch rises with each InitProducerId. The last epoch is known while the producer itself asked for the
raise: so a request that is sent again is answered with the same epoch, and does not fence its own producer (KIP-360).

Source: kafka.coordinator.transaction.TransactionMetadata of Kafka 3.9.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, NamedTuple

from nemesis.reference.coordinator.transaction.transaction_states import (
    COMPLETE,
    IDLE,
    PREPARED,
    PREVIOUS,
    TransactionState,
)
from nemesis.reference.model import TopicPartition

NO_PRODUCER_ID: Final = -1
NO_PRODUCER_EPOCH: Final = -1
NO_TIMESTAMP: Final = -1
_MAX_EPOCH: Final = (1 << 15) - 1


class IllegalTransitionError(RuntimeError):
    """A transaction was to make a transition that its state does not allow: a bug of the coordinator."""


class ProducerIdAndEpoch(NamedTuple):
    """What a producer has when it asks again."""

    producer_id: int
    epoch: int


class Transition(NamedTuple):
    """What becomes of a transactional id. Times in ms since 1970, −1: none; the time-out in ms."""

    producer_id: int
    last_producer_id: int
    producer_epoch: int
    last_producer_epoch: int
    timeout_ms: int
    state: TransactionState
    partitions: frozenset[TopicPartition]
    start_timestamp: int
    last_update_timestamp: int


@dataclass(slots=True, eq=False)
class TransactionMetadata:
    """Fields as in ``Transition``."""

    transactional_id: str
    producer_id: int
    timeout_ms: int
    last_update_timestamp: int
    producer_epoch: int = NO_PRODUCER_EPOCH
    last_producer_id: int = NO_PRODUCER_ID
    last_producer_epoch: int = NO_PRODUCER_EPOCH
    state: TransactionState = TransactionState.EMPTY
    partitions: frozenset[TopicPartition] = frozenset()
    """Of the transaction; of a decided one, those without a marker."""
    start_timestamp: int = NO_TIMESTAMP
    pending_state: TransactionState | None = None
    """Of the transition that is on its way to the log."""
    has_failed_epoch_fence: bool = False
    """Whether an epoch was raised and perhaps not written: the next fence need not raise it again."""

    @property
    def is_in_transition(self) -> bool:
        return self.pending_state is not None

    @property
    def is_epoch_exhausted(self) -> bool:
        return is_exhausted(self.producer_epoch)

    def is_timed_out(self, now_ms: int) -> bool:
        """Whether the transaction has been open for longer than its producer allows."""
        return (
            self.state is TransactionState.ONGOING
            and not self.is_in_transition
            and self.start_timestamp + self.timeout_ms < now_ms
        )

    def is_expired(self, now_ms: int, expiration_ms: int) -> bool:
        """Whether the transactional id has had no transaction for that long."""
        return (
            self.state in IDLE
            and not self.is_in_transition
            and self.last_update_timestamp <= now_ms - expiration_ms
        )

    def may_initialize(self, expected: ProducerIdAndEpoch) -> bool:
        """Whether a producer that has this id is the present one, or was it until its epochs were exhausted."""
        return (
            self.producer_epoch == NO_PRODUCER_EPOCH
            or expected.producer_id == self.producer_id
            or (expected.producer_id == self.last_producer_id and is_exhausted(expected.epoch))
        )

    def remove_partitions(self, partitions: Iterable[TopicPartition]) -> None:
        """Note that partitions of a decided transaction have their markers."""
        if self.state not in PREPARED:
            raise IllegalTransitionError(f"{self}: a marker is written in this state")
        self.partitions -= frozenset(partitions)

    # Preparing

    def prepare_increment_producer_epoch(
        self, timeout_ms: int, expected_epoch: int | None, now_ms: int
    ) -> Transition | None:
        """Raise the epoch; None if the producer with the expected epoch is fenced."""
        if self.is_epoch_exhausted:
            raise IllegalTransitionError(f"{self}: the epochs are exhausted")
        raised = self.producer_epoch + 1
        if expected_epoch is None:
            epochs = raised, NO_PRODUCER_EPOCH
        elif self.producer_epoch in (NO_PRODUCER_EPOCH, expected_epoch):
            epochs = raised, self.producer_epoch
        elif expected_epoch == self.last_producer_epoch:
            # The answer to the raise was lost. Another producer would have removed the last epoch.
            epochs = self.producer_epoch, self.last_producer_epoch
        else:
            return None
        return self._prepare_empty(self.producer_id, *epochs, timeout_ms, now_ms)

    def prepare_producer_id_rotation(
        self, producer_id: int, timeout_ms: int, now_ms: int, *, records_last_epoch: bool
    ) -> Transition:
        """Take a new producer id, with epoch 0."""
        last_epoch = self.producer_epoch if records_last_epoch else NO_PRODUCER_EPOCH
        return self._prepare_empty(producer_id, 0, last_epoch, timeout_ms, now_ms)

    def _prepare_empty(
        self, producer_id: int, epoch: int, last_epoch: int, timeout_ms: int, now_ms: int
    ) -> Transition:
        state, none = TransactionState.EMPTY, frozenset[TopicPartition]()
        return self._prepare(
            Transition(
                producer_id,
                self.producer_id,
                epoch,
                last_epoch,
                timeout_ms,
                state,
                none,
                NO_TIMESTAMP,
                now_ms,
            )
        )

    def prepare_fence_producer_epoch(self) -> Transition:
        """Raise the epoch of a producer whose transaction is to be aborted."""
        if self.producer_epoch == _MAX_EPOCH:
            raise IllegalTransitionError(f"{self}: there is not a higher epoch")
        epoch = self.producer_epoch + (0 if self.has_failed_epoch_fence else 1)
        return self._prepare(
            self._unchanged(TransactionState.PREPARE_EPOCH_FENCE)._replace(
                producer_epoch=epoch, last_producer_epoch=NO_PRODUCER_EPOCH
            )
        )

    def adopt_fenced_epoch(self, epoch: int) -> None:
        """Go from the fence to the abort that it is for: the epoch counts, and the abort is prepared next."""
        self.pending_state = None
        self.producer_epoch = epoch
        self.last_producer_epoch = NO_PRODUCER_EPOCH

    def prepare_add_partitions(
        self, partitions: frozenset[TopicPartition], now_ms: int
    ) -> Transition:
        start = now_ms if self.state in IDLE else self.start_timestamp
        return self._prepare(
            self._unchanged(TransactionState.ONGOING)._replace(
                partitions=self.partitions | partitions,
                start_timestamp=start,
                last_update_timestamp=now_ms,
            )
        )

    def prepare_decision(self, *, is_commit: bool, now_ms: int) -> Transition:
        decided = TransactionState.PREPARE_COMMIT if is_commit else TransactionState.PREPARE_ABORT
        return self._prepare(self._unchanged(decided)._replace(last_update_timestamp=now_ms))

    def prepare_complete(self, now_ms: int) -> Transition:
        is_commit = self.state is TransactionState.PREPARE_COMMIT
        complete = (
            TransactionState.COMPLETE_COMMIT if is_commit else TransactionState.COMPLETE_ABORT
        )
        # The abort is in the log, and with it the raised epoch.
        self.has_failed_epoch_fence = False
        return self._prepare(
            self._unchanged(complete)._replace(partitions=frozenset(), last_update_timestamp=now_ms)
        )

    def prepare_dead(self) -> Transition:
        return self._prepare(
            self._unchanged(TransactionState.DEAD)._replace(partitions=frozenset())
        )

    def as_stored(self) -> Transition:
        """Return the present state as the log has it."""
        return self._unchanged(self.state)

    def _unchanged(self, state: TransactionState) -> Transition:
        return Transition(
            self.producer_id,
            self.producer_id,
            self.producer_epoch,
            self.last_producer_epoch,
            self.timeout_ms,
            state,
            self.partitions,
            self.start_timestamp,
            self.last_update_timestamp,
        )

    def _prepare(self, transition: Transition) -> Transition:
        state = transition.state
        if self.pending_state is not None or self.state not in PREVIOUS[state]:
            raise IllegalTransitionError(f"{self}: {state.value} may not follow")
        self.pending_state = state
        return transition

    # Completing

    def complete_transition(self, transition: Transition) -> None:
        """Take over a transition that is in the log."""
        if self.pending_state is not transition.state or not self._is_expected(transition):
            raise IllegalTransitionError(f"{self}: {transition} is in the log")
        self.producer_id = transition.producer_id
        self.producer_epoch = transition.producer_epoch
        self.timeout_ms = transition.timeout_ms
        self.start_timestamp = transition.start_timestamp
        self.last_update_timestamp = transition.last_update_timestamp
        self.partitions = transition.partitions
        if transition.state is TransactionState.EMPTY:
            self.last_producer_id = transition.last_producer_id
            self.last_producer_epoch = transition.last_producer_epoch
        self.state = transition.state
        self.pending_state = None

    def _is_expected(self, transition: Transition) -> bool:
        if transition.state is TransactionState.EMPTY:
            return self._is_expected_producer(transition)
        if (
            transition.producer_id != self.producer_id
            or transition.producer_epoch != self.producer_epoch
            or transition.timeout_ms != self.timeout_ms
        ):
            return False
        if transition.state is TransactionState.ONGOING:
            return self.partitions <= transition.partitions
        if transition.state in PREPARED:
            return self.partitions == transition.partitions
        return transition.state in COMPLETE and transition.start_timestamp != NO_TIMESTAMP

    def _is_expected_producer(self, transition: Transition) -> bool:
        if transition.producer_id == self.producer_id:
            return 0 <= transition.producer_epoch - self.producer_epoch <= 1
        return transition.producer_epoch == 0


def is_exhausted(epoch: int) -> bool:
    """Whether a producer needs a new id: the highest epoch is left for a fence."""
    return epoch >= _MAX_EPOCH - 1
