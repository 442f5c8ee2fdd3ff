"""A cleaner that finds nothing to clean ends.

A broker cleans its logs until none is dirty enough, and never again: compacted topics grow without bound. The threads
of Kafka's cleaner have died in several ways, and brokers went on without them (KAFKA-3894).

Must be caught by: compaction-runs.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from nemesis.mutants.base import Mutant, Replacement


def _until_idle(_correct: Any) -> Callable[..., Awaitable[None]]:
    async def _run(self: Any, _name: str) -> None:
        while await self.clean_filthiest_log():
            pass

    return _run


MUTANT = Mutant(
    name="cleaner-ends-when-idle",
    property="compaction-runs",
    summary="a cleaner that finds nothing to clean ends (KAFKA-3894)",
    replacements=(
        Replacement("nemesis.reference.log.log_cleaner", "LogCleaner._run", _until_idle),
    ),
    scenario="log-compaction",
)
