"""A leader whose ISR has changed commits at once what all members of the new ISR hold.

**hw-follows-isr**: when a leader learns that an ISR is committed, its high watermark is at least the smallest log end
that all members have shown to it, before it does anything else with the partition.
Smallest break: broker 1 leads t-0 with the ISR [1, 2, 3] and high watermark 0; broker 2 has fetched from offset 1 on,
broker 3 from offset 0; the ISR [1, 2] is committed; broker 1 appends, and its high watermark is 0.

The promise is what the high watermark is: the smallest log end of the ISR. The replica that held it back does not
count any more. If the leader waits for another event, an acknowledgement waits with it, and without another event for
ever (KAFKA-13091). Both happen in one step of the leader, so the next event that the leader traces of the partition
decides. Time does not matter: a slow machine is not convicted.

The idea: a fetch states the end of the follower's log. Two things show which fetch a leader has received: its own event
has the ends that it knows, and the records show what it must know. If a follower has record n, and its log ended at e
before the leader appended n, then the answer with n was to a fetch from e or later: an earlier fetch was answered
before n existed. The leader has taken in this fetch before it answered.

What a correct cluster does and is not convicted for: the ISR has fewer members than ``min.insync.replicas``
(KAFKA-15583), of which the largest value of the leader's process counts; a replica outside of the ISR holds the high
watermark back while it is caught up and about to join: the leader is judged only if all of these had lagged for
longer than ``replica.lag.time.max.ms``; a member whose log was truncated or opened again in this leader epoch shows
nothing; a leader that has started again in its leader epoch is not judged.

Limits: topics with settings of their own about in-sync replicas are left out. Log ends are known to the millisecond.
Brokers of Apache Kafka trace nothing and are not judged: their logs do not show what a leader has received.
Source: Partition.maybeIncrementLeaderHW, handleAlterPartitionUpdate; KIP-497, KAFKA-13091.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import numpy as np
import pyarrow.compute as pc

from nemesis.checkers.breaks import isr_commits as breaks
from nemesis.checkers.explain import isr_commits as explain
from nemesis.checkers.framework.event_list import Row
from nemesis.checkers.framework.findings import finding, tp_name
from nemesis.checkers.framework.fold import Fold, Results, conclude
from nemesis.checkers.framework.model import Finding
from nemesis.checkers.framework.property import Property
from nemesis.checkers.framework.segment import Numbers, Segment
from nemesis.checkers.liveness import log_ends
from nemesis.checkers.liveness.log_ends import MS, NO_ENDS, Ends
from nemesis.checkers.replication.replica_rows import LOG_END_KINDS, TopicKey, partitions
from nemesis.checkers.znodes import TOPIC_CONFIGS
from nemesis.history.events import Event, Kind
from nemesis.history.sources import EventSource
from nemesis.history.vocabulary.harness import LAG_TIME

_LEADER: Final = "leader"
_UNKNOWN: Final = -1
_FIRST_FETCHED: Final = 2
"""In the steps of a follower, behind the unknown end and the end with which it began to follow."""
_LOSES: Final = frozenset({Kind.TRUNCATE, Kind.LOG_LOADED})
_DECIDING: Final = frozenset(
    {
        *_LOSES,
        Kind.BECOME_LEADER,
        Kind.BECOME_FOLLOWER,
        Kind.ISR_CHANGE_PROPOSED,
        Kind.ISR_CHANGE_COMMITTED,
        Kind.REPLICA_STOPPED,
    }
)
_OF_BROKERS: Final = frozenset(
    {Kind.BROKER_STARTED, Kind.BROKER_RECONFIGURED, Kind.TIMEOUT_SETTING}
)
Process = tuple[str, int | None]
"""A broker's process: its name and its incarnation."""


@dataclass(slots=True)
class Replicas:
    """What is traced of one partition."""

    rows: list[Row] = field(default_factory=list)
    ends: Ends = NO_ENDS


@dataclass(slots=True)
class Summary:
    rows: list[Row] = field(default_factory=list)
    special: frozenset[str] = frozenset()
    """Topics with settings of their own about in-sync replicas."""
    replicas: dict[TopicKey, Replicas] = field(default_factory=dict)


