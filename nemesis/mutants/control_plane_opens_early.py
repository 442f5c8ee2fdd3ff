"""A broker that starts serves control requests before it has registered.

Until then it has no broker epoch of its own, so it cannot tell what was said to its previous life: the check of
KIP-380 lets everything pass. The broker that was killed is still in ZooKeeper, under its old epoch, until its session
ends, and its controller goes on sending.

Must be caught by: broker-epoch-fenced.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nemesis.mutants.base import Mutant, Replacement


def _open_at_once(correct: Callable[..., None]) -> Callable[..., None]:
    def start(self: Any, *, opens: Any = None) -> None:
        del opens
        correct(self)

    return start


MUTANT = Mutant(
    name="control-plane-opens-early",
    property="broker-epoch-fenced",
    summary="a broker serves control requests before it has a broker epoch to tell old ones by (KIP-380)",
    replacements=(
        Replacement(
            "nemesis.reference.server.kafka_request_handler",
            "KafkaRequestHandlerPool.start",
            _open_at_once,
        ),
    ),
)
