"""The states of a transactional id, and which may follow which.

Source: kafka.coordinator.transaction.TransactionState of Kafka 3.9.
"""

from __future__ import annotations

from enum import Enum
from typing import Final


class TransactionState(Enum):
    """Named as DescribeTransactions and ListTransactions name them."""

    EMPTY = "Empty"
    """No transaction yet."""
    ONGOING = "Ongoing"
    """The transaction has partitions."""
    PREPARE_COMMIT = "PrepareCommit"
    """The commit is decided; markers are on their way."""
    PREPARE_ABORT = "PrepareAbort"
    """The abort is decided; markers are on their way."""
    COMPLETE_COMMIT = "CompleteCommit"
    COMPLETE_ABORT = "CompleteAbort"
    DEAD = "Dead"
    """The transactional id has expired. Never in the log."""
    PREPARE_EPOCH_FENCE = "PrepareEpochFence"
    """The epoch is raised to fence the producer of an open transaction. Never in the log."""


_S = TransactionState
IDS: Final = {state: number for number, state in enumerate(TransactionState)}
"""How the log names a state."""
PREPARED: Final = frozenset({_S.PREPARE_COMMIT, _S.PREPARE_ABORT})
COMPLETE: Final = frozenset({_S.COMPLETE_COMMIT, _S.COMPLETE_ABORT})
IDLE: Final = COMPLETE | {_S.EMPTY}
"""A transactional id in one of these has no transaction, and may expire."""
PREVIOUS: Final = {
    _S.EMPTY: IDLE,
    _S.ONGOING: IDLE | {_S.ONGOING},
    _S.PREPARE_COMMIT: frozenset({_S.ONGOING}),
    _S.PREPARE_ABORT: frozenset({_S.ONGOING, _S.PREPARE_EPOCH_FENCE}),
    _S.COMPLETE_COMMIT: frozenset({_S.PREPARE_COMMIT}),
    _S.COMPLETE_ABORT: frozenset({_S.PREPARE_ABORT}),
    _S.DEAD: IDLE,
    _S.PREPARE_EPOCH_FENCE: frozenset({_S.ONGOING}),
}
"""The states from which each may be entered."""
