"""Why a member that lags has to go: the leader looks at its followers every half of the lag time."""

from __future__ import annotations

from nemesis.checkers.framework.reason import Case


def isr_shrinks_in_time(case: Case) -> str:
    if case.is_undecided:
        return "On a machine that may have been late itself, a late proposal shows nothing about the leader."
    return (
        "A follower states the end of its log with each fetch, so the leader cannot have seen it caught up meanwhile. "
        "The leader led, no change of its ISR was in flight, and it looks at its followers every half of the lag time."
    )
