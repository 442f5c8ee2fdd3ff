"""With ISR changes by ZooKeeper the controller never learns of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nemesis.mutants.base import Mutant, Replacement


def wrong(correct: Any) -> Callable[[Any], Any]:
    async def maybe_propagate_isr_changes(self: Any) -> None:
        self._isr_change_set = {}

    del correct
    return maybe_propagate_isr_changes


MUTANT = Mutant(
    name="isr-changes-unreported",
    property="metadata-answered",
    summary="with ISR changes by ZooKeeper the controller never learns of them",
    replacements=(
        Replacement(
            "nemesis.reference.server.zk_alter_partition_manager",
            "ZkAlterPartitionManager.maybe_propagate_isr_changes",
            wrong,
        ),
    ),
    scenario="isr-by-zookeeper",
)
"""The bug."""
