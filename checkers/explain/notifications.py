"""Why both cannot be: a controller that has handled what it was notified of, and a notification that stays."""

from __future__ import annotations

from nemesis.checkers.framework.reason import Case
from nemesis.history.events import Kind


def notifications_handled(case: Case) -> str:
    if case.events[-1].kind == Kind.CONTROLLER_FAILOVER:
        return (
            "During its failover, a new controller reads all notifications that exist and deletes them. This broker "
            "recorded that its failover had ended, but the notification still existed."
        )
    return (
        "The controller watches the parent znode, so ZooKeeper informs it of the notification. The controller did "
        "not lose its session, and no other task of a controller takes longer than a session time-out. So it must "
        "have handled the notification."
    )
