"""A replica that moved to another log directory has lost the leader epochs without records (KAFKA-15608)."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from nemesis.mutants.base import Mutant, Replacement


def wrong(correct: Any) -> Callable[[Any, Any], Any]:
    def replace_current(self: Any, current: Any) -> Any:
        known = {entry.epoch for entry in self._future_of(current).leader_epoch_cache.entries}
        entries = [entry for entry in current.leader_epoch_cache.entries if entry.epoch in known]
        about = {name: getattr(current, name) for name in ("topic_partition", "log_dir")}
        return correct(
            self, SimpleNamespace(**about, leader_epoch_cache=SimpleNamespace(entries=entries))
        )

    return replace_current


MUTANT = Mutant(
    name="epochs-lost-in-move",
    property="log-files-agree",
    summary="a replica that moved to another log directory has lost the leader epochs without records (KAFKA-15608)",
    replacements=(
        Replacement(
            "nemesis.reference.log.future_logs",
            "FutureLogs.replace_current",
            wrong,
        ),
    ),
    scenario="log-dirs",
)
