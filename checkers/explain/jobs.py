"""Why a turn of a job cannot come at that time: a scheduler counts the interval from the turn before."""

from __future__ import annotations

from nemesis.checkers.framework.reason import Case


def jobs_on_time(case: Case) -> str:
    if case.is_undecided:
        return (
            "The machine may have been too slow, so a late start proves nothing about the broker."
        )
    return (
        "The job runs again one interval after its last run has ended. The broker measures the interval with the "
        "same clock as the times of these events. So the next run must begin at that time, not earlier and not much "
        "later."
    )
