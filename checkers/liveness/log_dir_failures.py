"""A log directory that fails is taken offline, and nothing depends on it any more.

**log-dir-failures-handled**: of a broker with several log directories, one of which fails,
(a) the broker reports the failure if the directory refused it a call, as the disk itself has counted;
(b) it serves none of the replicas that lay there any more: it appends nothing, moves no high watermark, acknowledges
nothing, and begins neither to lead nor to follow;
(c) it creates a znode ``/log_dir_event_notification/log_dir_event_N`` that names it, within the time for which its
session may be silent;
(d) the controller takes it out of the ISR of each partition whose replica lay there, unless it is the last member, and
takes the leadership away, within the time of ``log_dir_bound_ms``.
Smallest breaks: (a) the disk refused broker 1 a call, and the broker reported nothing; (b) broker 1 reports that a
directory failed, and appends to a log in it 5 ms later; (c) it reports the failure, and creates no znode for 9 ms;
(d) it still leads a partition of this directory after 9 ms.

Why the bounds hold: a broker handles a failure in its next step and then waits for ZooKeeper alone. The controller that
is notified asks the broker about all its replicas, with a LeaderAndIsr, and writes what the answer says. Other faults
may have left a session without an answer, and a control request without one.

The time counts from the latest of: the failure; the last registration of the broker; the end of the controller's
failover; the end of the last fault of another kind; the first trace of the transaction with which the partition
depended on the broker, or of a later one. It counts up to the last trace of the broker's process, the beginning of the
next fault of another kind, the end of the controller's term, or the last time at which the state was certainly still
the same (``ZxidStarts``).

What a correct cluster does and is not convicted for: a broker whose last directory fails halts, and its process traces
nothing more; a directory that has nothing to write is not noticed; a session that ended makes (c) needless, because the
next registration makes the controller ask. Replicas that were opened in another directory or deleted afterwards, and
partitions of topics whose deletion was requested at some time, are not judged by (d). What the machine may explain is
``unknown``, and up to 100 ms of it are not a finding: a long step of a broker may move high watermarks after the
failure.

Limits: the logs of replicas that the broker had not opened for the controller yet are not known to lie anywhere. (a)
needs a disk that counts refused calls, which those of this harness do.
Source: KIP-112; LogDirFailureHandler, ReplicaManager.handleLogDirFailure, KafkaController
(processLogDirEventNotification, onBrokerLogDirFailure).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import msgspec
import numpy as np

from nemesis.checkers import znodes
from nemesis.checkers.breaks import log_dir_failures as breaks
from nemesis.checkers.explain import log_dir_failures as explain
from nemesis.checkers.framework.event_list import Row
from nemesis.checkers.framework.findings import finding, tp_name
from nemesis.checkers.framework.fold import Fold, Results, conclude
from nemesis.checkers.framework.model import Finding, Verdict
from nemesis.checkers.framework.property import Property
from nemesis.checkers.framework.segment import Segment
from nemesis.checkers.liveness import lost_replicas, unexplained
from nemesis.checkers.liveness.lost_replicas import Failure, Process, TopicPartition
from nemesis.checkers.liveness.recovery_bound import log_dir_bound_ms, session_bound_ms
from nemesis.checkers.liveness.terms import terms_of
from nemesis.checkers.liveness.time_spans import Spans, complement, intersection, spans
from nemesis.checkers.zxid_times import ZxidStarts, ZxidTimes
from nemesis.history.events import Event, Kind
from nemesis.history.sources import EventSource
from nemesis.history.vocabulary.faults import measurements

_FAULT: Final = "log-dir-failure"
_NOTIFICATIONS: Final = "/log_dir_event_notification/log_dir_event_"
_DELETIONS: Final = "/admin/delete_topics/"
_MS: Final = 1_000_000
_FOREVER: Final = 2**62
_SERVES: Final = frozenset(
    {
        Kind.APPEND,
        Kind.HIGH_WATERMARK,
        Kind.PRODUCE_ACKNOWLEDGED,
        Kind.BECOME_LEADER,
        Kind.BECOME_FOLLOWER,
    }
)
"""What a broker traces only of a replica that it serves."""
_OTHERS: Final = frozenset(
    {
        *lost_replicas.KINDS,
        *unexplained.KINDS,
        Kind.ZNODE,
        Kind.ZNODE_ATTEMPT,
        Kind.ZNODE_OUTCOME,
        Kind.CONTROLLER_ELECTED,
        Kind.CONTROLLER_FAILOVER,
        Kind.LEADER_ELECTED,
        Kind.ALTER_PARTITION_HANDLED,
    }
)

Served = dict[tuple[TopicPartition, Process], tuple[int, int]]
"""Of each replica in each process: time (ns) and row of the last event that shows that it was served."""


class Dependence(NamedTuple):
    """States of a partition, one after the other, that all depend on the same broker."""

    first: Row
    since_zxid: int
    until_zxid: int | None


@dataclass(slots=True)
class Summary:
    rows: list[Row] = field(default_factory=list)
    served: Served = field(default_factory=dict)


class LogDirFailures(Fold[Summary]):
    kinds = _SERVES | _OTHERS
    columns = (
        *znodes.COLUMNS,
        *lost_replicas.COLUMNS,
        *unexplained.COLUMNS,
        *("targets", "detail", "error"),
    )

    @classmethod
    def properties(cls) -> tuple[Property, ...]:
        return (LOG_DIR_FAILURES_HANDLED,)

    def reduce(self, segment: Segment) -> Summary:
        return Summary(
            list(segment.only(_OTHERS).events(*self.columns)), _served(segment.only(_SERVES))
        )

    def combine(self, a: Summary, b: Summary) -> Summary:
        return Summary(a.rows + b.rows, _latest(a.served, b.served))

    def finish(self, summary: Summary) -> Results:
        rows = summary.rows
        processes = {
            (event.process, event.incarnation)
            for _, event in rows
            if event.kind == Kind.LOG_LOADED and event.log_dir is not None
        }
        last_traces: dict[Process, int] = {}
        for (_, process), (time, _) in summary.served.items():
            last_traces[process] = max(time, last_traces.get(process, 0))
        known = list(lost_replicas.failures(rows, last_traces))
        judge = Judge.of(rows)
        findings = list(_unreported(rows, known))
        for failure in known:
            findings += judge.still_served(failure, summary.served)
            findings += judge.not_notified(failure)
            findings += judge.still_needed(failure)
        checked = len(processes) + len(known)
        return conclude(LOG_DIR_FAILURES_HANDLED, checked=checked, findings=findings)


@dataclass(frozen=True, slots=True)
class Judge:
    """What decides (b) to (d)."""

    rows: Sequence[Row]
    quiet: Spans
    """The time in which no fault of another kind was in force."""
    in_office: Spans
    """The time in which one controller was in office after its failover, one span for each."""
    times: ZxidTimes
    starts: ZxidStarts
    deleted: frozenset[str]
    """The names of topics whose deletion was requested."""

    @classmethod
    def of(cls, rows: Sequence[Row]) -> Judge:
        others = [item for item in rows if item[1].fault != _FAULT]
        times = [event.time for _, event in rows if event.time >= 0]
        starts = ZxidStarts(rows)
        paths = (event.path or "" for _, event in rows if event.kind == Kind.ZNODE)
        return cls(
            rows,
            complement(unexplained.explained(others), 0, max(times, default=0)),
            _in_office(rows, starts),
            ZxidTimes(rows),
            starts,
            frozenset(path.removeprefix(_DELETIONS) for path in paths),
        )

    def still_served(self, failure: Failure, served: Served) -> Iterator[Finding]:
        """Yield what (b) finds."""
        process = (failure.traced[1].process, failure.traced[1].incarnation)
        for tp in failure.lost:
            time, row = served.get((tp, process), (0, -1))
            late_ms = (time - failure.time) // _MS
            if late_ms > 0:
                sentence = (
                    f"Broker {failure.broker} served {tp_name(*tp)} {late_ms:,} ms after the directory of its log had "
                    "failed."
                )
                late = (failure.time, time, late_ms)
                yield from self._findings(tp_name(*tp), sentence, late, failure.traced[0], row)

    def not_notified(self, failure: Failure) -> Iterator[Finding]:
        """Yield what (c) finds."""
        bound = session_bound_ms(self.rows)
        if bound is None or any(self._notifies(event, failure) for _, event in self.rows):
            return
        until = min(failure.last, failure.disconnected or _FOREVER, failure.registered or _FOREVER)
        late = _longest(intersection(spans([(failure.time, until)]), self.quiet), bound)
        if late is not None:
            sentence = (
                f"Broker {failure.broker} did not notify the controller for {_waited(late):,} ms in which its log "
                f"directory had failed and no other fault was in force; the configuration allows at most {bound:,} "
                "ms."
            )
            yield from self._findings(f"broker-{failure.broker}", sentence, late, failure.traced[0])

    def _notifies(self, event: Event, failure: Failure) -> bool:
        """Whether this may be the notification of the failure."""
        if event.zk_op != "create" or not (event.path or "").startswith(_NOTIFICATIONS):
            return False
        known = self.times.known(event.zxid)
        return _named_broker(event) == failure.broker and (known is None or known >= failure.time)

    def still_needed(self, failure: Failure) -> Iterator[Finding]:
        """Yield what (d) finds."""
        bound = log_dir_bound_ms(self.rows)
        if bound is None:
            return
        since = max(failure.time, failure.registered)
        judged = spans([(since, failure.last)])
        judged = intersection(intersection(judged, self.quiet), self.in_office)
        for tp in sorted(failure.lost.keys() if len(judged) else ()):
            if tp[0] in self.deleted:
                continue
            for dependence in _dependences(self.rows, tp, failure.broker):
                late = _longest(intersection(judged, self._span(dependence)), bound)
                if late is None:
                    continue
                row, event = dependence.first
                role = "the leader" if event.leader == failure.broker else "in the ISR"
                sentence = (
                    f"Broker {failure.broker} was still {role} of {tp_name(*tp)} for {_waited(late):,} ms in which "
                    "the directory of its log had failed and no other fault was in force; the configuration allows "
                    f"at most {bound:,} ms."
                )
                yield from self._findings(tp_name(*tp), sentence, late, row, failure.traced[0])

    def _span(self, dependence: Dependence) -> Spans:
        """Return the time in which a partition certainly depended on the broker."""
        since = self.times.known(dependence.since_zxid)
        until = _FOREVER
        if dependence.until_zxid is not None:
            until = self.starts.not_before(dependence.until_zxid) or 0
        return spans([] if since is None else [(since, until)])

    def _findings(
        self, key: str, sentence: str, late: tuple[int, int, int], *proof: int
    ) -> Iterator[Finding]:
        """``late``: since when and until when it took too long (ns), and by how much (ms)."""
        excuse = unexplained.excuse(self.rows, *late)
        if excuse is not None and late[2] <= unexplained.MAX_LAG_MS:
            return
        yield finding(
            LOG_DIR_FAILURES_HANDLED.name,
            key,
            sentence if excuse is None else f"{sentence} But {excuse}.",
            *proof,
            verdict=Verdict.INVALID if excuse is None else Verdict.UNKNOWN,
        )


def _served(segment: Segment) -> Served:
    last: Served = {}
    for (topic, partition, process, incarnation), part in segment.by(
        "topic", "partition", "process", "incarnation"
    ):
        if topic is not None and partition is not None:
            time = part.numbers("time")
            index = int(np.argmax(time))
            replica = (topic, partition), (process, incarnation)
            last[replica] = (int(time[index]), int(part.rows[index]))
    return last


def _latest(a: Served, b: Served) -> Served:
    """Join two tables; of the same replica the later event stays, and of equal times the first."""
    for replica, later in b.items():
        if replica not in a or later[0] > a[replica][0]:
            a[replica] = later
    return a


def _in_office(rows: Sequence[Row], starts: ZxidStarts) -> Spans:
    """Return the times in which a controller that had finished its failover was certainly in office.

    The spans of two controllers never touch: the transaction that ends the first one lies before the other's failover.
    """
    ends = [
        event.zxid or 0
        for _, event in znodes.changes(rows)
        if event.path == znodes.CONTROLLER and event.zk_op == "delete"
    ]
    terms = []
    for term in terms_of(rows):
        later = [zxid for zxid in (*ends, term.next_zxid or 0) if zxid > term.granted_zxid]
        until = (starts.not_before(min(later)) or 0) if later else _FOREVER
        terms.append((term.failover[1].time, until))
    return spans(terms)


def _dependences(rows: Sequence[Row], tp: TopicPartition, broker: int) -> Iterator[Dependence]:
    """Yield the stretches of a partition's states in which the broker led, or was in an ISR of several members."""
    first: Row | None = None
    about = [item for item in rows if (item[1].topic, item[1].partition) == tp]
    for row, event in znodes.changes(about):
        isr = event.isr or []
        depends = event.zk_op != "delete" and (
            event.leader == broker or (broker in isr and len(isr) > 1)
        )
        if depends and first is None:
            first = (row, event)
        elif not depends and first is not None:
            yield Dependence(first, first[1].zxid or 0, event.zxid)
            first = None
    if first is not None:
        yield Dependence(first, first[1].zxid or 0, None)


