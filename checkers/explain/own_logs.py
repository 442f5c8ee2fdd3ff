"""Why both cannot be: a replica and its own log."""

from __future__ import annotations

from nemesis.checkers.framework.reason import Case


def leader_keeps_log(case: Case) -> str:
    del case
    return (
        "Followers copy the leader's log, and truncate their own logs where they differ. A leader must never "
        "truncate its log: its followers may have the removed records, and producers may have been acknowledged."
    )


def hw_within_log(case: Case) -> str:
    event = case.events[-1]
    return (
        f"A high watermark of {event.high_watermark} means that this replica has all records below it. But its log "
        f"ends at {event.log_end_offset}."
    )


def producers_within_log(case: Case) -> str:
    event = case.events[-1]
    return (
        f"A broker knows the last batches of producers from its log. This log ends at {event.log_end_offset}, but "
        f"the broker remembers a batch at offset {(event.producers_end or 0) - 1}. If it becomes leader and the "
        "producer sends that batch again, it takes the batch for a duplicate and acknowledges it without appending "
        "it."
    )


def min_isr_behind_ack(case: Case) -> str:
    setting, ack = case.events[0], case.events[-1]
    return (
        f"With min.insync.replicas={setting.min_insync_replicas}, at least that many brokers must have a record "
        f"before it is acknowledged. Offset {ack.last_offset} is on {len(ack.isr or [])}, and was not committed with "
        "a larger ISR before. So the leader must answer NOT_ENOUGH_REPLICAS_AFTER_APPEND."
    )
