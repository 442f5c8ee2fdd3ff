"""A leader takes out of its ISR, in time, who no longer keeps up.

**isr-shrinks-in-time**: a member of the ISR that has not reached its leader's log end for longer than
``replica.lag.time.max.ms`` is proposed for removal within one and a half times this setting, because the leader looks
at its followers every half of it. Asking counts: whether the controller or ZooKeeper agrees does not matter.
Smallest break: the lag time is 4 ms; broker 1 leads t-0 with the ISR [1, 2] and appends at 2 ms and at 9 ms, and
broker 2 appends nothing.

The idea: a fetch states the end of the follower's log, and a follower fetches in a leader epoch only after it has
traced that it follows in this epoch. So a follower whose log has not gone beyond offset n since then was last caught up
before the leader's log went beyond n, or when the epoch began. From the lag time after that moment on, the leader finds
it lagging whenever it looks. It looks within half of the lag time, and proposes, if it leads, its ISR is committed, and
no change of the ISR is in flight.

What a correct cluster does and is not convicted for: a follower that holds all of an idle leader's log stays without
any fetch (KAFKA-7152); while a change of the ISR is in flight, even if it is never answered, the leader proposes
nothing else. A leader that is deposed or cut off from its controller continues, and is judged by its own ISR. A fault
on the leader's own broker explains everything while it is in force, unless it only concerns links, sessions and wall
clocks (``_HARMLESS``): a paused leader does not look. A leader counts as leading up to its last event as the leader.
On real runtimes a finding is ``unknown`` where the machine may explain it (``unexplained``); up to 100 ms that the
machine may explain are not a finding.

Limits: a refused proposal is not traced, so the leader is not judged until its next proposal or epoch; ends of logs
are known to the millisecond; brokers that trace nothing, such as those of Apache Kafka, are not judged.
Source: ReplicaManager (isr-expiration), Partition.maybeShrinkIsr, Replica.isCaughtUp; KIP-16.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import numpy as np

from nemesis.checkers.breaks import isr_shrinks as breaks
from nemesis.checkers.explain import isr_shrinks as explain
from nemesis.checkers.framework.event_list import Row
from nemesis.checkers.framework.findings import finding, tp_name
from nemesis.checkers.framework.fold import Fold, Results, conclude
from nemesis.checkers.framework.model import Finding, Verdict
from nemesis.checkers.framework.property import Property
from nemesis.checkers.framework.segment import Segment
from nemesis.checkers.liveness import attribution, isr_watches, log_ends, unexplained
from nemesis.checkers.liveness.isr_watches import Watch
from nemesis.checkers.liveness.log_ends import MS, NO_ENDS, Ends
from nemesis.checkers.liveness.time_spans import NONE, Spans, complement, intersection, union
from nemesis.checkers.replication.replica_rows import LOG_END_KINDS, TopicKey, partitions
from nemesis.history.events import Kind
from nemesis.history.sources import EventSource
from nemesis.history.vocabulary.harness import LAG_TIME

_HARMLESS: Final = frozenset(
    {
        *("partition", "stall-follower", "slow-link", "reset-connections", "bandwidth"),
        *("packet-loss", "packet-delay", "packet-duplication", "packet-reordering"),
        *("delay-control", "delay-alter-partition", "stray-requests", "slow-zookeeper"),
        *("expire-session", "delete-controller", "clock-skew"),
        *("elect-preferred", "reassign-partitions"),
    }
)
"""The kinds of faults that leave the process of a broker running and its disks in order."""
_GLOBAL: Final = frozenset(
    {
        *attribution.KINDS,
        Kind.HARNESS_LAG,
        Kind.MACHINE_LOAD,
        Kind.TIMEOUT_SETTING,
        Kind.BROKER_STARTED,
    }
)
_FOREVER: Final = 2**62


class Kept(NamedTuple):
    """A leader kept a lagging member in its ISR longer than it should have."""

    watch: Watch
    member: int
    reached: int
    """The highest end of the member's log in this leader epoch; −1: it had not begun to follow."""
    start: int
    """From here on the leader would have found the member lagging whenever it looked, in ns."""
    stop: int
    over_ms: int
    """By how much the time from ``start`` to ``stop`` exceeds half of the lag time."""
    rows: tuple[int, ...]
    """The leader's event that the member did not catch up with, and the last event of the member's log, if any."""


@dataclass(slots=True)
class Replicas:
    """What is traced of one partition."""

    rows: list[Row] = field(default_factory=list)
    ends: Ends = NO_ENDS


@dataclass(slots=True)
class Summary:
    rows: list[Row] = field(default_factory=list)
    replicas: dict[TopicKey, Replicas] = field(default_factory=dict)


