"""A controller handles the notifications of failed log directories, and leaves them in ZooKeeper.

Each later notification is then handled together with all earlier ones: the controller asks brokers again that have long
been repaired, and ``/log_dir_event_notification`` grows until it is too large to be read. Kafka deletes what it has
handled, and what it finds at a failover (KIP-112).

Must be caught by: notifications-handled.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nemesis.mutants.base import Mutant, Replacement


def _nothing(_correct: Any) -> Callable[..., Any]:
    async def delete(*_arguments: Any) -> None:
        return

    return delete


MUTANT = Mutant(
    name="log-dir-events-left",
    property="notifications-handled",
    summary="a controller handles notifications of failed log directories and does not delete them",
    replacements=(
        Replacement(
            "nemesis.reference.controller.log_dir_failures",
            "LogDirFailures._delete",
            _nothing,
        ),
    ),
    scenario="disk-faults",
)
