"""Why both cannot be: a replica that lacks committed records, and joins the ISR."""

from __future__ import annotations

from nemesis.checkers.framework.reason import Case
from nemesis.history.events import Kind


def isr_join_caught_up(case: Case) -> str:
    if case.is_undecided:
        return "It is not recorded which records the new member had."
    if case.events[-1].kind == Kind.TRUNCATE:
        return (
            "The follower still had records that its leader does not have, and truncated them later. The offset of "
            "its fetch was behind the records that both have in common. So this fetch does not show that the "
            "follower had the leader's records (KAFKA-13141)."
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
            "Each member of the ISR may be elected as the next leader, so it must have all committed records. These "
            "are the records below the high watermark, and possibly all records before the start of the leader epoch."
        )
    return (
        "A leader learns of a replica's log only from fetches with its own leader epoch. This broker cannot have "
        "sent such a fetch: it is not a replica of the partition, or it did not follow in this epoch."
    )
