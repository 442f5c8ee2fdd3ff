"""Why both cannot be: two leaders of a quorum in one epoch, and a committed record that is gone."""

from __future__ import annotations

from nemesis.checkers.framework.reason import Case
from nemesis.history.events import Kind


def one_quorum_leader(_case: Case) -> str:
    return "A voter votes once in an epoch, so two candidates cannot both have the votes of a majority."


def quorum_commits_stay(case: Case) -> str:
    if case.events[-1].kind == Kind.ZNODE:
        return (
            "The first record of a new leader comes behind all that was committed: the new leader has replaced a "
            "record that a majority had."
        )
    return (
        "What is below a high watermark is committed. A new leader's log has all of it, and its high watermark is "
        "known only when its own first record is committed, too."
    )
