"""Why both cannot be: a replica and its own log."""

from __future__ import annotations

from nemesis.checkers.framework.reason import Case


def leader_keeps_log(case: Case) -> str:
    del case
    return (
        "Followers copy the leader's log, and cut their own where it differs. A leader copies nothing: what "
        "it cuts may be on its followers, acknowledged, and they no longer match the log that they copy."
    )


def hw_within_log(case: Case) -> str:
    event = case.events[-1]
    return (
        f"A high watermark of {event.high_watermark} says that this replica, too, has every record below it. Its log "
        f"ends at {event.log_end_offset}: consumers would be promised records that it does not have."
    )


def producers_within_log(case: Case) -> str:
    event = case.events[-1]
    return (
        f"What a log remembers of producers follows from its batches. It has no batch at offset "
        f"{(event.producers_end or 0) - 1}: it ends at {event.log_end_offset}. When this replica leads and the "
        "producer sends that batch again, the leader takes it for a duplicate and acknowledges it without appending it."
    )


def min_isr_behind_ack(case: Case) -> str:
    setting, ack = case.events[0], case.events[-1]
    return (
        f"min.insync.replicas={setting.min_insync_replicas} promises that an acknowledged record survives the loss of "
        f"all but one of that many brokers. Offset {ack.last_offset} is on {len(ack.isr or [])}, and no high watermark "
        "of a larger ISR had passed it: the leader had to answer NOT_ENOUGH_REPLICAS_AFTER_APPEND."
    )
