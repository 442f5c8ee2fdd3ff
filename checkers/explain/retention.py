"""Why both cannot be: a broker that looks at its logs in each interval, and a segment that it should have deleted."""

from __future__ import annotations

from nemesis.checkers.framework.reason import Case


def retention_runs(case: Case) -> str:
    if case.is_undecided:
        return "On a machine that may have been late itself, a segment that is left shows nothing about the broker."
    return (
        "The broker looks at all its logs in each interval, and lived for a whole one in which this segment was to be "
        "deleted. Its files, read after it was stopped, still hold the segment."
    )
