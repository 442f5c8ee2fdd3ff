"""Why both cannot be: a replica that lacks committed records, and joins the ISR."""

from __future__ import annotations

from nemesis.checkers.framework.reason import Case
from nemesis.history.events import Kind


def isr_join_caught_up(case: Case) -> str:
    if case.is_undecided:
        return "What the proposed member held is not recorded."
    if case.events[-1].kind == Kind.TRUNCATE:
        return (
            "A follower truncates what its leader does not have, because the leader has answered its fetch with the "
            "epoch at which the logs part. Such a fetch ends behind what both have in common, and proves nothing of "
            "what the follower has of the leader's records (KAFKA-13141)."
        )
    if case.first_of(
        Kind.BECOME_FOLLOWER,
        Kind.APPEND,
        Kind.TRUNCATE,
        Kind.LOG_LOADED,
        Kind.LOG_DIR_CHANGED,
        Kind.LOG_START_OFFSET,
    ):
        return (
            "Every member of the ISR may be elected as the next leader, and must have each record that is committed. "
            "Committed is what lies below the high watermark, and may be what lies below the start of the leader epoch."
        )
    return (
        "A leader learns of a replica's log only from fetches that carry its own leader epoch. This broker cannot have "
        "sent one: the partition is not assigned to it, or it did not follow in this epoch."
    )