class IsrShrinks(Fold[Summary]):
    kinds = _GLOBAL | isr_watches.KINDS | LOG_END_KINDS
    columns = (
        *("topic", "topic_id", "partition", "incarnation", "leader_epoch", "isr"),
        *log_ends.COLUMNS,
        *attribution.COLUMNS,
        *("effect", "setting", "duration_ms"),
    )

    @classmethod
    def properties(cls) -> tuple[Property, ...]:
        return (ISR_SHRINKS_IN_TIME,)

    def reduce(self, segment: Segment) -> Summary:
        return Summary(
            list(segment.only(_GLOBAL).events(*self.columns)),
            {
                key: Replicas(
                    list(part.only(isr_watches.KINDS).events(*self.columns)),
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
        return Summary(a.rows + b.rows, a.replicas)

    def finish(self, summary: Summary) -> Results:
        settings = (event for _, event in summary.rows if event.setting == LAG_TIME)
        lag_ms = next((event.duration_ms for event in settings), None)
        if lag_ms is None:
            return conclude(ISR_SHRINKS_IN_TIME, checked=0)
        tracing = {event.node for _, event in summary.rows if event.kind == Kind.BROKER_STARTED}
        checked, laggards = 0, 0
        findings: list[Finding] = []
        for key, traced in sorted(summary.replicas.items(), key=lambda item: str(item[0])):
            replicas = Replicas(traced.rows, log_ends.thinned(traced.ends))
            for watch in isr_watches.watches(replicas.rows, replicas.ends):
                leader = watch.began[1].node
                members = [node for node in watch.isr if node != leader and node in tracing]
                windows = _undisturbed(summary.rows, watch) if members else NONE
                for member in members:
                    checked += 1
                    kept = _kept(watch, member, replicas, windows, lag_ms * MS)
                    laggards += kept is not None
                    if kept is not None and kept.over_ms > 0:
                        findings += _findings(key, kept, lag_ms, summary.rows)
        numbers = {"bound_ms": lag_ms * 1.5, "laggards": float(laggards)}
        return conclude(ISR_SHRINKS_IN_TIME, checked=checked, findings=findings, numbers=numbers)


def _undisturbed(rows: Sequence[Row], watch: Watch) -> Spans:
    """Return the parts of a watch in which no fault kept the leader's process from looking at its followers."""
    broker = watch.began[1].process
    striking = {
        event.fault_id
        for _, event in rows
        if event.fault not in _HARMLESS and broker in (event.targets or ())
    }
    forces = unexplained.explained(item for item in rows if item[1].fault_id in striking)
    return complement(forces, watch.opened, watch.closed)


def _kept(
    watch: Watch, member: int, replicas: Replicas, windows: Spans, lag_ns: int
) -> Kept | None:
    """Return the longest time for which a member lagged and was kept; None if it never lagged long enough to go."""
    began = watch.began[1]
    leader = log_ends.leader_steps(watch.began, watch.closed, replicas.ends)
    follower = log_ends.follower_steps(member, began.leader_epoch, replicas.rows, replicas.ends)
    # The member was last caught up when the leader's log first went beyond the member's highest end.
    passed = np.searchsorted(leader.end, follower.end, side="right")
    is_behind = passed < len(leader.end)
    starts = leader.time[passed[is_behind]] + lag_ns
    stops = np.append(follower.time[1:], _FOREVER)[is_behind]
    # At every moment of these spans the leader finds the member lagging if it looks. The spans of two steps may
    # overlap: the later step is only known not to have ended the lag.
    lags = np.stack([starts, stops], axis=1)[starts < stops]
    spans = intersection(union(lags), windows)
    if not len(spans):
        return None
    start, stop = spans[np.argmax(spans[:, 1] - spans[:, 0])].tolist()
    step = int(np.flatnonzero((starts < stops) & (starts < stop))[-1])
    position = int(np.flatnonzero(is_behind)[step])
    rows = (int(leader.row[passed[position]]), int(follower.row[position]))
    return Kept(
        watch,
        member,
        int(follower.end[position]),
        start,
        stop,
        (stop - start - lag_ns // 2) // MS,
        tuple(row for row in rows if row >= 0),
    )


def _findings(key: TopicKey, kept: Kept, lag_ms: int, rows: Sequence[Row]) -> Iterator[Finding]:
    since = kept.start - lag_ms * MS
    excuse = unexplained.excuse(rows, since, kept.stop, kept.over_ms)
    if excuse is not None and kept.over_ms <= unexplained.MAX_LAG_MS:
        return
    began_row, began = kept.watch.began
    tp = tp_name(key[0], key[2])
    state = (
        f"it had not begun to follow in leader epoch {began.leader_epoch}"
        if kept.reached < 0
        else f"its log had reached {kept.reached} at most"
    )
    sentence = (
        f"Leader {began.node} of {tp} kept broker {kept.member} in its ISR, and proposed no other ISR, for "
        f"{(kept.stop - kept.start) // MS:,} ms in which the broker had not been caught up for "
        f"{lag_ms:,} ms (replica.lag.time.max.ms): {state}. A leader looks every {lag_ms // 2:,} ms."
    )
    yield finding(
        ISR_SHRINKS_IN_TIME.name,
        tp,
        sentence if excuse is None else f"{sentence} But {excuse}.",
        *sorted({began_row, *kept.rows, kept.watch.last_row}),
        verdict=Verdict.INVALID if excuse is None else Verdict.UNKNOWN,
    )


ISR_SHRINKS_IN_TIME: Final = Property(
    name="isr-shrinks-in-time",
    promise="A leader proposes the removal of a member that lags within one and a half times replica.lag.time.max.ms.",
    unit="members of committed ISRs, each as long as the ISR stays",
    unknown="The harness did not record the lag time, no leader had a follower in its ISR, or the machine was slow.",
    source="ReplicaManager (isr-expiration), Partition.maybeShrinkIsr; KIP-16.",
    check=IsrShrinks,
    decided_from=frozenset({EventSource.TRACES, EventSource.FAULTS, EventSource.HARNESS}),
    recorded_since=4,
    reason=explain.isr_shrinks_in_time,
    breaks=breaks.ISR_SHRINKS_IN_TIME,
)
