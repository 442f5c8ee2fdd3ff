"""Why both cannot be: high watermarks, logs, what was committed."""

from __future__ import annotations

from nemesis.checkers.framework.reason import Case
from nemesis.history.events import Event, Kind


def hw_bounded(case: Case) -> str:
    mark = case.events[-1]
    promise = f"A high watermark of {mark.high_watermark} means that each in-sync replica has all records below it."
    if case.is_undecided:
        return f"{promise} One of them recorded nothing about its log, so it is not known which records it had."
    if len(case.events) == 1:
        return f"{promise} One of them recorded its steps, and it never opened this log, so it had none of its records."
    member = case.events[0]
    if member.node == mark.node:
        return (
            f"{promise} The leader is one of them, and its own log ended at {mark.log_end_offset}."
        )
    return (
        f"{promise} Broker {member.node} had only the records below {member.log_end_offset}. A follower records an "
        "append before its next fetch, and the leader learns of the append only by that fetch. So the leader could "
        "not know of more."
    )


def hw_grows(case: Case) -> str:
    high, low = case.events[0], case.events[-1]
    return (
        f"Records below {high.high_watermark} were committed, and consumers may have read them. In one leader epoch "
        f"they stay committed, so the high watermark must not fall to {low.high_watermark}."
    )


def no_truncation_below_hw(case: Case) -> str:
    mark, cut = case.events[0], case.events[-1]
    if len(case.events) == 1:
        return (
            f"The high watermark of broker {cut.node} was {cut.high_watermark_before}, so it gave consumers the "
            f"records below it as committed. Its leader does not have the records from {cut.log_end_offset} on. A "
            "follower must truncate its log before it takes over the leader's high watermark (KAFKA-14704)."
        )
    own = (
        f" It truncated to its own high watermark, {cut.high_watermark}, which is behind the leader's. Since KIP-101 "
        "a follower asks the leader where the two logs begin to differ, and truncates there."
        if cut.kind == Kind.TRUNCATE and cut.high_watermark == cut.log_end_offset
        else ""
    )
    return (
        f"Records below {mark.high_watermark} are committed, and all members of the ISR have the same ones. So "
        f"broker {cut.node} had no reason to truncate them. If it is elected before it has fetched the records from "
        f"{cut.log_end_offset} on again, they are lost.{own}"
    )


def ack_after_commit(case: Case) -> str:
    ack = case.events[-1]
    last = ack.offset if ack.last_offset is None else ack.last_offset
    return (
        f"With acks=all, the acknowledgement of offset {last} means that all in-sync replicas have the record, and "
        "that the high watermark is above it. The leader's high watermark had not reached that. So an election may "
        "lose a record that the producer takes for safe."
    )


def leader_completeness(case: Case) -> str:
    lead = case.first_of(Kind.BECOME_LEADER)
    promise = case.first_of(Kind.HIGH_WATERMARK, Kind.PRODUCE_ACKNOWLEDGED)
    if lead is None or promise is None:
        return "Records that are committed in one leader epoch must be in the log of each later leader."
    end = _committed_below(promise)
    shortfall = (
        f"But the log of broker {lead.node} ended at {lead.log_end_offset} when it became leader"
        if (lead.log_end_offset or 0) < end
        else f"The log of broker {lead.node} is long enough, but has records of other leader epochs there"
    )
    return (
        f"The records below {end} were committed in leader epoch {promise.leader_epoch}, so each later leader must "
        f"have them. {shortfall}. Its followers truncate their logs to match, and committed records are lost."
    )


def _committed_below(event: Event) -> int:
    if event.kind == Kind.HIGH_WATERMARK:
        return event.high_watermark or 0
    last = event.offset if event.last_offset is None else event.last_offset
    return (last or 0) + 1


def log_matching(case: Case) -> str:
    if case.first_of(Kind.BECOME_LEADER) is None:
        return (
            "An epoch has one leader. It appends one batch at each offset, and followers copy the batch byte for "
            "byte. Here two batches have the same epoch and offset, so replicas have different records and cannot "
            "notice it."
        )
    return (
        "Below a high watermark all in-sync replicas have the same records, from the same leader epochs. Here a "
        "consumer gets one record or the other, depending on which replica leads. Each batch is shown at the replica "
        "that appended it first."
    )


def final_logs(case: Case) -> str:
    if case.is_undecided:
        return "nemesis could not read these files, so it does not know whether they are right."
    logs = [event for event in case.events if event.kind == Kind.STORED_LOG]
    batches = [event for event in case.events if event.kind != Kind.STORED_LOG]
    if len(logs) == 1 and case.first_of(Kind.HIGH_WATERMARK) is not None:
        return (
            "The broker had all records below that high watermark, and has not restarted since. So its files must "
            "contain them."
        )
    if case.first_of(Kind.REPLICA_OFFSETS) is not None:
        return (
            "Records below a high watermark are committed. The broker was only stopped between the two events, and a "
            "stop leaves all records in the files."
        )
    if logs:
        return (
            "Records below a broker's own high watermark are committed. The broker was running to the end, so its "
            "files must have them undamaged."
        )
    if (
        len(batches) > 1
        and batches[0].node == batches[1].node
        and batches[0].kind == batches[1].kind
        and batches[0].offset != batches[1].offset
    ):
        return "The offsets of a log have no gap, except where compaction has removed records. Here some are missing."
    if case.first_of(Kind.APPEND) is not None:
        return (
            "An epoch has one leader, which appends one batch at each offset. These replicas have different batches "
            "with the same epoch and offset. They cannot notice it, so no follower truncates its log."
        )
    return (
        "Below a high watermark all replicas have the same batches, byte for byte. Here consumers get different "
        "records from different replicas."
    )


def log_start_bounded(case: Case) -> str:
    event = case.events[-1]
    mark, start = event.high_watermark, event.log_start_offset or 0
    if event.kind == Kind.LOG_CLEANED:
        return (
            f"Records from {mark} on are not committed, so they may be truncated. Compaction removed an older record "
            "because of a newer one with its key. If the newer one is truncated, both are lost."
        )
    if start > (mark or 0):
        return (
            f"Records from {mark} on are not committed. The records from {mark} to {start} were deleted before they "
            "were committed."
        )
    if len(case.events) > 1:
        return (
            "Deleted records stay deleted. If the start of the log falls, records are visible again that were "
            "reported as deleted."
        )
    return "Records may be deleted for a client only up to the offset that a client has requested."
