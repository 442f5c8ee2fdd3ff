"""What a leader's log remembers of a producer while it verifies that a transaction has its partition (KIP-890).

A producer that begins a transaction in a log is verified first: the leader asks the transaction coordinator whether the
transaction has the partition. The answer may come late: after the marker of the transaction, when the producer has
begun another one without this partition. A batch that was appended then would belong to a transaction that never ends.
So the log makes a guard before the question, and the batch comes with the guard after the answer. Every transactional
batch in the log, a marker too, clears the guard: an answer from before the marker has no effect after it.

An entry also has the lowest sequence number that waits for verification. A higher one is refused, also if its own
verification was successful: else the lower one could never follow.

Source: kafka's VerificationStateEntry and VerificationGuard of Kafka 3.9.
"""

from __future__ import annotations

from dataclasses import dataclass, field


class VerificationGuard:
    """Stands for one verification; equal only to itself."""

    __slots__ = ()


@dataclass(slots=True, eq=False)
class VerificationStateEntry:
    """The verification of one producer."""

    created_ms: int
    lowest_sequence: int
    epoch: int
    guard: VerificationGuard = field(default_factory=VerificationGuard)

    def note_batch(self, sequence: int, epoch: int) -> None:
        """Another batch waits: the lowest sequence number of the highest epoch counts."""
        if epoch > self.epoch:
            self.epoch, self.lowest_sequence = epoch, sequence
        elif epoch == self.epoch:
            self.lowest_sequence = min(self.lowest_sequence, sequence)
