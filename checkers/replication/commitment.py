"""What has once been below a high watermark stays, and only that is acknowledged.

* **no-truncation-below-hw**: (a) a replica that a leader counted in its maximal ISR when it set high watermark ``h``
  never cuts its log below ``h`` later, and neither comes back from a crash nor from a move to another log directory
  with less; (b) no replica, in the ISR or not, cuts its log below the high watermark that it has itself.
  Smallest breaks: (a) leader 1 sets high watermark 5 with maximal ISR [1, 2]; broker 2 truncates to 4; (b) broker 2
  has high watermark 5 and truncates to 4.
* **ack-after-commit**: a produce under ``acks=all`` is acknowledged only when the leader's high watermark has passed
  its last record.
  Smallest break: an acknowledgement of offset 7 by a leader that never had a high watermark above 7.

Why (a) holds: every leader elected from the ISR has all records below ``h``, so a follower's log agrees with it
at least that far; truncation by leader epoch never cuts what agrees. Truncating to a replica's own, lagging high
watermark does (that is how Kafka lost data before KIP-101).

Why (b) holds: a follower takes over its leader's high watermark only from an answer that finds its log to agree with
the leader's, and only up to the end of its log. So what lies below is committed, and each later leader has it. A
follower that takes it over before it cuts what the leader does not have calls records committed that are not, and
consumers may read them there (KAFKA-14704).

What a correct cluster does and is not convicted for: cutting at or above ``h``; cutting anything outside the ISR;
a leader whose own high watermark fell after it had been demoted, answering an earlier produce; an unclean election
that is permitted (the partition is then exempt); losing unsynced records in a power cut: what was set
before the next start does not bind the broker that was struck; deleting the log of a replica that was taken out of the
ISR before: what was set before the deletion does not bind that broker, nor what a leader sets that had not heard of it;
cutting below a mark that lies where compaction has been: who follows a log of which all batches of an epoch are gone
never hears of that epoch, and as leader it sends a replica of that epoch back to the one before.

Limits: once a broker has lost unsynced records in a power cut, (b) is not judged any more: a leader that has lost
committed records makes correct followers cut theirs. Histories of older versions do not record the high watermark
before a truncation, and are judged by (a) alone.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import numpy as np

from nemesis.checkers import unclean
from nemesis.checkers.breaks import replicas as breaks
from nemesis.checkers.explain import replicas
from nemesis.checkers.framework.findings import finding, tp_name
from nemesis.checkers.framework.fold import Results, Scan, conclude
from nemesis.checkers.framework.model import Finding, Verdict
from nemesis.checkers.framework.property import Property
from nemesis.checkers.framework.segment import Mask, Segment
from nemesis.checkers.power_cuts import NEVER, PowerCuts, join_power_cuts, power_cuts
from nemesis.checkers.replication import removed_replicas
from nemesis.checkers.replication.removed_replicas import Freed, Removals
from nemesis.checkers.replication.replica_rows import (
    TopicKey,
    are_committed,
    high_watermark_rows,
    members,
    partitions,
)
from nemesis.checkers.unclean import Election, Elections, Permissions, elections_in, permissions
from nemesis.history.events import Event, Kind
from nemesis.history.sources import EventSource

LISTED_PER_PARTITION = 3
"""Violations of a partition that come before those of other partitions in the list of findings."""
KEPT_PER_PARTITION = 100
_NOT_FREED = Freed(NEVER, NEVER - 1)

_DID: dict[str, str] = {
    Kind.TRUNCATE: "truncated its log",
    Kind.LOG_LOADED: "came back with its log",
    Kind.LOG_DIR_CHANGED: "went on in another log directory",
}

Mark = tuple[int, int]
"""(high watermark, its row)"""
Marks = dict[TopicKey, dict[tuple[int, ...], Mark]]
"""Per partition, the highest high watermark so far, by whom it binds."""


def join_marks(a: Marks, b: Marks) -> Marks:
    """The higher mark of each; the earlier one when they are equal."""
    joined = dict(a)
    for key, marks in b.items():
        merged = dict(joined.get(key, {}))
        for leader, mark in marks.items():
            if leader not in merged or mark[0] > merged[leader][0]:
                merged[leader] = mark
        joined[key] = merged
    return joined


Broken = tuple[str, int | None, int]
"""(sentence, row of the commitment, row that breaks it)"""


@dataclass(slots=True)
class CommitmentSummary:
    checked: int = 0
    broken: dict[TopicKey, list[Broken]] = field(default_factory=dict)
    """The first few of each partition."""
    counts: dict[TopicKey, int] = field(default_factory=dict)
    elections: dict[TopicKey, Elections] = field(default_factory=dict)
    permissions: Permissions = field(default_factory=Permissions)


def _combine(a: CommitmentSummary, b: CommitmentSummary) -> CommitmentSummary:
    broken, counts = dict(a.broken), dict(a.counts)
    for key, violations in b.broken.items():
        broken[key] = (broken.get(key, []) + violations)[:KEPT_PER_PARTITION]
        counts[key] = counts.get(key, 0) + b.counts[key]
    return CommitmentSummary(
        a.checked + b.checked,
        broken,
        counts,
        {
            key: a.elections.get(key, Elections()).join(b.elections.get(key, Elections()))
            for key in {**a.elections, **b.elections}
        },
        a.permissions.join(b.permissions),
    )


def _conclude(decided: Property, summary: CommitmentSummary) -> Results:
    elected: dict[tuple[str, int], list[Election]] = defaultdict(list)
    for (topic, _, partition), elections in summary.elections.items():
        elected[topic, partition] += elections.unclean()
    listed: list[Finding] = []
    others: list[Finding] = []
    for (topic, _, partition), violations in summary.broken.items():
        allowed = summary.permissions.excuse(topic, partition, elected[topic, partition])
        verdict = Verdict.VALID if allowed else Verdict.INVALID
        tp = tp_name(topic, partition)
        findings = [
            finding(decided.name, tp, sentence.format(tp=tp), *rows, verdict=verdict)
            for sentence, *rows in violations
        ]
        listed += findings[:LISTED_PER_PARTITION]
        others += findings[LISTED_PER_PARTITION:]
    return conclude(
        decided,
        checked=summary.checked,
        findings=[*listed, *others],
        finding_count=sum(summary.counts.values()),
    )


class Step(NamedTuple):
    """A high watermark that counted a broker in: its row, its time, the epoch of its leader, and whether the broker was
    in the committed ISR, not only proposed for it."""

    high_watermark: int
    row: int
    time: int
    leader_epoch: int
    is_committed: bool

    def binds(self, freed: Freed) -> bool:
        """Whether it still counts for a broker that has been freed so."""
        return self.time > freed.time and self._rank >= (freed.leader_epoch, True)

    def covers(self, other: Step) -> bool:
        """Whether it binds to as much as an earlier one, whatever frees the broker."""
        return self.high_watermark >= other.high_watermark and self._rank >= other._rank

    @property
    def _rank(self) -> tuple[int, bool]:
        return self.leader_epoch, self.is_committed


Steps = dict[int, tuple[Step, ...]]
"""By broker, see ``_staircase``."""


@dataclass(frozen=True, slots=True)
class Bonds:
    """What binds brokers: the high watermarks that counted them in, and what may have freed them of it."""

    steps: dict[TopicKey, Steps] = field(default_factory=dict)
    power_cuts: PowerCuts = field(default_factory=PowerCuts)
    removals: dict[TopicKey, Removals] = field(default_factory=dict)
    cleaned: dict[TopicKey, int] = field(default_factory=dict)
    """Up to where compaction had come."""


class NoTruncationBelowHw(Scan[Bonds, CommitmentSummary]):
    kinds = frozenset(
        {
            Kind.HIGH_WATERMARK,
            Kind.TRUNCATE,
            Kind.LOG_LOADED,
            Kind.LOG_DIR_CHANGED,
            Kind.LOG_CLEANED,
            Kind.LEADER_ELECTED,
            Kind.FAULT_APPLIED,
            *removed_replicas.KINDS,
            *unclean.KINDS,
        }
    )
    columns = (
        *removed_replicas.COLUMNS,
        *unclean.COLUMNS,
        "leader_epoch",
        "topic",
        "topic_id",
        "partition",
        "last_offset",
        "log_end_offset",
        "high_watermark",
        "high_watermark_before",
        "maximal_isr",
        "fault",
        "targets",
    )

    @classmethod
    def properties(cls) -> tuple[Property, ...]:
        return (NO_TRUNCATION_BELOW_HW,)

    def state(self, segment: Segment) -> Bonds:
        bonds = Bonds(power_cuts=power_cuts(segment))
        for key, part in partitions(segment):
            bonds.removals[key] = removed_replicas.removals(part)
            bonds.cleaned[key] = _cleaned_below(part)
            moves = high_watermark_rows(part)
            bonds.steps[key] = {
                broker: _staircase(steps) for broker, steps in _steps(moves).items()
            }
        return bonds

    def join(self, a: Bonds, b: Bonds) -> Bonds:
        steps = dict(a.steps)
        for key, later_steps in b.steps.items():
            earlier_steps = steps.get(key, {})
            steps[key] = earlier_steps | {
                broker: _staircase([*earlier_steps.get(broker, ()), *later])
                for broker, later in later_steps.items()
            }
        removals = dict(a.removals)
        for key, later_ones in b.removals.items():
            removals[key] = removed_replicas.join(removals.get(key, Removals()), later_ones)
        cleaned = {key: max(a.cleaned.get(key, 0), end) for key, end in b.cleaned.items()}
        power = join_power_cuts(a.power_cuts, b.power_cuts)
        return Bonds(steps, power, removals, a.cleaned | cleaned)

    def reduce(self, segment: Segment, carry: Bonds | None) -> CommitmentSummary:
        summary = CommitmentSummary(permissions=permissions(segment))
        before = carry or Bonds()
        losses = join_power_cuts(before.power_cuts, power_cuts(segment))
        for key, part in partitions(segment):
            summary.elections[key] = elections_in(part)
            cuts = part.where(part.is_kind(Kind.TRUNCATE, Kind.LOG_LOADED, Kind.LOG_DIR_CHANGED))
            summary.checked += len(cuts)
            removed = before.removals.get(key, Removals())
            deletions = removed_replicas.freed_at_cuts(part, cuts, removed)
            cleaned = max(before.cleaned.get(key, 0), _cleaned_below(part))
            steps = before.steps.get(key, {})
            violations = list(_cuts_below(part, cuts, steps, losses, deletions, cleaned))
            if violations:
                summary.broken[key] = violations[:KEPT_PER_PARTITION]
                summary.counts[key] = len(violations)
        return summary

    def combine(self, a: CommitmentSummary, b: CommitmentSummary) -> CommitmentSummary:
        return _combine(a, b)

    def finish(self, summary: CommitmentSummary) -> Results:
        return _conclude(NO_TRUNCATION_BELOW_HW, summary)


def _steps(moves: Segment) -> dict[int, list[Step]]:
    """By broker."""
    move_index, member = members(moves)
    is_committed = are_committed(moves, move_index, member)
    columns = (
        moves.numbers("high_watermark"),
        moves.rows,
        moves.numbers("time"),
        moves.numbers("leader_epoch"),
    )
    steps: dict[int, list[Step]] = {}
    for broker in np.unique(member).tolist():
        of_broker = member == broker
        values = (*(column[move_index[of_broker]] for column in columns), is_committed[of_broker])
        steps[broker] = [Step(*row) for row in zip(*(v.tolist() for v in values), strict=True)]
    return steps


def _staircase(steps: list[Step]) -> tuple[Step, ...]:
    """Of marks in order of time those that no later one of as late a leader reaches. Whatever frees a broker of some,
    the highest of the rest is among these. Mostly one."""
    kept: list[Step] = []
    for step in reversed(steps):
        if not any(later.covers(step) for later in kept):
            kept.append(step)
    return tuple(reversed(kept))


def _cleaned_below(part: Segment) -> int:
    """Up to where the compactions of one partition had come."""
    cleanings = part.where(part.is_kind(Kind.LOG_CLEANED))
    return int(cleanings.numbers("last_offset").max()) + 1 if len(cleanings) else 0


def _cuts_below(
    part: Segment,
    cuts: Segment,
    steps: Steps,
    losses: PowerCuts,
    deletions: dict[int, Freed],
    cleaned: int,
) -> Iterator[Broken]:
    """The cuts of one partition's logs that went below a mark that was set before them and binds.

    ``deletions`` has, by the row of a cut, how its broker was freed by the deletion of its log; compaction had come up
    to ``cleaned``.
    """
    if not len(cuts):
        return
    own_steps = _steps(high_watermark_rows(part))
    for row, event in cuts.events("node", "log_end_offset", "high_watermark_before"):
        if event.node is None or event.log_end_offset is None:
            continue
        deletion = deletions.get(row, _NOT_FREED)
        freed = deletion._replace(time=max(deletion.time, losses.freed_at(event.node, event.time)))
        before = [step for step in own_steps.get(event.node, ()) if step.row < row]
        binding = [step for step in (*steps.get(event.node, ()), *before) if step.binds(freed)]
        highest = max(binding, key=lambda step: (step.high_watermark, step.row), default=None)
        did = f"Broker {event.node} {_DID[event.kind]} at {event.log_end_offset} in {{tp}}, below"
        if highest is not None and event.log_end_offset < highest.high_watermark > cleaned:
            mark = highest.high_watermark
            yield (
                f"{did} the high watermark {mark} of a leader that had it in its ISR.",
                highest.row,
                row,
            )
        elif _is_below_its_own_mark(event, losses, cleaned):
            yield f"{did} its own high watermark {event.high_watermark_before}.", None, row


def _is_below_its_own_mark(cut: Event, losses: PowerCuts, cleaned: int) -> bool:
    """Whether a replica cut its log below the high watermark that it had, and nothing excuses it."""
    mark, end = cut.high_watermark_before, cut.log_end_offset
    if mark is None or end is None or losses.struck_before(cut.time):
        return False
    return end < mark > cleaned


class AckAfterCommit(Scan[Marks, CommitmentSummary]):
    kinds = frozenset({Kind.HIGH_WATERMARK, Kind.BECOME_LEADER, Kind.PRODUCE_ACKNOWLEDGED})
    columns = (
        "topic",
        "topic_id",
        "partition",
        "node",
        "incarnation",
        "acks",
        "offset",
        "last_offset",
        "high_watermark",
    )

    @classmethod
    def properties(cls) -> tuple[Property, ...]:
        return (ACK_AFTER_COMMIT,)

    def state(self, segment: Segment) -> Marks:
        """By (broker, incarnation): the highest high watermark that it had as leader."""
        marks: Marks = {}
        moves = segment.where(segment.is_kind(Kind.HIGH_WATERMARK, Kind.BECOME_LEADER))
        for key, part in partitions(moves):
            marks[key] = {}
            for (node, incarnation), leader_moves in part.by("node", "incarnation"):
                values = leader_moves.numbers("high_watermark")
                top = int(np.argmax(values))
                marks[key][node, -1 if incarnation is None else incarnation] = (
                    int(values[top]),
                    int(leader_moves.rows[top]),
                )
        return marks

    def join(self, a: Marks, b: Marks) -> Marks:
        return join_marks(a, b)

    def reduce(self, segment: Segment, carry: Marks | None) -> CommitmentSummary:
        summary = CommitmentSummary()
        for key, part in partitions(segment):
            acked = part.is_kind(Kind.PRODUCE_ACKNOWLEDGED) & (part.numbers("acks", 0) == -1)
            summary.checked += int(acked.sum())
            violations = list(_early_acknowledgements(part, acked, (carry or {}).get(key, {})))
            if violations:
                summary.broken[key] = violations[:KEPT_PER_PARTITION]
                summary.counts[key] = len(violations)
        return summary

    def combine(self, a: CommitmentSummary, b: CommitmentSummary) -> CommitmentSummary:
        return _combine(a, b)

    def finish(self, summary: CommitmentSummary) -> Results:
        return _conclude(ACK_AFTER_COMMIT, summary)


def _early_acknowledgements(
    part: Segment, acked: Mask, carry: dict[tuple[int, ...], Mark]
) -> Iterator[Broken]:
    """The acknowledgements of one partition that no high watermark of the same leader covers.

    The event's own high watermark may have been read after the leader was demoted, so one that looks early is
    held against all that this leader had before.
    """
    own = part.numbers("high_watermark")
    last = np.maximum(part.numbers("last_offset"), part.numbers("offset"))
    early = acked & (own <= last)
    if not early.any():
        return
    nodes, incarnations = part.numbers("node"), part.numbers("incarnation")
    highest = {leader: mark[0] for leader, mark in carry.items()}
    rows = {leader: mark[1] for leader, mark in carry.items()}
    for index in range(len(part)):
        leader = (int(nodes[index]), int(incarnations[index]))
        known = highest.get(leader, -1)
        if early[index] and known <= last[index]:
            sentence = (
                f"Leader {leader[0]} acknowledged offset {last[index]} of {{tp}} under acks=all while its high "
                f"watermark had not passed {max(known, int(own[index]))}."
            )
            yield sentence, rows.get(leader), int(part.rows[index])
        elif not acked[index] and own[index] > known:
            highest[leader], rows[leader] = int(own[index]), int(part.rows[index])


NO_TRUNCATION_BELOW_HW: Final = Property(
    name="no-truncation-below-hw",
    promise="No replica cuts its log below a high watermark that it was part of, or that it has itself.",
    unit="truncations, reloads and moves",
    unknown="No log was truncated, reloaded or moved.",
    source="KIP-101, KIP-279.",
    check=NoTruncationBelowHw,
    decided_from=frozenset({EventSource.METADATA_LOG, EventSource.TRACES, EventSource.FAULTS}),
    reason=replicas.no_truncation_below_hw,
    breaks=breaks.NO_TRUNCATION_BELOW_HW,
)

ACK_AFTER_COMMIT: Final = Property(
    name="ack-after-commit",
    promise="With acks=all a produce is acknowledged only once it is committed.",
    unit="acknowledgements",
    unknown="No produce under ``acks=all`` was acknowledged.",
    source="DelayedProduce; the meaning of ``acks=all`` in Kafka's producer configuration.",
    check=AckAfterCommit,
    decided_from=frozenset({EventSource.TRACES}),
    reason=replicas.ack_after_commit,
    breaks=breaks.ACK_AFTER_COMMIT,
)
