"""A truncation that removes no records leaves epochs without records where they are.

The follower then names an epoch that the leader never had, is told where the one before ends, which is where its log
ends already, truncates nothing, and names the same epoch again (KAFKA-10706, mended in 2.6.1 and 2.7): it never comes
to fetch.

Must be caught by: convergence.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nemesis.mutants.base import Mutant, Replacement


def _with_records_only(correct: Any) -> Callable[[Any, int], bool]:
    def truncate_to(self: Any, offset: int) -> bool:
        return bool(offset < self.log_end_offset and correct(self, offset))

    return truncate_to


MUTANT = Mutant(
    name="empty-epoch-kept",
    property="convergence",
    summary="a truncation without records to remove keeps epochs that the leader contradicts (KAFKA-10706)",
    replacements=(Replacement("nemesis.reference.log.log", "Log.truncate_to", _with_records_only),),
)
