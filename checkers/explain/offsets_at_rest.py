"""Why both cannot be: a cluster at rest, and replicas that do not agree on their offsets."""

from __future__ import annotations

from nemesis.checkers.framework.reason import Case
from nemesis.history.events import Kind


def offsets_at_rest(case: Case) -> str:
    if case.is_undecided:
        return (
            "Some replicas did not answer, or did not have enough time without a fault. So this shows nothing about "
            "the cluster."
        )
    first = case.events[0]
    if first.kind == Kind.BECOME_LEADER:
        return (
            "While a broker leads in one epoch, the start of its log only rises. Here records exist again that were "
            "reported as deleted."
        )
    if len(case.events) == 1 and first.high_watermark != first.log_end_offset:
        start, mark = first.log_start_offset or 0, first.high_watermark or 0
        if start > mark:
            return f"Records between {mark} and {start} were deleted before they were committed."
        if mark > (first.log_end_offset or 0):
            return (
                "A high watermark states that the records below it are committed. This replica's log ends before "
                "that, so it does not have them."
            )
    if len(case.events) > 1 and first.log_start_offset != case.events[-1].log_start_offset:
        return (
            "Each answer to a follower's fetch states where the leader's log starts, and the follower then deletes "
            "its records below that. It has had enough time for that without an active fault."
        )
    return (
        "Each fetch of a follower states where its log ends, and each answer states the leader's high watermark. "
        "There was enough time for both without an active fault."
    )
