"""Why both cannot be: two leaders of a quorum in one epoch, and a committed record that is gone."""

from __future__ import annotations

from nemesis.checkers.framework.reason import Case
from nemesis.history.events import Kind


def one_quorum_leader(_case: Case) -> str:
    return "A voter votes once in an epoch, so two candidates cannot both have the votes of a majority."


def quorum_commits_stay(case: Case) -> str:
    if case.events[-1].kind == Kind.ZNODE:
        return (
            "The first record of a new leader must be behind all committed records. This leader has replaced a "
            "record that a majority of the voters had."
        )
    return (
        "Records below a high watermark are committed, so each new leader's log has them. A new leader answers with "
        "a high watermark only after its own first record is committed, so its high watermark must be higher."
    )
