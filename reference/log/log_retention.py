"""Which segments of a log are too many, too old, or before its start.

Only whole segments go, from the first one on, and none that reaches beyond the high watermark (KAFKA-5634). A
segment is as old as its newest record; one that a cleaner has left empty is old enough.

Limits: a segment whose records bear no time (−1) is not deleted by age; Kafka takes the time of its file.
Source: kafka.log.UnifiedLog.deleteOldSegments of Kafka 3.9.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from nemesis.reference.log.log_config import LogConfig
from nemesis.reference.log.log_segment import LogSegment


class Retained(Protocol):
    """What counts of a log."""

    config: LogConfig
    log_start_offset: int
    log_end_offset: int
    high_watermark: int

    @property
    def segments(self) -> Sequence[LogSegment]: ...


def deletable_segments(log: Retained, *, now_ms: int) -> int:
    """Return how many of the first segments may go; perhaps all."""
    segments, config = log.segments, log.config
    ends = [*(segment.base_offset for segment in segments[1:]), log.log_end_offset]
    most = sum(end <= log.high_watermark for end in ends)
    if most == len(segments) and segments[-1].size == 0:
        most -= 1
    count = min(most, sum(end <= log.log_start_offset for end in ends))
    if not config.is_delete:
        return count
    if config.retention_bytes >= 0:
        excess = sum(segment.size for segment in segments[count:]) - config.retention_bytes
        while count < most and (excess := excess - segments[count].size) >= 0:
            count += 1
    if config.retention_ms >= 0:
        oldest_ms = now_ms - config.retention_ms
        while count < most and (
            segments[count].size == 0 or 0 <= segments[count].max_timestamp < oldest_ms
        ):
            count += 1
    return count
