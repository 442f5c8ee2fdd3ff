"""A commit of offsets is acknowledged once the coordinator's own log has it.

The other replicas may not have it yet: when the coordinator fails, its successor answers an older offset.

Must be caught by: offsets-read-as-committed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nemesis.mutants.base import Mutant, Replacement

_OWN_LOG = 1


def _early(correct: Callable[..., Any]) -> Callable[..., Any]:
    def append_records(self: Any, **arguments: Any) -> Any:
        origin = arguments.get("origin")
        is_commit = origin is not None and origin.name == "COORDINATOR"
        if is_commit and arguments["acks"] < 0:
            arguments["acks"] = _OWN_LOG
        return correct(self, **arguments)

    return append_records


MUTANT = Mutant(
    name="commits-acknowledged-early",
    property="offsets-read-as-committed",
    summary="a commit of offsets is acknowledged before the in-sync replicas have it",
    replacements=(
        Replacement(
            "nemesis.reference.server.record_appends", "RecordAppends.append_records", _early
        ),
    ),
    scenario="groups",
)
"""The bug."""
