"""Why both cannot be: high watermarks, logs, what was committed."""

from __future__ import annotations

from nemesis.checkers.framework.reason import Case
from nemesis.history.events import Event, Kind


def hw_bounded(case: Case) -> str:
    mark = case.events[-1]
    promise = f"A high watermark of {mark.high_watermark} says that every in-sync replica holds all records below it."
    if case.is_undecided:
        return f"{promise} One of them has left no trace of what it held, so nobody can say."
    if len(case.events) == 1:
        return f"{promise} One of them traced its doings, and among them no opening of this log: it held none."
    member = case.events[0]
    if member.node == mark.node:
        return (
            f"{promise} The leader is one of them, and its own log ended at {mark.log_end_offset}."
        )
    return (
        f"{promise} Broker {member.node} held those below {member.log_end_offset} and no more: a follower traces an "
        "append before it fetches again, and a leader learns of it from that fetch alone, so there was nothing yet "
        "that the leader could have counted on."
    )


def hw_grows(case: Case) -> str:
    high, low = case.events[0], case.events[-1]
    return (
        f"Records below {high.high_watermark} were committed: consumers may have read them. Within one leader epoch "
        f"nothing takes them back, so a high watermark of {low.high_watermark} denies what was given out."
    )


def no_truncation_below_hw(case: Case) -> str:
    mark, cut = case.events[0], case.events[-1]
    if len(case.events) == 1:
        return (
            f"By its own high watermark broker {cut.node} held every record below {cut.high_watermark_before} to be "
            f"committed, and gave it to consumers that read there. Its leader does not have those from "
            f"{cut.log_end_offset} on. A follower must cut its log first, and follow the leader's high watermark then "
            "(KAFKA-14704)."
        )
    own = (
        f" It cut at its own high watermark, {cut.high_watermark}, which lags behind the leader's. Since KIP-101 a "
        "follower asks the leader where their logs part, and cuts there."
        if cut.kind == Kind.TRUNCATE and cut.high_watermark == cut.log_end_offset
        else ""
    )
    return (
        f"Records below {mark.high_watermark} are committed: each broker in the ISR has the same ones, so broker "
        f"{cut.node} had no reason to cut there. Until it has fetched those from {cut.log_end_offset} on again, its "
        f"election would lose them.{own}"
    )


def ack_after_commit(case: Case) -> str:
    ack = case.events[-1]
    last = ack.offset if ack.last_offset is None else ack.last_offset
    return (
        f"Under acks=all an acknowledgement of offset {last} says that all in-sync replicas have it, that is, that "
        "the high watermark is above it. It was not, at that leader, up to then: an election may lose what the "
        "producer takes for safe."
    )


def leader_completeness(case: Case) -> str:
    lead = case.first_of(Kind.BECOME_LEADER)
    promise = case.first_of(Kind.HIGH_WATERMARK, Kind.PRODUCE_ACKNOWLEDGED)
    if lead is None or promise is None:
        return "What is committed in one leader epoch must be in the log of every later leader."
    end = _committed_below(promise)
    shortfall = (
        f"Broker {lead.node} began with a log up to {lead.log_end_offset}"
        if (lead.log_end_offset or 0) < end
        else f"Broker {lead.node}'s log is long enough, but has records of other leader epochs there"
    )
    return (
        f"All below {end} was committed in leader epoch {promise.leader_epoch}, and had to be on every replica that "
        f"could be elected after it. {shortfall}: from now on followers cut theirs to match, and committed records are "
        "gone."
    )


def _committed_below(event: Event) -> int:
    if event.kind == Kind.HIGH_WATERMARK:
        return event.high_watermark or 0
    last = event.offset if event.last_offset is None else event.last_offset
    return (last or 0) + 1


def log_matching(case: Case) -> str:
    if case.first_of(Kind.BECOME_LEADER) is None:
        return (
            "An epoch has one leader, which writes each offset once, and followers copy its batches byte for byte. Two "
            "batches of one epoch at one offset mean that replicas hold different records and take them for the same."
        )
    return (
        "Below a high watermark all in-sync replicas hold the same records, each written by the same leader epoch. "
        "A reader is given one record or the other, as the leadership goes. A batch is shown where a replica appended "
        "it first."
    )


def final_logs(case: Case) -> str:
    if case.is_undecided:
        return (
            "What could not be read can neither be held against the broker nor be taken for right."
        )
    logs = [event for event in case.events if event.kind == Kind.STORED_LOG]
    batches = [event for event in case.events if event.kind != Kind.STORED_LOG]
    if len(logs) == 1 and case.first_of(Kind.HIGH_WATERMARK) is not None:
        return (
            "The broker was counted on for every record below that high watermark and has not been started anew "
            "since, so its files have to reach as far."
        )
    if case.first_of(Kind.REPLICA_OFFSETS) is not None:
        return (
            "What is below a high watermark is committed. The broker only stopped in between, and a stop leaves every "
            "record in the files."
        )
    if logs:
        return (
            "What is below a broker's own high watermark is committed, and a broker that lives has it in its files, "
            "whole."
        )
    if (
        len(batches) > 1
        and batches[0].node == batches[1].node
        and batches[0].kind == batches[1].kind
        and batches[0].offset != batches[1].offset
    ):
        return "A log has every offset in turn until compaction has been there: in between something is missing."
    if case.first_of(Kind.APPEND) is not None:
        return (
            "An epoch has one leader, which writes each offset once. Replicas with different batches of one epoch at "
            "one offset take them for the same, and no follower cuts its log."
        )
    return (
        "Below a high watermark all replicas hold the same batches, byte for byte: who reads from the one is given "
        "something else than who reads from the other."
    )


def log_start_bounded(case: Case) -> str:
    event = case.events[-1]
    mark, start = event.high_watermark, event.log_start_offset or 0
    if event.kind == Kind.LOG_CLEANED:
        return (
            f"Records from {mark} on are not committed and may yet be cut off. One that superseded an older record "
            "of its key and is cut off then leaves neither."
        )
    if start > (mark or 0):
        return (
            f"What lies from {mark} on is not committed: records between {mark} and {start} went before anybody "
            "could rely on them."
        )
    if len(case.events) > 1:
        return (
            "What was deleted is gone from there: a start that falls shows records again that were said to be "
            "deleted."
        )
    return "Records are deleted for a client only as far as a client has asked for it: the others were somebody's."
