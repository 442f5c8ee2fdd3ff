"""Why both cannot be: what a broker has answered to a control request, and what it has done."""

from __future__ import annotations

from typing import Final

from nemesis.checkers.framework.reason import Case

_WITHOUT: Final = {
    "LeaderAndIsr": (
        "The controller now believes that the broker is leader or follower in that epoch. It sends no further "
        "request until the next change, and the broker refuses requests with that epoch."
    ),
    "StopReplica": (
        "The controller now believes that the replica no longer exists. So a deletion or reassignment ends, and the "
        "log stays."
    ),
    "UpdateMetadata": (
        "Until the next change, clients that ask this broker are sent to a former leader, or get no answer."
    ),
}


def control_requests_applied(case: Case) -> str:
    shown = "nothing" if len(case.events) == 1 else "another state"
    return (
        "A broker applies a control request before it answers without an error (NONE). This broker's trace of the "
        f"partition shows {shown}. The controller does not send the request again. "
        f"{_WITHOUT.get(case.events[-1].api or '', '')}"
    ).rstrip()
