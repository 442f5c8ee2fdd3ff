"""When nothing happens any more, the replicas of a partition agree on their offsets.

**offsets-at-rest**: of what the replicas answer after the end of a run (``replica-offsets``),
(a) each follower in the ISR has the high watermark of its leader; and the leader's high watermark is the end of its log
if all replicas are in the ISR and their logs end there, too;
(b) no follower in the ISR starts its log below its leader's; and the leader's starts no lower than the largest low
watermark that it answered to DeleteRecords since its leadership began. So what was answered holds on each of them;
(c) each replica's log starts at or below its high watermark, which is at or below the end of its log.
Smallest breaks: (a) leader 1 answers high watermark 5, follower 2 answers 4, for longer than the bound; (b) leader 1
answers low watermark 3 to DeleteRecords and then that its log starts at 2; (c) a replica answers high watermark 6 and
log end 5.

What followers owe, they owe within the bound of ``rest_bound``: high watermark and log start reach a follower with the
answer to its next fetch. The time counts from when the partition's state in ZooKeeper and start and end of the leader's
log were first answered as they are at last.

What a correct cluster does and is not convicted for: replicas that are not in the ISR, or do not answer (``unknown`` if
they are in it); a follower that starts above its leader (each replica deletes segments by itself, and their bases
differ); different starts after retention; a high watermark that a replica outside the ISR holds back, or an ISR below
``min.insync.replicas`` (KAFKA-15583); a start that falls with an unclean restart, as it is checkpointed from time to
time: only answers of the leader's last leadership count. Compaction moves none of these offsets. While a fault is in
force, or on a machine that may have been late itself, followers owe nothing; a difference is ``unknown`` then.

Limits: that an answer to DeleteRecords outlives a clean failover is not judged: a new leader may have joined the ISR
with a fetch whose answer, with the leader's log start, it has not seen. Whose answer it was is recorded only by our own
workload.
Source: KIP-392, KIP-227 (what a fetch session reports), KIP-107; Partition.appendRecordsToFollowerOrFutureReplica.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from nemesis.checkers.administered import CLIENT_KINDS, Administered
from nemesis.checkers.breaks import offsets_at_rest as breaks
from nemesis.checkers.explain import offsets_at_rest as explain
from nemesis.checkers.framework.event_list import Row, succeeded
from nemesis.checkers.framework.findings import finding, tp_name
from nemesis.checkers.framework.fold import Results, conclude
from nemesis.checkers.framework.model import Finding, Verdict
from nemesis.checkers.framework.property import Property
from nemesis.checkers.liveness.attribution import KINDS as FAULT_KINDS
from nemesis.checkers.liveness.attribution import in_force
from nemesis.checkers.liveness.rest_bound import rest_bound_ms
from nemesis.checkers.liveness.unexplained import excuse
from nemesis.history.events import Event, Kind
from nemesis.history.sources import EventSource
from nemesis.history.vocabulary.faults import VERIFIED

_DELETE_RECORDS: Final = "delete-records"
_MS: Final = 1_000_000

TopicPartition = tuple[str, int]


class Deletion(NamedTuple):
    """A leader answered DeleteRecords, in this leadership."""

    leadership: Row
    answer: Row


@dataclass(slots=True)
class Replicas:
    """What the replicas of one partition answered at the end, by broker."""

    answered: dict[int, Row] = field(default_factory=dict)
    silent: dict[int, Row] = field(default_factory=dict)

    def add(self, row: int, event: Event) -> None:
        if event.node is not None:
            (self.answered if succeeded(event) else self.silent)[event.node] = (row, event)

    @property
    def leader(self) -> Row | None:
        """The leader's answer."""
        return next((item for node, item in self.answered.items() if node == item[1].leader), None)

    @property
    def followers(self) -> list[Row]:
        """The answers of followers in the ISR."""
        return [
            item
            for node, item in sorted(self.answered.items())
            if node != item[1].leader and node in (item[1].isr or ())
        ]

    def all_end_at(self, offset: int | None) -> bool:
        """Whether all replicas are in the ISR, and answered that their logs end there."""
        return not self.silent and all(
            event.log_end_offset == offset
            and {*(event.replicas or ())} <= {*(event.isr or ())} <= {*self.answered}
            for _, event in self.answered.values()
        )


