"""A broker that registers anew, in a new session, goes on with the broker epoch of the old one.

The controller knows the new one and refuses every AlterPartition with STALE_BROKER_EPOCH: no ISR of a partition that
this broker leads changes any more. Control requests of the old epoch are not refused.

Must be caught by: convergence.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from nemesis.mutants.base import Mutant, Replacement
from nemesis.reference.model import UNKNOWN_BROKER_EPOCH

Register = Callable[[Any], Awaitable[None]]


def _keep_the_first(correct: Register) -> Register:
    async def register_broker(self: Any) -> None:
        first = self.broker_epoch
        await correct(self)
        if first != UNKNOWN_BROKER_EPOCH:
            self.broker_epoch = first

    return register_broker


MUTANT = Mutant(
    name="broker-epoch-kept",
    property="convergence",
    summary="a broker keeps the broker epoch of its first session when it registers in the next",
    replacements=(
        Replacement(
            "nemesis.reference.controller.kafka_controller",
            "KafkaController._register_broker",
            _keep_the_first,
        ),
    ),
)
