"""The high watermark never says more than the replicas hold.

* **hw-bounded**: whenever a leader's high watermark moves, it is at most the log end offset of every member of the
  maximal ISR that the leader then counts (committed and proposed members). The log end offsets are those that the
  replicas traced themselves.
  Smallest break: broker 2 reports log end offset 4; leader 1 sets high watermark 5 with maximal ISR [1, 2].

The idea: a replica's log end offset is a state in which the last value wins, so hw-bounded is a ``Scan``: each stretch
of a history passes on the last offset of every replica, and what its high watermarks claim of what the stretches before
it left. Claims that hold prove a stretch; only one with others is looked at again, knowing what came before.

Why time order may be trusted here: a replica reads the clock after its append and writes the event before it fetches
again, and the leader learns of an append only from that fetch. A correct leader's event therefore comes later.

What a correct cluster does and is not convicted for: followers lag behind any high watermark outside the ISR; a killed
broker's last traced offset stands until it reloads its log, which may then be longer; a follower cuts records at or
above the high watermark. A member that comes back from a power cut with less counts again once it follows or
leads: until then its leader may not have heard of its death, and count what it had.

Limits: a replica that traced nothing at all is ``unknown``; one that traced but never opened this log, while the
high watermark is above 0, is a violation.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import numpy as np

from checkers.findings import finding, tp_name
from checkers.fold import Results, Scan, conclude
from checkers.model import Finding, Verdict
from checkers.power_cuts import PowerCuts, join_power_cuts, power_cuts
from checkers.replication.rows import (
    TopicKey,
    brokers_in,
    high_watermark_rows,
    members,
    partitions,
)
from checkers.segment import Mask, Numbers, Segment
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
_NONE: Final = np.zeros(0, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class Claims:
    """What one stretch's high watermarks say of logs."""

    checked: int = 0
    """How many high watermarks there are."""
    tracing: frozenset[int] = frozenset()
    """Brokers that traced anything."""
    are_borne_out: bool = True
    """Whether all of them that can be compared with what replicas told in this stretch are at most that."""
    needed: dict[TopicKey, dict[int, int]] = field(default_factory=dict)
    """The log end offset that each replica must have told of before the stretch, for the others to be true."""


