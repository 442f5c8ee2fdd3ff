"""The high watermark never says more than the replicas hold, and never goes back.

* **hw-bounded**: whenever a leader's high watermark moves, it is at most the log end offset of every member of the
  maximal ISR that the leader then counts (committed and proposed members). The log end offsets are those that the
  replicas traced themselves.
  Smallest break: broker 2 reports log end offset 4; leader 1 sets high watermark 5 with maximal ISR [1, 2].
* **hw-grows**: the high watermark of one leader, in one process life and one leader epoch, never falls.
  Smallest break: 5, then 4.

The idea: a replica's log end offset is a state in which the last value wins, so hw-bounded is a ``Scan``: each stretch
of a history passes on the last offset of every replica, and is then evaluated knowing what came before.

Why time order may be trusted here: a replica reads the clock after its append and writes the event before it fetches
again, and the leader learns of an append only from that fetch. A correct leader's event therefore comes later.

What a correct cluster does and is not convicted for: followers lag behind any high watermark outside the ISR, and
their own high watermark may fall; a killed broker's last traced offset stands until it reloads its log, which may
then be longer; a follower cuts records at or above the high watermark; a restarted leader starts from an older
checkpoint (another process life). A member that comes back from a power cut with less counts again once it follows or
leads: until then its leader may not have heard of its death, and count what it had.

Limits: a replica that traced nothing at all is ``unknown``; one that traced but never opened this log, while the
high watermark is above 0, is a violation.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, NamedTuple

import numpy as np

from checkers.findings import finding, tp_name
from checkers.fold import Fold, Results, Scan, conclude
from checkers.model import Finding, Verdict
from checkers.power_cuts import PowerCuts, join_power_cuts, power_cuts
from checkers.replication.rows import TopicKey, high_watermark_rows, members, partitions
from checkers.segment import Numbers, Segment
from history.events import Kind

KEPT_PER_PARTITION = 3
NEVER = -1


class LogEnd(NamedTuple):
    """What a replica last told of the end of its log."""

    offset: int
    row: int
    loaded_at: int
    """When it told so by opening the log; ``NEVER`` if by anything else."""


LogEnds = dict[TopicKey, dict[int, LogEnd]]
"""Per partition and broker."""
_NOTHING: Final = LogEnd(NEVER, NEVER, NEVER)


@dataclass(frozen=True, slots=True)
class Held:
    """What replicas held, and what may have been taken from them."""

    ends: LogEnds = field(default_factory=dict)
    power_cuts: PowerCuts = field(default_factory=PowerCuts)


@dataclass(frozen=True, slots=True)
class Overrun:
    """A high watermark above what a member of the ISR holds."""

    row: int
    leader: int
    high_watermark: int
    member: int
    log_end_offset: int
    """``NEVER`` when it reported none."""
    member_row: int | None


@dataclass(slots=True)
class BoundedSummary:
    checked: int = 0
    tracing: set[int] = field(default_factory=set)
    """Brokers that traced anything."""
    overruns: dict[TopicKey, list[Overrun]] = field(default_factory=dict)
    """The first few of each partition."""
    counts: dict[TopicKey, int] = field(default_factory=dict)
    """All of them: one high watermark may overrun several members."""


class HwBounded(Scan[Held, BoundedSummary]):
    name = "hw-bounded"
    kinds = frozenset(
        {
            Kind.HIGH_WATERMARK,
            Kind.APPEND,
            Kind.TRUNCATE,
            Kind.LOG_LOADED,
            Kind.LOG_DIR_CHANGED,
            Kind.BECOME_LEADER,
            Kind.BECOME_FOLLOWER,
            Kind.BROKER_STARTED,
            Kind.FAULT_APPLIED,
        }
    )
    columns = (
        "fault",
        "targets",
        "topic",
        "topic_id",
        "partition",
        "node",
        "log_end_offset",
        "high_watermark",
        "isr",
        "maximal_isr",
    )

    def state(self, segment: Segment) -> Held:
        ends: LogEnds = {}
        for key, part in partitions(segment):
            nodes = part.numbers("node")
            known = _reports(part)
            brokers, from_end = np.unique(nodes[known][::-1], return_index=True)
            last = known[::-1][from_end]
            ends[key] = {
                int(broker): _log_end(part, int(at))
                for broker, at in zip(brokers, last, strict=True)
            }
        return Held(ends, power_cuts(segment))

    def join(self, a: Held, b: Held) -> Held:
        ends = {key: {**a.ends.get(key, {}), **later} for key, later in b.ends.items()}
        return Held({**a.ends, **ends}, join_power_cuts(a.power_cuts, b.power_cuts))

    def reduce(self, segment: Segment, carry: Held | None) -> BoundedSummary:
        traced = segment.where(~segment.is_kind(Kind.FAULT_APPLIED)).numbers("node")
        summary = BoundedSummary(tracing=set(np.unique(traced).tolist()))
        before = carry or Held()
        losses = join_power_cuts(before.power_cuts, power_cuts(segment))
        for key, part in partitions(segment):
            checked, overruns = _overruns(part, before.ends.get(key, {}), losses)
            summary.checked += checked
            if overruns:
                summary.overruns[key] = overruns[:KEPT_PER_PARTITION]
                summary.counts[key] = len(overruns)
        return summary

    def combine(self, a: BoundedSummary, b: BoundedSummary) -> BoundedSummary:
        overruns = dict(a.overruns)
        counts = dict(a.counts)
        for key, found in b.overruns.items():
            overruns[key] = (overruns.get(key, []) + found)[:KEPT_PER_PARTITION]
            counts[key] = counts.get(key, 0) + b.counts[key]
        return BoundedSummary(a.checked + b.checked, a.tracing | b.tracing, overruns, counts)

    def finish(self, summary: BoundedSummary) -> Results:
        findings: list[Finding] = []
        for key, overruns in summary.overruns.items():
            findings += [
                self._finding(tp_name(key[0], key[2]), overrun, summary) for overrun in overruns
            ]
        return conclude(
            self.name,
            checked=summary.checked,
            unit="high watermarks",
            findings=findings,
            finding_count=sum(summary.counts.values()),
        )

    def _finding(self, tp: str, overrun: Overrun, summary: BoundedSummary) -> Finding:
        claim = (
            f"Leader {overrun.leader} of {tp} set its high watermark to {overrun.high_watermark} while broker "
            f"{overrun.member}, in its ISR,"
        )
        if overrun.log_end_offset != NEVER:
            sentence = f"{claim} held records only below {overrun.log_end_offset}."
        elif overrun.member in summary.tracing:
            sentence = f"{claim} had not even opened the log."
        else:
            sentence = f"{claim} left no trace that says what it held."
            return finding(self.name, tp, sentence, overrun.row, verdict=Verdict.UNKNOWN)
        return finding(self.name, tp, sentence, overrun.member_row, overrun.row)


def _reports(part: Segment) -> Numbers:
    """The places of the events that tell of the end of a replica's log."""
    offsets = part.numbers("log_end_offset")
    return np.flatnonzero(~part.is_kind(Kind.HIGH_WATERMARK) & (offsets >= 0))


