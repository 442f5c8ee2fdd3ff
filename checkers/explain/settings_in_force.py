"""Why both cannot be: a setting that is in force, and a batch that was not judged by it."""

from __future__ import annotations

from nemesis.checkers.framework.reason import Case


def settings_take_effect(case: Case) -> str:
    if case.is_undecided:
        return (
            "The machine may have been too slow, so a late change proves nothing about the brokers."
        )
    return (
        "ZooKeeper informs each broker of the change, and a broker with a new session reads it. So the leader knew "
        "the new value, but used the old one for this batch."
    )
