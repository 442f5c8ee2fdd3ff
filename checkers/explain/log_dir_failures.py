"""Why both cannot be: a log directory that failed, and what still depends on it."""

from __future__ import annotations

from nemesis.checkers.framework.reason import Case
from nemesis.history.events import Kind


def log_dir_failures_handled(case: Case) -> str:
    if case.is_undecided:
        return "On a machine that may have been late itself, a delay shows nothing about broker and controller."
    if case.first_of(Kind.FAULT_HEALED) is not None:
        return "A broker that meets an error of its disk takes the whole directory offline, and reports it first."
    if case.first_of(Kind.ZNODE) is not None:
        return (
            "The broker answers KAFKA_STORAGE_ERROR for a replica without a log. The controller asks it after each "
            "notification, and takes such replicas out of the ISR."
        )
    if len(case.events) > 1:
        return "The broker takes all replicas of the directory offline in its next step, and serves none of them."
    return (
        "The broker stayed connected to ZooKeeper, and creates the notification as soon as ZooKeeper answers. The "
        "controller learns of the failure by nothing else."
    )
