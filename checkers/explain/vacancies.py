"""Why a vacant office is filled: every broker watches ``/controller``, also one that was the controller."""

from __future__ import annotations

from nemesis.checkers.framework.reason import Case


def controller_elected_in_time(case: Case) -> str:
    if case.is_undecided:
        return "The machine may have been too slow, so a late election proves nothing about the brokers."
    return (
        "Each broker watches /controller. When the znode is deleted, ZooKeeper informs the brokers, and each must "
        "try to create it. No broker did in time."
    )