class Shown(NamedTuple):
    """A log end that a member has shown to its leader, and the event that proves it."""

    end: int
    row: int
    member: int


@dataclass(slots=True)
class Term:
    """One leader epoch of one process."""

    began: Row
    mark: Row
    """The last report of its high watermark."""


class Commit(NamedTuple):
    """A committed ISR, and the smallest end that its members have shown."""

    row: int
    term: Term
    isr: tuple[int, ...]
    shown: Shown


class Settings(NamedTuple):
    """What the configuration of the run says."""

    lag_ns: int
    tracing: frozenset[int | None]
    """The brokers that trace."""
    min_isr: dict[Process, int]
    """The largest min.insync.replicas of each process."""


class IsrCommits(Fold[Summary]):
    kinds = _OF_BROKERS | _DECIDING | LOG_END_KINDS | {Kind.HIGH_WATERMARK, Kind.ZNODE}
    columns = (
        *("topic", "topic_id", "partition", "incarnation", "leader_epoch", "isr", "replicas"),
        *log_ends.COLUMNS,
        *(
            "high_watermark",
            "offsets",
            "min_insync_replicas",
            "setting",
            "duration_ms",
            "path",
            "data",
        ),
    )

    @classmethod
    def properties(cls) -> tuple[Property, ...]:
        return (HW_FOLLOWS_ISR,)

    def reduce(self, segment: Segment) -> Summary:
        return Summary(
            list(segment.only(_OF_BROKERS).events(*self.columns)),
            _special(segment.only({Kind.ZNODE})),
            {
                key: Replicas(
                    list(part.take(_telling(part)).events(*self.columns)),
                    log_ends.ends(part.only(LOG_END_KINDS)),
                )
                for key, part in partitions(segment)
            },
        )

    def combine(self, a: Summary, b: Summary) -> Summary:
        for key, later in b.replicas.items():
            known = a.replicas.setdefault(key, Replicas())
            a.replicas[key] = Replicas(
                known.rows + later.rows, log_ends.join(known.ends, later.ends)
            )
        return Summary(a.rows + b.rows, a.special | b.special, a.replicas)

    def finish(self, summary: Summary) -> Results:
        settings = _settings(summary.rows)
        findings: list[Finding] = []
        checked = 0
        for key, traced in sorted(summary.replicas.items(), key=lambda item: str(item[0])):
            if settings is None or key[0] in summary.special:
                continue
            checked += sum(_is_watched_term(event, settings) for _, event in traced.rows)
            replicas = Replicas(traced.rows, log_ends.thinned(traced.ends))
            for commit, following in _decided(replicas, settings):
                checked += 1
                findings += _left_behind(key, commit, following)
        return conclude(HW_FOLLOWS_ISR, checked=checked, findings=findings)


def _is_watched_term(event: Event, settings: Settings) -> bool:
    """Whether a broker begins to lead, and what it would have to do with a committed ISR can be judged."""
    members = {*(event.replicas or ()), *(event.isr or ())}
    return (
        event.kind == Kind.BECOME_LEADER
        and (event.process, event.incarnation) in settings.min_isr
        and members <= settings.tracing
    )


def _special(znodes: Segment) -> frozenset[str]:
    if not len(znodes) or "path" not in znodes.columns.names:
        return frozenset()
    is_config = pc.fill_null(pc.starts_with(znodes.columns.arrow("path"), TOPIC_CONFIGS), False)
    configs = znodes.where(np.asarray(is_config.to_numpy(), dtype=np.bool_))
    return frozenset(
        (event.path or "").removeprefix(TOPIC_CONFIGS)
        for _, event in configs.events("path", "data")
        if "insync" in (event.data or "")
    )