def _longest(judged: Spans, bound_ms: int) -> tuple[int, int, int] | None:
    """Return the longest of these spans with what exceeds the bound, in ms; None if it does not exceed it."""
    if not len(judged):
        return None
    start, stop = judged[np.argmax(judged[:, 1] - judged[:, 0])].tolist()
    over = stop - start - bound_ms * _MS
    return (start, stop, over // _MS) if over > 0 else None


def _waited(late: tuple[int, int, int]) -> int:
    """In ms."""
    return (late[1] - late[0]) // _MS


def _named_broker(event: Event) -> int | None:
    try:
        data: Any = msgspec.json.decode(event.data or "null")
    except msgspec.DecodeError:
        return None
    return data.get("broker") if isinstance(data, dict) else None


def _unreported(rows: Sequence[Row], known: Sequence[Failure]) -> Iterator[Finding]:
    """Yield what (a) finds."""
    begun = {event.fault_id: (row, event) for row, event in rows if event.kind == Kind.FAULT_INVOKE}
    for row, event in rows:
        if event.kind != Kind.FAULT_HEALED or event.fault != _FAULT or event.fault_id not in begun:
            continue
        begun_row, beginning = begun[event.fault_id]
        reporting = {
            failure.traced[1].process
            for failure in known
            if beginning.time <= failure.time <= event.time
        }
        for node, count in _refused(event).items():
            if not count or node in reporting:
                continue
            excuse = unexplained.excuse(rows, beginning.time, event.time, 0)
            sentence = (
                f"A log directory refused {count} of the calls of {node}, and the broker did not report that it "
                "failed."
            )
            yield finding(
                LOG_DIR_FAILURES_HANDLED.name,
                node,
                sentence if excuse is None else f"{sentence} But {excuse}.",
                begun_row,
                row,
                verdict=Verdict.INVALID if excuse is None else Verdict.UNKNOWN,
            )


def _refused(event: Event) -> dict[str, int]:
    """By node, how many calls its disk refused."""
    disks = measurements(event.detail).get("disk")
    measured = disks.items() if isinstance(disks, dict) else ()
    return {
        node: sum(probe.get("refused", {}).values())
        for node, probe in measured
        if isinstance(probe, dict) and isinstance(probe.get("refused", {}), dict)
    }


LOG_DIR_FAILURES_HANDLED: Final = Property(
    name="log-dir-failures-handled",
    promise="A broker takes a log directory that fails offline, and the controller lets nothing depend on it.",
    unit="processes of brokers, and failures of their log directories",
    unknown="No broker reported in which directories its logs are, or the machine was slow.",
    source="KIP-112; LogDirFailureHandler, KafkaController (processLogDirEventNotification).",
    check=LogDirFailures,
    decided_from=frozenset(
        {EventSource.METADATA_LOG, EventSource.TRACES, EventSource.FAULTS, EventSource.HARNESS}
    ),
    recorded_since=5,
    reason=explain.log_dir_failures_handled,
    breaks=breaks.LOG_DIR_FAILURES_HANDLED,
)
