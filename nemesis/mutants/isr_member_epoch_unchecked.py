"""A replica joins the ISR though it has been restarted since its leader saw it catch up.

The AlterPartition that proposes it was sent for its previous life; the new one may have lost what the old one had
(KIP-903, KAFKA-14617). Kafka's ZooKeeper mode never compared the broker epochs of ISR members.

Must be caught by: broker-epoch-fenced.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nemesis.mutants.base import Mutant, Replacement
from nemesis.reference.model import UNKNOWN_BROKER_EPOCH


def _any_incarnation(correct: Callable[..., bool]) -> Callable[..., bool]:
    def is_eligible(context: Any, topic_partition: Any, broker_id: int, _broker_epoch: int) -> bool:
        return correct(context, topic_partition, broker_id, UNKNOWN_BROKER_EPOCH)

    return is_eligible


MUTANT = Mutant(
    name="isr-member-epoch-unchecked",
    property="broker-epoch-fenced",
    summary="a replica joins the ISR for what its previous life had (KAFKA-14617, KIP-903)",
    replacements=(
        Replacement(
            "nemesis.reference.controller.alter_partition",
            "_is_eligible",
            _any_incarnation,
            is_comparable=True,
        ),
    ),
)
