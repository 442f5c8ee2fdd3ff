"""Where a follower cuts its log, given what its leader says of an epoch (KIP-101, KIP-279).

The leader answers with the largest epoch that it has up to the one asked about, and with where that ends. What both
share is at most that. If the follower never had that epoch, it cuts where its own next smaller one ends, and asks
again: the leader's epoch may have begun below.

Source: kafka.server.AbstractFetcherThread.getOffsetTruncationState of Kafka 3.9.
"""

from __future__ import annotations

from typing import NamedTuple

from nemesis.reference.log.log import Log
from nemesis.reference.model import UNDEFINED_EPOCH, UNDEFINED_OFFSET, EpochEndOffset


class OffsetTruncationState(NamedTuple):
    """Where to cut, and whether the logs agree after it."""

    offset: int
    truncation_completed: bool


def offset_truncation_state(log: Log, leader: EpochEndOffset) -> OffsetTruncationState:
    """Where to cut the log, after the leader's answer; a leader that cannot tell leaves what is committed."""
    if leader.end_offset == UNDEFINED_OFFSET:
        return OffsetTruncationState(log.high_watermark, truncation_completed=True)
    end = min(leader.end_offset, log.log_end_offset)
    if leader.leader_epoch == UNDEFINED_EPOCH:
        return OffsetTruncationState(end, truncation_completed=True)
    local_end = log.end_offset_for_epoch(leader.leader_epoch)
    if local_end is None:
        return OffsetTruncationState(end, truncation_completed=True)
    if local_end.leader_epoch != leader.leader_epoch:
        return OffsetTruncationState(
            min(local_end.offset, log.log_end_offset), truncation_completed=False
        )
    return OffsetTruncationState(min(local_end.offset, end), truncation_completed=True)
