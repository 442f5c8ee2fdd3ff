"""Why a turn of a job cannot come at that time: a scheduler counts the interval from the turn before."""

from __future__ import annotations

from nemesis.checkers.framework.reason import Case


def jobs_on_time(case: Case) -> str:
    if case.is_undecided:
        return "On a machine that may have been late itself, a late turn shows nothing about the broker."
    return (
        "The broker counts the interval from the end of a turn, by the clock that also dates these events. So the next "
        "turn cannot begin earlier, and nothing keeps it from beginning then."
    )