def _telling(part: Segment) -> Numbers:
    """The positions of the rows of one partition that count, in their order.

    Events of ``_DECIDING`` all do. Between two of these, the first event of each leader does, because it decides on a
    commit before it, and the last high watermark of each leader.
    """
    deciding, is_mark = part.is_kind(*_DECIDING), part.is_kind(Kind.HIGH_WATERMARK)
    is_append = part.is_kind(Kind.APPEND) & part.is_word("role", {_LEADER})
    between, nodes = np.cumsum(deciding, dtype=np.int64), part.numbers("node")
    firsts = _edges(np.flatnonzero(is_mark | is_append), between, nodes, is_first=True)
    lasts = _edges(np.flatnonzero(is_mark), between, nodes, is_first=False)
    return np.unique(np.concatenate([np.flatnonzero(deciding), firsts, lasts]))


def _edges(positions: Numbers, between: Numbers, nodes: Numbers, *, is_first: bool) -> Numbers:
    """Return the first or the last of these positions for each stretch and node."""
    ranked = positions[np.lexsort((positions, nodes[positions], between[positions]))]
    if not len(ranked):
        return ranked
    differs = (np.diff(between[ranked]) != 0) | (np.diff(nodes[ranked]) != 0)
    edges: Numbers = ranked[np.append(True, differs) if is_first else np.append(differs, True)]
    return edges


def _settings(rows: Iterable[Row]) -> Settings | None:
    """Return what is configured; None if the lag time is not recorded."""
    lag_ms: int | None = None
    min_isr: dict[Process, int] = {}
    tracing: set[int | None] = set()
    for _, event in rows:
        if event.kind == Kind.TIMEOUT_SETTING:
            lag_ms = event.duration_ms if event.setting == LAG_TIME else lag_ms
        else:
            tracing.add(event.node)
            if event.min_insync_replicas is not None:
                process = (event.process, event.incarnation)
                min_isr[process] = max(event.min_insync_replicas, min_isr.get(process, 1))
    return None if lag_ms is None else Settings(lag_ms * MS, frozenset(tracing), min_isr)


def _decided(replicas: Replicas, settings: Settings) -> Iterator[tuple[Commit, Row]]:
    """Yield each commit on which the leader has to act, and its next event."""
    terms: dict[Process, Term] = {}
    leaders: dict[int | None, set[Process]] = {}
    opened: dict[Process, Commit] = {}
    for position, item in enumerate(replicas.rows):
        event = item[1]
        process = (event.process, event.incarnation)
        if (commit := opened.pop(process, None)) is not None:
            yield commit, item
        term = terms.get(process)
        if event.kind == Kind.BECOME_LEADER:
            terms[process] = Term(item, item)
            leaders.setdefault(event.leader_epoch, set()).add(process)
        elif event.kind == Kind.BECOME_FOLLOWER:
            terms.pop(process, None)
        elif term is None or term.began[1].leader_epoch != event.leader_epoch:
            continue
        elif event.kind == Kind.HIGH_WATERMARK:
            terms[process] = Term(term.began, item)
        elif event.kind == Kind.ISR_CHANGE_COMMITTED and len(leaders[event.leader_epoch]) == 1:
            shown = _shown_by_all(replicas, position, term, settings)
            if shown is not None:
                opened[process] = Commit(item[0], term, tuple(event.isr or ()), shown)


def _shown_by_all(
    replicas: Replicas, position: int, term: Term, settings: Settings
) -> Shown | None:
    """Return the smallest end that all members of a committed ISR have shown; None if it need not be committed yet."""
    event, began = replicas.rows[position][1], term.began[1]
    isr = frozenset(event.isr or ())
    known = {*(began.replicas or ()), *(began.isr or ()), *isr}
    needed = settings.min_isr.get((event.process, event.incarnation))
    is_able = needed is not None and len(isr) >= min(needed, len(began.replicas or known))
    if not is_able or not known <= settings.tracing:
        return None
    outside = known - isr - {event.node}
    if not all(_has_lagged(replicas, term, node, event, settings.lag_ns) for node in outside):
        return None
    return min(max(_ends_shown(replicas, position, term, member)) for member in sorted(isr))


def _ends_shown(replicas: Replicas, position: int, term: Term, member: int) -> Iterator[Shown]:
    """Yield what the leader says that it knows of the member's log end, and what it must know."""
    row, event = replicas.rows[position]
    known = dict(zip(event.isr or (), event.offsets or (), strict=False))
    yield Shown(known.get(member, _UNKNOWN), row, member)
    if member == event.node:
        own = log_ends.leader_steps(term.began, event.time, replicas.ends)
        yield Shown(int(own.end[-1]), int(own.row[-1]), member)
    else:
        yield _shown_by_records(replicas, position, term, member)


