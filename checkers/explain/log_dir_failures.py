"""Why both cannot be: a log directory that failed, and what still depends on it."""

from __future__ import annotations

from nemesis.checkers.framework.reason import Case
from nemesis.history.events import Kind


def log_dir_failures_handled(case: Case) -> str:
    if case.is_undecided:
        return "The machine may have been too slow, so a delay proves nothing about broker and controller."
    if case.first_of(Kind.FAULT_HEALED) is not None:
        return "After an error of its disk, a broker takes the whole log directory offline, and records that."
    if case.first_of(Kind.ZNODE) is not None:
        return (
            "After the broker's notification the controller sends it LeaderAndIsr. The broker answers "
            "KAFKA_STORAGE_ERROR for replicas in the failed directory, and the controller must remove these replicas "
            "from the ISR."
        )
    if len(case.events) > 1:
        return "The broker must take all replicas of the directory offline at once, and serve none of them."
    return (
        "The broker was connected to ZooKeeper all the time, so it must create the notification at once. The "
        "controller does not learn of the failure in any other way."
    )