class OffsetsAtRest(Administered):
    operations = frozenset({_DELETE_RECORDS})
    kinds = frozenset(
        {
            *CLIENT_KINDS,
            *FAULT_KINDS,
            Kind.REPLICA_OFFSETS,
            Kind.BECOME_LEADER,
            Kind.LOG_DIR_CHANGED,
            Kind.TIMEOUT_SETTING,
            Kind.HARNESS_LAG,
            Kind.MACHINE_LOAD,
        }
    )
    columns = (
        *("topic", "partition", "node", "leader", "leader_epoch", "replicas", "isr", "error"),
        *("log_start_offset", "high_watermark", "log_end_offset", "duration_ms", "setting"),
        *("f", "op", "fault", "fault_id", "effect"),
    )

    @classmethod
    def properties(cls) -> tuple[Property, ...]:
        return (OFFSETS_AT_REST,)

    def judge(self, rows: list[Row]) -> Results:
        findings: list[Finding] = []
        partitions: dict[TopicPartition, Replicas] = defaultdict(Replicas)
        checked = 0
        for row, event in rows:
            if event.kind != Kind.REPLICA_OFFSETS:
                continue
            checked += succeeded(event)
            if event.topic is not None and event.partition is not None:
                partitions[event.topic, event.partition].add(row, event)
            elif not succeeded(event):
                sentence = f"No replica was asked for its offsets: {event.error}."
                findings.append(
                    finding(self.name, "the cluster", sentence, row, verdict=Verdict.UNKNOWN)
                )
        deletions = _answered_deletions(rows)
        for tp, replicas in partitions.items():
            findings += _silent(tp, replicas)
            findings += _out_of_bounds(tp, replicas)
            findings += _undone_deletions(tp, replicas, deletions.get(tp, []))
            findings += _late(tp, replicas, rows)
        return conclude(OFFSETS_AT_REST, checked=checked, findings=findings)


def _silent(tp: TopicPartition, replicas: Replicas) -> Iterator[Finding]:
    """Members of the ISR that did not answer."""
    for node, (row, event) in replicas.silent.items():
        if node in (event.isr or ()):
            sentence = f"At rest broker {node} did not answer for {tp_name(*tp)}, in whose ISR it is: {event.error}."
            yield _finding(tp, sentence, row, verdict=Verdict.UNKNOWN)


def _out_of_bounds(tp: TopicPartition, replicas: Replicas) -> Iterator[Finding]:
    """Clause (c)."""
    for node, (row, event) in replicas.answered.items():
        start, mark, end = _offsets(event)
        if not start <= mark <= end:
            sentence = (
                f"At rest broker {node} answered for {tp_name(*tp)} log start {start}, high watermark {mark} and log "
                f"end {end}."
            )
            yield _finding(tp, sentence, row)


def _undone_deletions(
    tp: TopicPartition, replicas: Replicas, deletions: Sequence[Deletion]
) -> Iterator[Finding]:
    """Clause (b) of the leader."""
    if replicas.leader is None:
        return
    row, event = replicas.leader
    own = [
        deletion
        for deletion in deletions
        if (deletion.leadership[1].node, deletion.leadership[1].leader_epoch)
        == (event.node, event.leader_epoch)
    ]
    if not own:
        return
    (leadership, _), (answer, answered) = own[-1]
    if (event.log_start_offset or 0) < (answered.log_start_offset or 0):
        sentence = (
            f"Leader {event.node} answered that the records of {tp_name(*tp)} below {answered.log_start_offset} are "
            f"deleted, but at rest its log starts at {event.log_start_offset}."
        )
        yield _finding(tp, sentence, leadership, answer, row)


def _late(tp: TopicPartition, replicas: Replicas, rows: Sequence[Row]) -> Iterator[Finding]:
    """What followers owe within the bound, and the leader once they have paid: (a), and (b) of followers."""
    if replicas.leader is None:
        return
    row, event = replicas.leader
    start, mark, end = _offsets(event)
    differences: list[tuple[str, tuple[int, ...]]] = []
    if mark != end and replicas.all_end_at(end):
        sentence = (
            f"The high watermark of leader {event.node} of {tp_name(*tp)} stayed at {mark}, though the logs of all "
            f"replicas end at {end}."
        )
        others = (other for other, _ in replicas.followers)
        differences.append((sentence, (row, *others)))
    for other, follower in replicas.followers:
        other_start, other_mark, _ = _offsets(follower)
        about = f"of follower {follower.node} of {tp_name(*tp)}"
        if other_mark != mark:
            sentence = f"The high watermark {about} stayed at {other_mark}, but that of leader {event.node} is {mark}."
            differences.append((sentence, (row, other)))
        if other_start < start:
            sentence = f"The log {about} still starts at {other_start}, but that of leader {event.node} at {start}."
            differences.append((sentence, (row, other)))
    reason = _excuse(event, rows) if differences else None
    for sentence, proof in differences:
        yield _finding(
            tp,
            sentence if reason is None else f"{sentence} But {reason}.",
            *proof,
            verdict=Verdict.INVALID if reason is None else Verdict.UNKNOWN,
        )


