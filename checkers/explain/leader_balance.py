"""Why both cannot be: a controller that looks at the balance in its interval, and a partition that waits longer."""

from __future__ import annotations

from nemesis.checkers.framework.reason import Case


def leaders_balanced(case: Case) -> str:
    if case.is_undecided:
        return "The machine may have been too slow, so a late election proves nothing about the controller."
    return (
        "The controller checks the leaders of all partitions after each leader.imbalance.check.interval.seconds. The "
        "same broker was controller all the time, and no other task of a controller takes longer than a session "
        "time-out."
    )
