"""Why both cannot be: a setting that is in force, and a batch that was not judged by it."""

from __future__ import annotations

from nemesis.checkers.framework.reason import Case


def settings_take_effect(case: Case) -> str:
    if case.is_undecided:
        return "On a machine that may have been late itself, a late change shows nothing about the brokers."
    return (
        "ZooKeeper notifies every broker of the change, and a broker that lost its session reads it in the next one. "
        "The leader judged the batch by a value that the topic no longer has."
    )
