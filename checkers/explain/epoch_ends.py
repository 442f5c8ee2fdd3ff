"""Why both cannot be: the log of a leader, and where a leader epoch is said to end."""

from __future__ import annotations

from nemesis.checkers.framework.reason import Case
from nemesis.history.events import Kind


def epoch_ends_answered(case: Case) -> str:
    answer = case.events[-1]
    if answer.kind == Kind.TRUNCATE:
        return (
            "A follower keeps what it shares with its leader and nothing else: not more than the leader has of its "
            "leader epochs up to the follower's latest, and not more than the follower itself has of these. What lies "
            "behind differs, and fetching goes on behind it, so the logs differ for good."
        )
    if answer.kind == Kind.LOG_DIR_CHANGED:
        return (
            "A leader epoch without records is in no batch, so a move has to copy it. A replica that has lost it "
            "answers a query for this epoch as if the epoch had never been (KAFKA-15608)."
        )
    if answer.leader_epoch == -1:
        return (
            "A leader knows each leader epoch up to its own. A follower that is answered otherwise truncates to its "
            "high watermark, which may lag behind what is committed."
        )
    return (
        "The answer must be the largest leader epoch of the log that is at most the requested one, and where the next "
        "one begins. A follower cuts its log there; a wrong answer lets it keep records that the leader does not have, "
        "or takes records that both have (KIP-279)."
    )
