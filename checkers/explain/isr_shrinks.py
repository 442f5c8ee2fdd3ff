"""Why a member that lags has to go: the leader looks at its followers every half of the lag time."""

from __future__ import annotations

from nemesis.checkers.framework.reason import Case


def isr_shrinks_in_time(case: Case) -> str:
    if case.is_undecided:
        return "The machine may have been too slow, so a late proposal proves nothing about the leader."
    return (
        "A leader checks its followers after each half of replica.lag.time.max.ms. The follower's fetches showed "
        "that it lagged behind. Meanwhile the leader was leader, and no change of its ISR was under way. So it must "
        "propose an ISR without the follower."
    )
