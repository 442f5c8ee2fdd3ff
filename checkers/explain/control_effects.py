"""Why both cannot be: what a broker has answered to a control request, and what it has done."""

from __future__ import annotations

from typing import Final

from nemesis.checkers.framework.reason import Case

_WITHOUT: Final = {
    "LeaderAndIsr": (
        "The controller takes the broker for the leader or a follower of that epoch. Requests that name the epoch are "
        "fenced or refused, and nothing more is sent until the next change."
    ),
    "StopReplica": (
        "The controller goes on as if the replica were gone: a deletion or reassignment ends, and the log stays."
    ),
    "UpdateMetadata": (
        "Clients that ask this broker are sent to a past leader, or get no answer, until the next change."
    ),
}


def control_requests_applied(case: Case) -> str:
    shown = "nothing" if len(case.events) == 1 else "another state"
    return (
        f"A broker applies a control request before it answers NONE. This broker's own record of the partition shows "
        f"{shown}, and a controller does not send again what is answered NONE. "
        f"{_WITHOUT.get(case.events[-1].api or '', '')}"
    ).rstrip()