def _excuse(event: Event, rows: Sequence[Row]) -> str | None:
    """Return why the replicas of a partition need not agree yet; None if they must. ``event``: the leader's answer."""
    settings = {
        stated.setting or "": stated.duration_ms or 0
        for _, stated in rows
        if stated.kind == Kind.TIMEOUT_SETTING
    }
    bound = rest_bound_ms(settings)
    if bound is None:
        return "the run does not state the time-outs"
    unchanged_ms = event.duration_ms or 0
    if unchanged_ms <= bound:
        return (
            f"they had only {unchanged_ms:,} ms to agree, and the configuration allows {bound:,} ms"
        )
    since = event.time - unchanged_ms * _MS
    ended = [
        item for item in rows if item[1].kind != Kind.FAULT_HEALED or item[1].effect == VERIFIED
    ]
    active = [force.fault for force in in_force(ended) if force.stop_ns >= since]
    if active:
        unverified = {event.fault for _, event in rows if event.kind == Kind.FAULT_HEALED} - {
            event.fault for _, event in ended if event.kind == Kind.FAULT_HEALED
        }
        if active[-1] in unverified:
            return (
                f"nemesis could not verify that the fault {active[-1]} had ended, and offsets may differ "
                "during a fault, so this is not decided"
            )
        return f"the fault {active[-1]} was active, so this is not decided"
    return excuse(rows, since, event.time, unchanged_ms - bound)


def _answered_deletions(rows: Sequence[Row]) -> dict[TopicPartition, list[Deletion]]:
    """Return the answers to DeleteRecords that a broker gave in its last leadership, the largest last.

    Only requests that were sent after the leadership had begun: others may have been answered before it. A log that
    was moved to another directory meanwhile may have begun there with an older start.
    """
    begun: dict[tuple[TopicPartition, int], Row] = {}
    moved: dict[tuple[TopicPartition, int], int] = {}
    sent: dict[tuple[str, int | None], int] = {}
    for row, event in rows:
        if event.topic is None or event.partition is None:
            continue
        if event.kind == Kind.INVOKE:
            sent[event.process, event.op] = event.time
        elif event.node is not None:
            replica = (event.topic, event.partition), event.node
            if event.kind == Kind.LOG_DIR_CHANGED:
                moved[replica] = max(event.time, moved.get(replica, 0))
            elif event.kind == Kind.BECOME_LEADER and (
                replica not in begun or begun[replica][1].time <= event.time
            ):
                begun[replica] = (row, event)
    deletions: dict[TopicPartition, list[Deletion]] = defaultdict(list)
    for row, event in rows:
        if event.kind != Kind.OK or event.topic is None or event.partition is None:
            continue
        tp, node = (event.topic, event.partition), event.node
        if node is None or (leadership := begun.get((tp, node))) is None:
            continue
        since = max(leadership[1].time, moved.get((tp, node), 0))
        if since < sent.get((event.process, event.op), -1):
            deletions[tp].append(Deletion(leadership, (row, event)))
    for answered in deletions.values():
        answered.sort(key=lambda deletion: deletion.answer[1].log_start_offset or 0)
    return deletions


def _offsets(event: Event) -> tuple[int, int, int]:
    """Log start, high watermark, log end."""
    return event.log_start_offset or 0, event.high_watermark or 0, event.log_end_offset or 0


def _finding(
    tp: TopicPartition, sentence: str, *rows: int, verdict: Verdict = Verdict.INVALID
) -> Finding:
    return finding(OFFSETS_AT_REST.name, tp_name(*tp), sentence, *rows, verdict=verdict)


OFFSETS_AT_REST: Final = Property(
    name="offsets-at-rest",
    promise="When nothing happens any more, the replicas of a partition agree on their offsets.",
    unit="answers of replicas, and the list of them",
    unknown="No replica was asked at the end, a member of an ISR did not answer, or the machine was slow.",
    source="KIP-392, KIP-227, KIP-107.",
    check=OffsetsAtRest,
    decided_from=frozenset({EventSource.FAULTS, EventSource.HARNESS, EventSource.REPLICA_OFFSETS}),
    completed_by=frozenset({EventSource.CLIENTS, EventSource.TRACES}),
    recorded_since=5,
    reason=explain.offsets_at_rest,
    breaks=breaks.OFFSETS_AT_REST,
)
