"""A broker that finds ``/brokers/ids/N`` takes it for its own registration.

It may be that of its previous life, whose session has not ended yet. When it ends, the broker lives and is not
registered, for good. Kafka had it for broker and controller znodes in several shapes: KAFKA-7165 and ZOOKEEPER-2985 (up
to 2.1, mended in 2.2), KAFKA-14845 (never mended).

Must be caught by: convergence.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from nemesis.mutants.base import Mutant, Replacement


def _whosever_it_is(_correct: Any) -> Callable[[Any, str], Awaitable[Any]]:
    async def own_or_gone(self: Any, path: str) -> Any:
        return await self._session.exists(path)

    return own_or_gone


MUTANT = Mutant(
    name="registration-of-a-dead-session",
    property="convergence",
    summary="a broker takes the registration of its previous session for its own (KAFKA-7165, KAFKA-14845)",
    replacements=(
        Replacement(
            "nemesis.reference.zk.broker_znodes", "BrokerZnodes._own_or_gone", _whosever_it_is
        ),
    ),
)
