"""Why both cannot be: a cluster at rest, and replicas that do not agree on their offsets."""

from __future__ import annotations

from nemesis.checkers.framework.reason import Case
from nemesis.history.events import Kind


def offsets_at_rest(case: Case) -> str:
    if case.is_undecided:
        return (
            "Replicas that did not answer, or had no time to agree, show nothing about the cluster."
        )
    first = case.events[0]
    if first.kind == Kind.BECOME_LEADER:
        return (
            "While a broker leads in one epoch, the start of its log only rises. What was reported as deleted is there "
            "again."
        )
    if len(case.events) == 1 and first.high_watermark != first.log_end_offset:
        start, mark = first.log_start_offset or 0, first.high_watermark or 0
        if start > mark:
            return f"Records between {mark} and {start} were deleted before they were committed."
        if mark > (first.log_end_offset or 0):
            return "What lies below a high watermark is committed, and a replica cannot promise what it does not have."
    if len(case.events) > 1 and first.log_start_offset != case.events[-1].log_start_offset:
        return (
            "Each answer to a follower's fetch states where the leader's log starts, and the follower lets its own log "
            "start there. The time in which that happens had passed, with no fault in force."
        )
    return (
        "Each fetch of a follower states where its log ends, and each answer states the leader's high watermark. The "
        "time in which both happen had passed, with no fault in force."
    )
