"""No segment of a log is deleted before its time.

**segments-deleted-by-rule**: when a broker deletes the first segments of a log, the last of them ends at or below the
high watermark, and (a) ends at or below the start of the log, or, if the topic's ``cleanup.policy`` has ``delete``,
(b) what stays has at least ``retention.bytes``, or (c) its newest record is older than ``retention.ms`` by the
broker's clock.
Smallest break: ``retention.ms`` is 10, ``retention.bytes`` −1, the log starts at 0, and at 15 ms of the day the broker
deletes the segment from 0 to 4, whose newest record is from 6 ms.

Why the last segment suffices: segments go in their order, and each of them needs one of the three reasons. The others
of one deletion are not recorded one by one; so one of them may be younger.

What a correct cluster does and is not convicted for: times of records that are not in order, as producers write them; a
wall clock that a fault has moved, since the broker's own clock decides; records without a time, which a cleaner may
have left empty; settings of the topic or of brokers that were changed: a deletion is right by any of the values that
they had, in any combination. A follower deletes by the same rules as its leader.

Limits: what is deleted too late is judged by ``retention-runs``.
Source: UnifiedLog.deleteOldSegments (deleteRetentionMsBreachedSegments, deleteRetentionSizeBreachedSegments,
deleteLogStartOffsetBreachedSegments) of Kafka 3.9.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any, Final, NamedTuple

from nemesis.checkers import settings_written
from nemesis.checkers.breaks import segment_deletions as breaks
from nemesis.checkers.explain import segment_deletions as explain
from nemesis.checkers.framework.event_list import EventListCheck, Row
from nemesis.checkers.framework.findings import finding, tp_name
from nemesis.checkers.framework.fold import Results, conclude
from nemesis.checkers.framework.model import Finding
from nemesis.checkers.framework.property import Property
from nemesis.checkers.settings_written import Overrides, broker_settings, possible_settings
from nemesis.history.events import Event, Kind
from nemesis.history.sources import EventSource
from nemesis.history.vocabulary.harness import RETENTION_BYTES, RETENTION_INTERVAL, RETENTION_MS

_NO_BOUND: Final = -1
_STARTS: Final = frozenset({Kind.LOG_LOADED, Kind.BROKER_STARTED})


class SegmentDeletions(EventListCheck):
    kinds = frozenset({Kind.SEGMENTS_DELETED, Kind.BROKER_PROPERTY, Kind.ZNODE, *_STARTS})
    columns = (
        *("node", "topic", "partition", "offset", "last_offset", "log_start_offset", "bytes_after"),
        *(
            "max_timestamp",
            "wall_ms",
            "high_watermark",
            "setting",
            "count",
            *settings_written.COLUMNS,
        ),
    )

    @classmethod
    def properties(cls) -> tuple[Property, ...]:
        return (SEGMENTS_DELETED_BY_RULE,)

    def judge(self, rows: list[Row]) -> Results:
        stated = {e.setting: e.count for _, e in rows if e.kind == Kind.BROKER_PROPERTY}
        if RETENTION_INTERVAL not in stated:
            return conclude(SEGMENTS_DELETED_BY_RULE, checked=0)
        settings = possible_settings(rows)
        brokers = broker_settings(rows)
        findings: list[Finding] = []
        checked = 0
        for row, event in rows:
            checked += event.kind in _STARTS
            if event.kind != Kind.SEGMENTS_DELETED:
                continue
            checked += 1
            own = settings.get(event.topic or "", [{}])
            if own is not None and RETENTION_BYTES in stated:
                findings += _judged(row, event, list(_possible(own, stated, brokers)))
        return conclude(SEGMENTS_DELETED_BY_RULE, checked=checked, findings=findings)


class Bounds(NamedTuple):
    """What may be in force for a topic; −1: without bound."""

    size: int
    age_ms: int
    is_retained: bool
    """Whether the policy has ``delete``."""


def _possible(
    own: Sequence[Overrides],
    stated: Mapping[str | None, int | None],
    brokers: Mapping[str, Sequence[str]],
) -> Iterator[Bounds]:
    """Yield the bounds of a topic that had these settings of its own, one after the other."""

    def values(overrides: Overrides, name: str, broker_name: str) -> list[int]:
        if (number := _number(overrides.get(name))) is not None:
            return [number]
        written = (stated.get(broker_name, _NO_BOUND), *brokers.get(broker_name, ()))
        return [number for value in written if (number := _number(value)) is not None]

    for overrides in own:
        is_retained = "delete" in overrides.get("cleanup.policy", "delete")
        sizes = values(overrides, "retention.bytes", RETENTION_BYTES)
        ages = values(overrides, "retention.ms", RETENTION_MS)
        for size, age_ms in product(sizes, ages):
            yield Bounds(size, age_ms, is_retained)


def _number(bound: Any) -> int | None:
    """Return a bound as a number; None if it is not one, and brokers ignore it."""
    try:
        return None if bound is None else int(bound)
    except ValueError:
        return None


def _judged(row: int, event: Event, possible: Sequence[Bounds]) -> list[Finding]:
    newest = _NO_BOUND if event.max_timestamp is None else event.max_timestamp
    passed_ms = (event.wall_ms or 0) - newest
    left = event.bytes_after or 0
    is_below_start = (event.last_offset or 0) < (event.log_start_offset or 0)
    is_committed = (event.last_offset or 0) < (event.high_watermark or 0)

    def is_allowed(bounds: Bounds) -> bool:
        is_excess = 0 <= bounds.size <= left
        is_old = bounds.age_ms >= 0 and (newest < 0 or passed_ms > bounds.age_ms)
        return bounds.is_retained and (is_excess or is_old)

    if is_committed and (is_below_start or any(map(is_allowed, possible))):
        return []
    tp = tp_name(event.topic, event.partition)
    sentence = (
        f"Broker {event.node} deleted the segments of {tp} from offset {event.offset} to {event.last_offset}, the last "
        f"of which had a record that was {passed_ms:,} ms old. The log started at {event.log_start_offset} and had "
        f"{left:,} bytes behind them, the high watermark was {event.high_watermark}; retention.ms is "
        f"{_listed(bounds.age_ms for bounds in possible)}, retention.bytes is "
        f"{_listed(bounds.size for bounds in possible)}."
    )
    return [finding(SEGMENTS_DELETED_BY_RULE.name, tp, sentence, row)]


def _listed(bounds: Iterable[int]) -> str:
    return " or ".join(f"{bound:,}" for bound in dict.fromkeys(bounds))


SEGMENTS_DELETED_BY_RULE: Final = Property(
    name="segments-deleted-by-rule",
    promise="A broker deletes a segment only if it is too old, the log is too large, or it is below the start.",
    unit="deletions of segments, logs that were opened, and starts of brokers",
    unknown="The harness did not record the settings, or no broker traced its start.",
    source="UnifiedLog.deleteOldSegments.",
    check=SegmentDeletions,
    decided_from=frozenset({EventSource.METADATA_LOG, EventSource.TRACES, EventSource.HARNESS}),
    recorded_since=9,
    reason=explain.segments_deleted_by_rule,
    breaks=breaks.SEGMENTS_DELETED_BY_RULE,
)
