"""Why both cannot be: a leader that answers the first record from a time on, and another batch."""

from __future__ import annotations

from nemesis.checkers.framework.reason import Case


def times_answered(case: Case) -> str:
    batch, answer = case.events[-1], case.events[1]
    if (batch.max_timestamp or 0) < (answer.wall_ms or 0):
        return "The answered record is older than the requested time, as the broker's own files have it."
    return (
        "The broker had that batch when it was asked, and its records are not older than the requested time. A "
        "consumer that begins where the broker says never sees them."
    )
