"""Why a vacant office is filled: every broker watches ``/controller``, also one that was the controller."""

from __future__ import annotations

from nemesis.checkers.framework.reason import Case


def controller_elected_in_time(case: Case) -> str:
    if case.is_undecided:
        return "On a machine that may have been late itself, a late election shows nothing about the brokers."
    return (
        "ZooKeeper tells every broker that watches /controller when the znode is gone, and each of them then tries to "
        "create it. A broker that does not try has stopped to watch it, or has not read it again."
    )
