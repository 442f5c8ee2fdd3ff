"""Why both cannot be: the log of a leader, and where a leader epoch is said to end."""

from __future__ import annotations

from nemesis.checkers.framework.reason import Case
from nemesis.history.events import Kind


def epoch_ends_answered(case: Case) -> str:
    answer = case.events[-1]
    if answer.kind == Kind.TRUNCATE:
        return (
            "A follower may keep only records that its leader also has. It must truncate its log where the leader's "
            "epochs end, or where its own records of these epochs end. Here it kept more. It continues to fetch "
            "behind these records, so the two logs stay different."
        )
    if answer.kind == Kind.LOG_DIR_CHANGED:
        return (
            "A leader epoch without records is not in any batch, so a move to another directory must copy the list "
            "of epochs. Without the epoch, the replica answers queries for it as if it had never existed "
            "(KAFKA-15608)."
        )
    if answer.leader_epoch == -1:
        return (
            "A leader knows each leader epoch up to its own. After this answer, a follower truncates to its own high "
            "watermark, and may lose committed records."
        )
    return (
        "The answer must be the largest leader epoch of the log that is at most the requested one, and where the "
        "next one begins. A follower truncates its log there. After a wrong answer it keeps records that the leader "
        "does not have, or loses records that both had (KIP-279)."
    )