def _log_end(part: Segment, at: int) -> LogEnd:
    one = part.take(np.array([at]))
    is_load = bool(one.is_kind(Kind.LOG_LOADED)[0])
    loaded_at = int(one.numbers("time")[0]) if is_load else NEVER
    return LogEnd(int(one.numbers("log_end_offset")[0]), int(one.rows[0]), loaded_at)


def _is_back_from_a_power_cut(end: LogEnd, broker: int, losses: PowerCuts) -> bool:
    """Whether it opened the log in its first life after a power cut, and has done nothing since."""
    cuts = [cut for cut in losses.cuts.get(broker, ()) if cut <= end.loaded_at]
    lives = [start for start in losses.starts.get(broker, ()) if start <= end.loaded_at]
    return bool(cuts) and sum(start > max(cuts) for start in lives) <= 1


def _overruns(
    part: Segment, carry: dict[int, LogEnd], losses: PowerCuts
) -> tuple[int, list[Overrun]]:
    """Return how many high watermarks of one partition were evaluated, and the overruns in row order."""
    moves = high_watermark_rows(part)
    if not len(moves):
        return 0, []
    offsets, nodes, reports = part.numbers("log_end_offset"), part.numbers("node"), _reports(part)
    places = np.searchsorted(part.rows, moves.rows)
    marks, leaders = moves.numbers("high_watermark"), moves.numbers("node")
    own = moves.numbers("log_end_offset")
    at, member = members(moves)
    found: list[Overrun] = []
    for broker in np.unique(member).tolist():
        pairs = at[member == broker]
        mine = reports[nodes[reports] == broker]
        before = np.searchsorted(mine, places[pairs]) - 1
        carried = carry.get(broker, _NOTHING)
        if len(mine):
            last = mine[np.maximum(before, 0)]
            held = np.where(before >= 0, offsets[last], carried.offset)
        else:
            held = np.full(len(pairs), carried.offset)
        # The leader's own event carries its own log end offset, read at the same moment.
        itself = leaders[pairs] == broker
        held = np.where(itself & (own[pairs] >= 0), own[pairs], held)
        for index in np.flatnonzero(marks[pairs] > np.maximum(held, 0)).tolist():
            pair = int(pairs[index])
            end = _log_end(part, int(mine[before[index]])) if before[index] >= 0 else carried
            if _is_back_from_a_power_cut(end, broker, losses):
                continue
            found.append(
                Overrun(
                    row=int(moves.rows[pair]),
                    leader=int(leaders[pair]),
                    high_watermark=int(marks[pair]),
                    member=broker,
                    log_end_offset=int(held[index]),
                    member_row=None if end is _NOTHING else end.row,
                )
            )
    return len(moves), sorted(found, key=lambda overrun: (overrun.row, overrun.member))


