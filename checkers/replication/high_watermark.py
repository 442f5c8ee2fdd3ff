"""The high watermark never says more than the replicas hold.

* **hw-bounded**: whenever a leader's high watermark moves, it is at most the log end offset of every member of the
  maximal ISR that the leader then counts (committed and proposed members). The log end offsets are those that the
  replicas traced themselves.
  Smallest break: broker 2 reports log end offset 4; leader 1 sets high watermark 5 with maximal ISR [1, 2].

The idea: a replica's log end offset is a state in which the last value wins, so hw-bounded is a ``Scan``: each segment
of a history passes on the last offset of every replica, and what its high watermarks require of the segments before
it. A segment whose requirements hold is accepted by ``shortcut``; ``claims`` says why that is a proof. Every other
segment is evaluated by ``reduce``, which knows what came before; so is one with high
watermarks and fewer rows than ``worth_proving``.

Why time order may be trusted here: a replica reads the clock after its append and writes the event before it fetches
again, and the leader learns of an append only from that fetch. A correct leader's event therefore comes later.

What a correct cluster does and is not convicted for: followers lag behind any high watermark outside the ISR; a killed
broker's last traced offset stands until it reloads its log, which may then be longer; a follower cuts records at or
above the high watermark. A member that comes back from a power cut with less counts again once it follows or
leads: until then its leader may not have heard of its death, and count what it had.

Limits: from what Kafka brokers log (``nemesis.history.broker_logs``) only the committed ISR is known, and members that
a leader has proposed are not compared. A replica that traced nothing at all is ``unknown``; one that traced but never
opened this log, while the high watermark is above 0, is a violation.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, NamedTuple

import numpy as np

from nemesis.checkers.breaks import replicas as breaks
from nemesis.checkers.explain import replicas
from nemesis.checkers.framework.compiler import has_compiler
from nemesis.checkers.framework.findings import finding, tp_name
from nemesis.checkers.framework.fold import Results, Scan, conclude
from nemesis.checkers.framework.model import Finding, Verdict
from nemesis.checkers.framework.property import Property
from nemesis.checkers.framework.segment import Numbers, Segment
from nemesis.checkers.power_cuts import PowerCuts, join_power_cuts, power_cuts
from nemesis.checkers.replication.replica_rows import (
    TopicKey,
    brokers_in,
    members,
    partitions,
)
from nemesis.history.events import Kind
from nemesis.history.sources import EventSource

KEPT_PER_PARTITION = 3
NEVER = -1


class LogEnd(NamedTuple):
    """The last log end offset that a replica reported."""

    offset: int
    row: int
    loaded_at: int
    """The time of the report if it was the opening of the log; otherwise ``NEVER``."""


LogEnds = dict[TopicKey, dict[int, LogEnd]]
"""Per partition and broker."""
_NOTHING: Final = LogEnd(NEVER, NEVER, NEVER)
_NONE: Final = np.zeros(0, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class Claims:
    """What one segment's high watermarks require of the segments before it. Its own reports bear out the rest."""

    checked: int
    """How many high watermarks there are."""
    tracing: frozenset[int]
    """Brokers that traced anything."""
    needed: dict[TopicKey, dict[int, int]]
    """The log end offset that each replica must have reported last before the segment."""


