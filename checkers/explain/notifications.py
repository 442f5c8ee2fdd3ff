"""Why both cannot be: a controller that has handled what it was notified of, and a notification that stays."""

from __future__ import annotations

from nemesis.checkers.framework.reason import Case
from nemesis.history.events import Kind


def notifications_handled(case: Case) -> str:
    if case.events[-1].kind == Kind.CONTROLLER_FAILOVER:
        return (
            "A failover reads the notifications that are there, and deletes them before it ends: what it does next "
            "covers them. The broker reported that its failover had ended."
        )
    return (
        "ZooKeeper reports the new znode to the controller that watches its parent. The controller did not lose its "
        "session, and handles one event after the other; none of them waits longer than a session may be silent."
    )
