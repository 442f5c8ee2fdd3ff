"""Why a request that is left without an answer is a fault of the broker."""

from __future__ import annotations

from nemesis.checkers.framework.reason import Case


def requests_answered(case: Case) -> str:
    if case.is_undecided:
        return "The machine may have been too slow, so a missing answer proves nothing about the broker."
    return (
        "A broker answers each request, at the latest when the time has passed that the request gave it. No fault was "
        "in force between the request and the moment at which the client gave up. So the broker lost the request or "
        "its answer."
    )
