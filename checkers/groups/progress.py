"""Progress of consumer groups: nothing below a committed offset is unprocessed.

**group-progress**: when a commit is acknowledged, members of the group have read the partition from its beginning up to
the committed offset. A member has read what its polls returned before the commit was sent: from the position of a poll
to the last offset of its answer. Offsets that the log does not have any longer count as read.
Smallest break: a member polls offsets 0 to 4 of t-0, and its commit of offset 7 is acknowledged.

So each record below a committed offset was delivered to a member that owned its partition, at least once: members poll
only what they own. What is delivered again after a rebalance, a crash or a refused commit is counted and is no
violation: ``numbers`` has the offsets that were read, and those that were read again.

What a correct cluster does and is not convicted for: it deletes records by retention, compaction or DeleteRecords (a
member that is refused goes to the start of the log, and an answer spans the offsets that compaction has removed); it
loses acknowledged commits where that is permitted, and the group reads again; it answers a commit whose outcome is
unknown, up to which its member had read before it sent the commit.

Limit: which records lie between two offsets of an answer is decided by ``poll-skip`` and ``lost-write``. Where a log
lost records that were acknowledged, other records may take their offsets, which counts as read. Members begin at offset
0 where nothing is committed: the check does not know ``auto.offset.reset=latest``.
Source: KafkaConsumer, "Offsets and Consumer Position"; KIP-62.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from nemesis.checkers.breaks import group_progress as breaks
from nemesis.checkers.explain import groups as explain
from nemesis.checkers.framework.event_list import EventListCheck, Row
from nemesis.checkers.framework.findings import finding, tp_name
from nemesis.checkers.framework.fold import Results, conclude
from nemesis.checkers.framework.model import Finding
from nemesis.checkers.framework.property import Property
from nemesis.checkers.framework.segment import Segment
from nemesis.checkers.groups.group_operations import COMMIT, WORKLOADS
from nemesis.history.events import Event, Kind
from nemesis.history.sources import EventSource

POLL, LOG_START = "poll", "log-start"
_OPERATIONS: Final = frozenset({COMMIT, POLL, LOG_START})

Partition = tuple[str, str | None, int | None, str | None]
"""A group, and a partition with the id of its topic."""


@dataclass(slots=True)
class Reading:
    """What a group has read of a partition: everything below ``end``, and some offsets behind it."""

    end: int = 0
    ahead: list[tuple[int, int]] = field(default_factory=list)
    """Spans of offsets behind ``end``, ascending and apart."""
    last: int | None = None
    """The row of the last poll."""
    offsets: int = 0
    """How many offsets were read, each time that they were."""

    def take_in(self, start: int, stop: int) -> None:
        """Count offsets as read, from ``start`` up to ``stop``, which is not included."""
        self.ahead = _merged([*self.ahead, (start, stop)])
        while self.ahead and self.ahead[0][0] <= self.end:
            self.end = max(self.end, self.ahead.pop(0)[1])

    @property
    def distinct(self) -> int:
        return self.end + sum(stop - start for start, stop in self.ahead)


class GroupProgress(EventListCheck):
    kinds = frozenset({Kind.INVOKE, Kind.OK})
    columns = (
        *("f", "op", "group", "topic", "topic_id", "partition", "node", "offset"),
        *("last_offset", "log_start_offset"),
    )

    @classmethod
    def properties(cls) -> tuple[Property, ...]:
        return (GROUP_PROGRESS,)

    def reduce(self, segment: Segment) -> list[Row]:
        """Leave out what other clients than members do: their polls are many."""
        members = [process for process in segment.codes("process")[1] if _is_member(process)]
        wanted = segment.is_word("f", _OPERATIONS) & segment.is_word("process", members)
        return super().reduce(segment.where(wanted)) if wanted.any() else []

    def judge(self, rows: list[Row]) -> Results:
        by_time = sorted(rows, key=_sort_key)
        group_of = {event.process: event.group for _, event in by_time if event.group is not None}
        readings: dict[Partition, Reading] = defaultdict(Reading)
        sent: dict[tuple[str, int | None], tuple[Row, Reading, int]] = {}
        findings: list[Finding] = []
        checked = removed = 0
        for row, event in by_time:
            group = group_of.get(_member(event.process))
            if group is None:
                continue
            reading = readings[group, event.topic, event.partition, event.topic_id]
            if event.f == COMMIT and event.kind == Kind.INVOKE:
                sent[event.process, event.op] = ((row, event), reading, reading.end)
            elif event.f == COMMIT:
                known = sent.pop((event.process, event.op), None)
                if known is None:
                    continue  # a torn history
                checked += 1
                findings += _unread(group, known, (row, event))
            elif event.kind == Kind.OK:
                removed += _take_in(reading, row, event)
        numbers = _figures(readings.values(), removed)
        return conclude(GROUP_PROGRESS, checked=checked, findings=findings, numbers=numbers)


def _sort_key(item: Row) -> tuple[int, bool, str, int]:
    """By time; a commit comes behind the polls of the same time, which it may follow."""
    event = item[1]
    is_sent = event.f == COMMIT and event.kind == Kind.INVOKE
    return event.time, is_sent, event.process, event.seq


def _take_in(reading: Reading, row: int, event: Event) -> int:
    """Take in what a poll has read, or what is deleted; return how many offsets are deleted."""
    if event.f == LOG_START:
        before = reading.distinct
        reading.take_in(0, event.log_start_offset or 0)
        return reading.distinct - before
    if event.last_offset is not None and event.offset is not None:
        stop = max(event.offset, event.last_offset + 1)
        reading.offsets += stop - event.offset
        reading.take_in(event.offset, stop)
        reading.last = row
    return 0


def _unread(group: str, sent: tuple[Row, Reading, int], completed: Row) -> Iterator[Finding]:
    (row, event), reading, end = sent
    committed = event.offset or 0
    if committed <= end:
        return
    about = tp_name(event.topic, event.partition)
    sentence = f"{group} committed offset {committed} of {about}, of which it has read nothing from offset {end} on."
    yield finding(
        GROUP_PROGRESS.name, f"{group} {about}", sentence, reading.last, row, completed[0]
    )


def _figures(readings: Iterable[Reading], removed: int) -> dict[str, float]:
    known = list(readings)
    distinct = sum(reading.distinct for reading in known) - removed
    again = sum(reading.offsets for reading in known) - distinct
    return {"offsets_read": float(distinct), "offsets_read_again": float(max(again, 0))}


def _merged(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    merged: list[tuple[int, int]] = []
    for start, stop in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], stop))
        elif start < stop:
            merged.append((start, stop))
    return merged


def _member(process: str) -> str:
    """Return the process of a member whose polls belong to this process."""
    return process.partition(".")[0]


def _is_member(process: str) -> bool:
    return process.startswith(("member-", "final-group-"))


GROUP_PROGRESS: Final = Property(
    name="group-progress",
    promise="Nothing below a committed offset is unprocessed: members of the group have read all records before it.",
    unit="acknowledged commits",
    unknown="No commit of a member was acknowledged.",
    source='KafkaConsumer, "Offsets and Consumer Position"; KIP-62.',
    check=GroupProgress,
    decided_from=frozenset({EventSource.CLIENTS}),
    recorded_since=8,
    workloads=WORKLOADS,
    reason=explain.group_progress,
    breaks=breaks.GROUP_PROGRESS,
)