def _has_lagged(replicas: Replicas, term: Term, node: int, commit: Event, lag_ns: int) -> bool:
    """Whether the leader cannot have seen this replica caught up within the lag time before the commit."""
    leader = log_ends.leader_steps(term.began, commit.time, replicas.ends)
    steps = log_ends.follower_steps(node, commit.leader_epoch, replicas.rows, replicas.ends)
    highest = int(steps.end[steps.time <= commit.time].max())
    passed = int(np.searchsorted(leader.end, highest, side="right"))
    return passed < len(leader.end) and int(leader.time[passed]) + lag_ns + MS < commit.time


def _shown_by_records(replicas: Replicas, position: int, term: Term, member: int) -> Shown:
    """Return the end of the member's log in the fetch that brought the last record that it had before the commit."""
    earlier, commit = replicas.rows[:position], replicas.rows[position][1]
    nothing = Shown(_UNKNOWN, replicas.rows[position][0], member)
    if _has_lost(earlier, member, commit.leader_epoch):
        return nothing
    steps = log_ends.follower_steps(member, commit.leader_epoch, earlier, replicas.ends)
    held = np.flatnonzero(steps.time < commit.time // MS * MS)
    # What the member had when it began to follow may be another leader's, and not cut yet.
    if not len(held) or held[-1] < _FIRST_FETCHED:
        return nothing
    leader = log_ends.leader_steps(term.began, commit.time, replicas.ends)
    passed = int(np.searchsorted(leader.end, steps.end[held[-1]] - 1, side="right"))
    if not 0 < passed < len(leader.end):
        return (
            nothing  # the leader had the record when it began to lead, or has traced no such record
        )
    before = np.flatnonzero(steps.time < int(leader.time[passed]) // MS * MS)
    return (
        Shown(int(steps.end[before[-1]]), int(steps.row[held[-1]]), member)
        if len(before)
        else nothing
    )


def _has_lost(rows: Iterable[Row], member: int, leader_epoch: int | None) -> bool:
    """Whether the member's log was truncated or opened since it first followed in this leader epoch."""
    is_following = False
    for _, event in rows:
        if event.node == member:
            is_following |= (
                event.kind == Kind.BECOME_FOLLOWER and event.leader_epoch == leader_epoch
            )
            if is_following and event.kind in _LOSES:
                return True
    return False


def _left_behind(key: TopicKey, commit: Commit, following: Row) -> Iterator[Finding]:
    row, event = following
    is_moved = event.kind == Kind.HIGH_WATERMARK
    mark = (event if is_moved else commit.term.mark[1]).high_watermark or 0
    if mark >= commit.shown.end:
        return
    tp = tp_name(key[0], key[2])
    sentence = (
        f"Leader {event.node} of {tp} learnt that the ISR {sorted(commit.isr)} is committed, and "
        f"{'set its high watermark to' if is_moved else 'left its high watermark at'} {mark}, though the logs of "
        f"all members reach {commit.shown.end}, which it knows from their fetches."
    )
    rows = sorted({commit.term.mark[0], commit.shown.row, commit.row})
    yield finding(HW_FOLLOWS_ISR.name, tp, sentence, *rows, row)


HW_FOLLOWS_ISR: Final = Property(
    name="hw-follows-isr",
    promise="When an ISR is committed, the leader commits at once what all its members have.",
    unit="terms of leaders and committed ISRs",
    unknown="No leader whose replicas all trace was seen, or the harness did not record the lag time.",
    source="Partition.maybeIncrementLeaderHW, handleAlterPartitionUpdate; KIP-497, KAFKA-13091.",
    check=IsrCommits,
    decided_from=frozenset({EventSource.TRACES, EventSource.METADATA_LOG, EventSource.HARNESS}),
    recorded_since=4,
    reason=explain.hw_follows_isr,
    breaks=breaks.HW_FOLLOWS_ISR,
)
