"""The in-sync replicas of a partition as its leader sees them: committed, or with one change in flight.

The *committed* ISR is what the controller, or ZooKeeper, last confirmed. While a change is in flight nobody knows
whether it has been applied already, so the leader counts on the *maximal* ISR for everything that must be safe:
with an expansion the new member counts at once, with a shrink the old one counts until the answer is here
(KIP-497).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol
from uuid import UUID

from kio.schema.errors import ErrorCode

from nemesis.reference.model import LeaderAndIsr, LeaderRecoveryState, TopicPartition


@dataclass(frozen=True, slots=True)
class CommittedPartitionState:
    """No change in flight."""

    isr: frozenset[int] = frozenset()
    leader_recovery_state: LeaderRecoveryState = LeaderRecoveryState.RECOVERED

    @property
    def maximal_isr(self) -> frozenset[int]:
        return self.isr


@dataclass(frozen=True, slots=True)
class PendingPartitionState:
    """One change is in flight; compared by identity, since an equal later proposal is another one."""

    last_committed: CommittedPartitionState
    proposed_isr: frozenset[int]

    @property
    def isr(self) -> frozenset[int]:
        return self.last_committed.isr

    @property
    def maximal_isr(self) -> frozenset[int]:
        return self.isr | self.proposed_isr

    @property
    def change(self) -> str:
        return "expand" if self.proposed_isr > self.isr else "shrink"


PartitionState = CommittedPartitionState | PendingPartitionState


@dataclass(frozen=True, slots=True)
class AlterPartitionItem:
    """One proposed ISR. Pairs of ``new_isr`` are (broker id, broker epoch or −1).

    ``controller_epoch`` is that of the controller that made this broker the leader.
    """

    topic_partition: TopicPartition
    topic_id: UUID | None
    leader_epoch: int
    new_isr: tuple[tuple[int, int], ...]
    leader_recovery_state: LeaderRecoveryState
    partition_epoch: int
    controller_epoch: int


AlterPartitionCallback = Callable[[ErrorCode, LeaderAndIsr | None], None]
"""Called once, on the loop: with NONE and the committed state, or with an error and None."""


class AlterPartitionSubmitter(Protocol):
    """Carries proposals to where they are decided; ``nemesis.reference.server.alter_partition_manager`` says where
    that is."""

    def submit(self, item: AlterPartitionItem, callback: AlterPartitionCallback) -> bool:
        """Queue ``item``; False if one of this partition is still on its way (then the callback is never called)."""
