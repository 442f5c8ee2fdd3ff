"""A leader that writes its ISR itself does not compare the state that it replaces.

Before AlterPartition the version of the state znode was all that kept a leader of the past from undoing an election
(Kafka wrote the ISR with ``conditionalUpdatePath`` for that; the loop of KAFKA-2729, "Cached zkVersion not equal", is
what it looks like when it works). Who has not heard yet that another leader epoch has begun writes the old one back.

Must be caught by: leader-epoch-grows.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from nemesis.mutants.base import Mutant, Replacement

ANY_VERSION = -1


def _unconditionally(correct: Callable[..., Awaitable[None]]) -> Callable[..., Awaitable[None]]:
    async def attempt(
        self: Any, path: str, data: bytes, _version: int, controller_epoch: int
    ) -> None:
        await correct(self, path, data, ANY_VERSION, controller_epoch)

    return attempt


MUTANT = Mutant(
    name="isr-written-unconditionally",
    property="leader-epoch-grows",
    summary="a leader writes its ISR without comparing the state that it replaces, and so undoes elections",
    replacements=(
        Replacement(
            "nemesis.reference.zk.replication_utils", "ReplicationUtils._attempt", _unconditionally
        ),
    ),
    scenario="isr-by-zookeeper",
)