@dataclass(frozen=True, slots=True)
class Held:
    """What replicas held, and what may have been taken from them."""

    ends: LogEnds = field(default_factory=dict)
    power_cuts: PowerCuts = field(default_factory=PowerCuts)
    claims: Claims | None = None
    """The requirements of one segment; ``None`` for joined segments, and if a high watermark failed or is in doubt."""


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
    worth_proving = 16_384
    """Rows. Smaller segments with a high watermark go to ``reduce``; the compiled proof would cost more."""
    kinds = frozenset(
        {
            Kind.HIGH_WATERMARK,
            Kind.APPEND,
            Kind.TRUNCATE,
            Kind.LOG_LOADED,
            Kind.LOG_DIR_CHANGED,
            Kind.BECOME_LEADER,
            Kind.BECOME_FOLLOWER,
            Kind.PRODUCE_ACKNOWLEDGED,
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

    @classmethod
    def properties(cls) -> tuple[Property, ...]:
        return (HW_BOUNDED,)

    def state(self, segment: Segment) -> Held:
        if len(segment) < self.worth_proving or not has_compiler():
            return self._state_of_few(segment)
        from nemesis.checkers.replication.claims import claims, tracing

        by_partition = {key: (part, claims(part)) for key, part in partitions(segment)}
        ends = {
            key: {
                broker: _log_end(part, position)
                for broker, position in partition_claims.last.items()
            }
            for key, (part, partition_claims) in by_partition.items()
        }
        claimed = Claims(
            checked=sum(partition_claims.marks for _, partition_claims in by_partition.values()),
            tracing=tracing(_traced(segment)),
            needed={
                key: partition_claims.needed for key, (_, partition_claims) in by_partition.items()
            },
        )
        are_borne_out = all(
            partition_claims.are_borne_out for _, partition_claims in by_partition.values()
        )
        return Held(ends, power_cuts(segment), claimed if are_borne_out else None)

    def _state_of_few(self, segment: Segment) -> Held:
        """Return the state of a small segment, without compiled code: only one without high watermarks has a proof."""
        ends = {
            key: {
                broker: _log_end(part, int(positions[-1]))
                for broker, positions in _reports(part).items()
            }
            for key, part in partitions(segment)
        }
        if segment.is_kind(Kind.HIGH_WATERMARK).any():
            return Held(ends, power_cuts(segment))
        tracing = frozenset(brokers_in(_traced(segment)))
        return Held(ends, power_cuts(segment), Claims(checked=0, tracing=tracing, needed={}))

    def join(self, a: Held, b: Held) -> Held:
        ends = {key: {**a.ends.get(key, {}), **later} for key, later in b.ends.items()}
        return Held({**a.ends, **ends}, join_power_cuts(a.power_cuts, b.power_cuts))

    def shortcut(self, state: Held, carry: Held | None) -> BoundedSummary | None:
        if state.claims is None:
            return None
        for key, needed in state.claims.needed.items():
            ends = {} if carry is None else carry.ends.get(key, {})
            if any(ends.get(broker, _NOTHING).offset < end for broker, end in needed.items()):
                return None
        return BoundedSummary(state.claims.checked, state.claims.tracing)

    def reduce(self, segment: Segment, carry: Held | None) -> BoundedSummary:
        summary = BoundedSummary(tracing=frozenset(brokers_in(_traced(segment))))
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
        for key, later in b.overruns.items():
            overruns[key] = _first_of_each_member(overruns.get(key, []) + later)
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
            HW_BOUNDED,
            checked=summary.checked,
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
            sentence = f"{claim} had not opened the log."
        else:
            sentence = f"{claim} recorded nothing about its log."
            return finding(self.name, tp, sentence, overrun.row, verdict=Verdict.UNKNOWN)
        return finding(self.name, tp, sentence, overrun.member_row, overrun.row)


def _first_of_each_member(overruns: list[Overrun]) -> list[Overrun]:
    counts: dict[int, int] = {}
    kept = []
    for overrun in overruns:
        counts[overrun.member] = counts.get(overrun.member, 0) + 1
        if counts[overrun.member] <= KEPT_PER_PARTITION:
            kept.append(overrun)
    return kept


def _traced(segment: Segment) -> Numbers:
    """The nodes of what was traced, which faults are not."""
    return segment.only(HwBounded.kinds - {Kind.FAULT_APPLIED}).numbers("node")


def _reports(part: Segment) -> dict[int, Numbers]:
    """For each broker the positions of the events that report the end of its log."""
    offsets, nodes = part.numbers("log_end_offset"), part.numbers("node")
    positions = np.flatnonzero(~part.is_kind(Kind.HIGH_WATERMARK) & (offsets >= 0))
    reporters = nodes[positions]
    return {broker: positions[reporters == broker] for broker in brokers_in(reporters)}


def _log_end(part: Segment, position: int) -> LogEnd:
    event = part.slice(position, position + 1)
    is_load = bool(event.is_kind(Kind.LOG_LOADED)[0])
    loaded_at = int(event.numbers("time")[0]) if is_load else NEVER
    return LogEnd(int(event.numbers("log_end_offset")[0]), int(event.rows[0]), loaded_at)


def _is_back_from_a_power_cut(end: LogEnd, broker: int, losses: PowerCuts) -> bool:
    """Whether it opened the log in its first incarnation after a power cut, and has done nothing since."""
    cuts = [cut for cut in losses.cuts.get(broker, ()) if cut <= end.loaded_at]
    incarnations = [start for start in losses.starts.get(broker, ()) if start <= end.loaded_at]
    return bool(cuts) and sum(start > max(cuts) for start in incarnations) <= 1


def _overruns(
    part: Segment, carry: dict[int, LogEnd], losses: PowerCuts
) -> tuple[int, list[Overrun]]:
    """Return how many high watermarks of one partition were evaluated, and the overruns in row order."""
    positions = np.flatnonzero(part.is_kind(Kind.HIGH_WATERMARK))
    moves, reports = part.take(positions), _reports(part)
    offsets = part.numbers("log_end_offset")
    marks, leaders = moves.numbers("high_watermark"), moves.numbers("node")
    own = moves.numbers("log_end_offset")
    move_index, member = members(moves)
    overruns: list[Overrun] = []
    for broker in brokers_in(member):
        pairs = move_index[member == broker]
        own_reports = reports.get(broker, _NONE)
        before = np.searchsorted(own_reports, positions[pairs])
        carried = carry.get(broker, _NOTHING)
        held = np.full(len(pairs), carried.offset)
        held[before > 0] = offsets[own_reports[before[before > 0] - 1]]
        # The leader's own event carries its own log end offset, read at the same moment.
        itself = leaders[pairs] == broker
        held = np.where(itself & (own[pairs] >= 0), own[pairs], held)
        for index in np.flatnonzero(marks[pairs] > np.maximum(held, 0)).tolist():
            pair, last = int(pairs[index]), int(before[index])
            end = _log_end(part, int(own_reports[last - 1])) if last else carried
            if _is_back_from_a_power_cut(end, broker, losses):
                continue
            overruns.append(
                Overrun(
                    row=int(moves.rows[pair]),
                    leader=int(leaders[pair]),
                    high_watermark=int(marks[pair]),
                    member=broker,
                    log_end_offset=int(held[index]),
                    member_row=None if end is _NOTHING else end.row,
                )
            )
    return len(moves), sorted(overruns, key=lambda overrun: (overrun.row, overrun.member))


HW_BOUNDED: Final = Property(
    name="hw-bounded",
    promise="The high watermark is never above the log end offset of any member of the maximal ISR.",
    unit="high watermarks",
    unknown="An in-sync replica traced nothing at all, so its log end offset is not known.",
    source="Partition.maybeIncrementLeaderHW; KIP-497 for the maximal ISR.",
    check=HwBounded,
    decided_from=frozenset({EventSource.TRACES, EventSource.FAULTS}),
    stand_ins=frozenset({EventSource.BROKER_LOGS}),
    reason=replicas.hw_bounded,
    breaks=breaks.HW_BOUNDED,
)
