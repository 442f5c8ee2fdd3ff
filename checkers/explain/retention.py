"""Why both cannot be: a broker that looks at its logs in each interval, and a segment that it should have deleted."""

from __future__ import annotations

from nemesis.checkers.framework.reason import Case


def retention_runs(case: Case) -> str:
    if case.is_undecided:
        return "The machine may have been too slow, so a segment that still exists proves nothing about the broker."
    return (
        "The broker checks all its logs once in each interval, and has run for a whole interval in which it had to "
        "delete this segment. Its files, read after it was stopped, still have the segment."
    )