LeaderKey = tuple[str | None, str | None, int | None, int, int, int]
"""Topic, topic id, partition, broker, incarnation, leader epoch."""


@dataclass(frozen=True, slots=True)
class Growth:
    """One leader's high watermarks: the first, the highest, and the first fall if there was one."""

    first: tuple[int, int]
    """(high watermark, row)"""
    highest: tuple[int, int]
    fall: tuple[tuple[int, int], tuple[int, int]] | None = None
    """(the highest before, the value that is below it)"""


GrowthSummary = tuple[int, dict[LeaderKey, Growth]]


class HwGrows(Fold[GrowthSummary]):
    name = "hw-grows"
    kinds = frozenset({Kind.HIGH_WATERMARK})
    columns = (
        "topic",
        "topic_id",
        "partition",
        "node",
        "incarnation",
        "leader_epoch",
        "high_watermark",
    )

    def reduce(self, segment: Segment) -> GrowthSummary:
        leaders: dict[LeaderKey, Growth] = {}
        keys = ("topic", "topic_id", "partition", "node", "incarnation", "leader_epoch")
        for key, part in segment.by(*keys):
            marks, rows = part.numbers("high_watermark"), part.rows
            highest = np.maximum.accumulate(marks)
            fallen = np.flatnonzero(marks < highest)
            top = int(np.argmax(marks))
            fall = None
            if len(fallen):
                low = int(fallen[0])
                peak = int(np.argmax(marks[:low]))
                fall = ((int(marks[peak]), int(rows[peak])), (int(marks[low]), int(rows[low])))
            leaders[key] = Growth(
                first=(int(marks[0]), int(rows[0])),
                highest=(int(marks[top]), int(rows[top])),
                fall=fall,
            )
        return len(segment), leaders

    def combine(self, a: GrowthSummary, b: GrowthSummary) -> GrowthSummary:
        leaders = dict(a[1])
        for key, later in b[1].items():
            leaders[key] = _chain(leaders[key], later) if key in leaders else later
        return a[0] + b[0], leaders

    def finish(self, summary: GrowthSummary) -> Results:
        checked, leaders = summary
        findings = []
        for (topic, _, partition, node, _, epoch), growth in leaders.items():
            if growth.fall is not None:
                (high, high_row), (low, low_row) = growth.fall
                tp = tp_name(topic, partition)
                sentence = (
                    f"The high watermark of {tp} fell from {high} to {low} at leader {node} within leader epoch "
                    f"{epoch}."
                )
                findings.append(finding(self.name, tp, sentence, high_row, low_row))
        return conclude(self.name, checked=checked, unit="high watermarks", findings=findings)


def _chain(a: Growth, b: Growth) -> Growth:
    """Join two neighbouring stretches of one leader. The first fall of both is the first of the whole."""
    fall = a.fall
    if fall is None:
        fall = (a.highest, b.first) if b.first[0] < a.highest[0] else b.fall
    highest = b.highest if b.highest[0] > a.highest[0] else a.highest
    return Growth(first=a.first, highest=highest, fall=fall)
