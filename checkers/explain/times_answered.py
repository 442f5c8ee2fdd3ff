"""Why both cannot be: a leader that answers the first record from a time on, and another batch."""

from __future__ import annotations

from nemesis.checkers.framework.reason import Case


def times_answered(case: Case) -> str:
    batch, answer = case.events[-1], case.events[1]
    if (batch.max_timestamp or 0) < (answer.wall_ms or 0):
        return (
            "By the broker's own files, the record in the answer is older than the requested time."
        )
    return (
        "The broker had an earlier batch whose records are not older than the requested time. A consumer that begins "
        "at the answered offset never gets them."
    )
