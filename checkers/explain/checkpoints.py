"""Why both cannot be: a broker that writes checkpoints in each interval, and an old one."""

from __future__ import annotations

from nemesis.checkers.framework.reason import Case


def checkpoints_kept(case: Case) -> str:
    if case.is_undecided:
        return "On a machine that may have been late itself, an old checkpoint shows nothing about the broker."
    return (
        "The broker writes its checkpoints in each interval, lived for a whole one since, and what it had only grew. A "
        "broker that was killed now would start with what the file has."
    )