@dataclass(frozen=True, slots=True)
class Held:
    """What replicas held, and what may have been taken from them."""

    ends: LogEnds = field(default_factory=dict)
    power_cuts: PowerCuts = field(default_factory=PowerCuts)
    claims: Claims = field(default_factory=Claims)
    """Of one stretch; nobody asks for those of several."""


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
    tracing: frozenset[int] = frozenset()
    """Brokers that traced anything."""
    overruns: dict[TopicKey, list[Overrun]] = field(default_factory=dict)
    """The first few of each partition and member: whether a member has left a trace is known at the end only."""
    counts: dict[TopicKey, int] = field(default_factory=dict)
    """All of them: one high watermark may overrun several members."""

    def is_certain(self, overrun: Overrun) -> bool:
        """Whether it is known what the member held: all, if it left any trace."""
        return overrun.log_end_offset != NEVER or overrun.member in self.tracing


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
        needed: dict[TopicKey, dict[int, int]] = {}
        checked, are_borne_out = 0, True
        for key, part in partitions(segment):
            reports = _reports(part)
            ends[key] = {broker: _log_end(part, int(at[-1])) for broker, at in reports.items()}
            marks = _Marks.of(part)
            checked += len(marks.rows)
            needed[key] = {}
            for broker, pairs, told, is_told in marks.by_member(part, reports):
                claimed = marks.high_watermarks[pairs]
                are_borne_out &= not (claimed[is_told] > np.maximum(told[is_told], 0)).any()
                needed[key][broker] = int(claimed[~is_told].max(initial=0))
        claims = Claims(checked, _tracing(segment), are_borne_out, needed)
        return Held(ends, power_cuts(segment), claims)

    def join(self, a: Held, b: Held) -> Held:
        ends = {key: {**a.ends.get(key, {}), **later} for key, later in b.ends.items()}
        return Held({**a.ends, **ends}, join_power_cuts(a.power_cuts, b.power_cuts))

    def told(self, state: Held, carry: Held | None) -> BoundedSummary | None:
        claims, ends = state.claims, {} if carry is None else carry.ends
        for key, needed in claims.needed.items():
            told = ends.get(key, {})
            if any(
                told.get(broker, _NOTHING).offset < end for broker, end in needed.items() if end
            ):
                return None
        return BoundedSummary(claims.checked, claims.tracing) if claims.are_borne_out else None

    def reduce(self, segment: Segment, carry: Held | None) -> BoundedSummary:
        summary = BoundedSummary(tracing=_tracing(segment))
        before = carry or Held()
        losses = join_power_cuts(before.power_cuts, power_cuts(segment))
        for key, part in partitions(segment):
            checked, overruns = _overruns(part, before.ends.get(key, {}), losses)
            summary.checked += checked
            if overruns:
                summary.overruns[key] = _first_of_each_member(overruns)
                summary.counts[key] = len(overruns)
        return summary

    def combine(self, a: BoundedSummary, b: BoundedSummary) -> BoundedSummary:
        overruns = dict(a.overruns)
        counts = dict(a.counts)
        for key, found in b.overruns.items():
            overruns[key] = _first_of_each_member(overruns.get(key, []) + found)
            counts[key] = counts.get(key, 0) + b.counts[key]
        return BoundedSummary(a.checked + b.checked, a.tracing | b.tracing, overruns, counts)

    def finish(self, summary: BoundedSummary) -> Results:
        findings: list[Finding] = []
        for key, overruns in summary.overruns.items():
            certain = [overrun for overrun in overruns if summary.is_certain(overrun)]
            findings += [
                self._finding(tp_name(key[0], key[2]), overrun, summary)
                for overrun in (certain or overruns)[:KEPT_PER_PARTITION]
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
        elif summary.is_certain(overrun):
            sentence = f"{claim} had not even opened the log."
        else:
            sentence = f"{claim} left no trace that says what it held."
            return finding(self.name, tp, sentence, overrun.row, verdict=Verdict.UNKNOWN)
        return finding(self.name, tp, sentence, overrun.member_row, overrun.row)


def _first_of_each_member(overruns: list[Overrun]) -> list[Overrun]:
    seen: dict[int, int] = {}
    kept = []
    for overrun in overruns:
        seen[overrun.member] = seen.get(overrun.member, 0) + 1
        if seen[overrun.member] <= KEPT_PER_PARTITION:
            kept.append(overrun)
    return kept


def _tracing(segment: Segment) -> frozenset[int]:
    traced = segment.where(~segment.is_kind(Kind.FAULT_APPLIED)).numbers("node")
    return frozenset(brokers_in(traced))


def _reports(part: Segment) -> dict[int, Numbers]:
    """For each broker the places of the events in which it tells of the end of its log."""
    offsets, nodes = part.numbers("log_end_offset"), part.numbers("node")
    places = np.flatnonzero(~part.is_kind(Kind.HIGH_WATERMARK) & (offsets >= 0))
    theirs = nodes[places]
    return {broker: places[theirs == broker] for broker in brokers_in(theirs)}


def _log_end(part: Segment, at: int) -> LogEnd:
    one = part.slice(at, at + 1)
    is_load = bool(one.is_kind(Kind.LOG_LOADED)[0])
    loaded_at = int(one.numbers("time")[0]) if is_load else NEVER
    return LogEnd(int(one.numbers("log_end_offset")[0]), int(one.rows[0]), loaded_at)


def _is_back_from_a_power_cut(end: LogEnd, broker: int, losses: PowerCuts) -> bool:
    """Whether it opened the log in its first life after a power cut, and has done nothing since."""
    cuts = [cut for cut in losses.cuts.get(broker, ()) if cut <= end.loaded_at]
    lives = [start for start in losses.starts.get(broker, ()) if start <= end.loaded_at]
    return bool(cuts) and sum(start > max(cuts) for start in lives) <= 1


@dataclass(frozen=True, slots=True)
class _Marks:
    """The high watermarks of a partition's rows, and whom they count."""

    places: Numbers
    rows: Numbers
    high_watermarks: Numbers
    leaders: Numbers
    own_ends: Numbers
    """The leader's event carries its own log end offset, read at the same moment."""
    at: Numbers
    """With ``member``: a pair for each high watermark (its position here) and member that it counts."""
    member: Numbers

    @classmethod
    def of(cls, part: Segment) -> _Marks:
        moves = high_watermark_rows(part)
        at, member = members(moves)
        return cls(
            np.searchsorted(part.rows, moves.rows),
            moves.rows,
            moves.numbers("high_watermark"),
            moves.numbers("node"),
            moves.numbers("log_end_offset"),
            at,
            member,
        )

    def by_member(
        self, part: Segment, reports: dict[int, Numbers]
    ) -> Iterator[tuple[int, Numbers, Numbers, Mask]]:
        """Yield (member, the marks that count it, the last log end offset told of it before each, if one was)."""
        offsets = part.numbers("log_end_offset")
        for broker in brokers_in(self.member):
            pairs = self.at[self.member == broker]
            mine = reports.get(broker, _NONE)
            before = np.searchsorted(mine, self.places[pairs])
            is_told = before > 0
            told = np.full(len(pairs), NEVER)
            told[is_told] = offsets[mine[before[is_told] - 1]]
            itself = (self.leaders[pairs] == broker) & (self.own_ends[pairs] >= 0)
            yield broker, pairs, np.where(itself, self.own_ends[pairs], told), is_told | itself


def _overruns(
    part: Segment, carry: dict[int, LogEnd], losses: PowerCuts
) -> tuple[int, list[Overrun]]:
    """Return how many high watermarks of one partition were evaluated, and the overruns in row order."""
    marks, reports = _Marks.of(part), _reports(part)
    found: list[Overrun] = []
    for broker, pairs, told, is_told in marks.by_member(part, reports):
        carried = carry.get(broker, _NOTHING)
        held = np.where(is_told, told, carried.offset)
        for index in np.flatnonzero(marks.high_watermarks[pairs] > np.maximum(held, 0)).tolist():
            pair = int(pairs[index])
            mine = reports.get(broker, _NONE)
            before = int(np.searchsorted(mine, marks.places[pair]))
            end = _log_end(part, int(mine[before - 1])) if before else carried
            if _is_back_from_a_power_cut(end, broker, losses):
                continue
            found.append(
                Overrun(
                    row=int(marks.rows[pair]),
                    leader=int(marks.leaders[pair]),
                    high_watermark=int(marks.high_watermarks[pair]),
                    member=broker,
                    log_end_offset=int(held[index]),
                    member_row=None if end is _NOTHING else end.row,
                )
            )
    return len(marks.rows), sorted(found, key=lambda overrun: (overrun.row, overrun.member))
