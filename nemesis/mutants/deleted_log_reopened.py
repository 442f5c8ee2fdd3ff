"""A deleted replica's log keeps its name until it is removed, and a topic of the same name takes it for its own.

Kafka renames the directory first (KAFKA-3751 made the deletion itself late), and since KIP-516 it would notice that the
log belongs to another topic id; here it does neither, and the removal comes too late.

Must be caught by: earlier-life-read.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nemesis.mutants.base import Mutant, Replacement

NOTHING = "nothing-to-remove"


def _forget_only(_correct: Any) -> Callable[[Any, Any], str]:
    def rename_to_delete(directory: Any, topic_partition: Any) -> str:
        logs = directory.logs if topic_partition in directory.logs else directory.future_logs
        logs.pop(topic_partition).close()
        return f"{directory.path}/{NOTHING}"

    return rename_to_delete


def _whatever_it_was(correct: Any) -> Callable[[Any, Any], None]:
    def assign_topic_id(self: Any, topic_id: Any) -> None:
        self._topic_id = None
        correct(self, topic_id)

    return assign_topic_id


MUTANT = Mutant(
    name="deleted-log-reopened",
    property="earlier-life-read",
    summary="a topic that is created again takes over the log of the one that was deleted (KAFKA-3751)",
    replacements=(
        Replacement(
            "nemesis.reference.log.log_directory", "LogDirectory.rename_to_delete", _forget_only
        ),
        Replacement("nemesis.reference.log.log", "Log.assign_topic_id", _whatever_it_was),
    ),
    scenario="topics",
)
