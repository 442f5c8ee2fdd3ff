"""Logs agree, and a new leader has everything that was committed in an earlier leader epoch.

* **log-matching**: replicas that hold a batch of one leader epoch at the same offset hold the same batch (CRC-32C and
  extent); batches of one leader epoch never overlap. Below the high watermark that counted it as in sync, every
  replica's log is, at the end, written by the same leader epochs as the newest leader's.
  Smallest break: broker 1 has (offset 3, epoch 2, crc 7), broker 2 has (offset 3, epoch 2, crc 8).
* **leader-completeness**: a broker that becomes leader in epoch ``e`` holds every record that was committed in a
  smaller leader epoch: below that leader's high watermark, or acknowledged by it under ``acks=all``. Not only the
  length counts: the records must be those (written by the same leader epochs).
  Smallest break: leader 1 in epoch 0 has high watermark 5; broker 2 becomes leader in epoch 1 with log end offset 4.

The idea: per replica the events are compressed into steps (a run of appends of one epoch, a new end of the log, a
leadership), which join associatively; the driver replays the steps (``replica_log``). "Before" is a smaller leader
epoch, never an earlier time: a demoted leader may acknowledge late, and a new leader may learn of its election late.

What a correct cluster does and is not convicted for: a broker killed between an append and its event comes back with
more than it traced, those offsets are unknown and agree with everything; replicas outside the ISR differ; a batch is
appended, cut and appended again; the same broker becomes leader twice in one epoch; unclean elections lose records
(reported, not held against the cluster, and nothing before them counts afterwards); a batch of which compaction has
left less, as the broker has traced it, comes from a leader to a follower. Below a replica's log start anything may be:
a leader that has deleted what it began an epoch with cannot tell a follower to cut its log there, but only where its
own log starts; with the next answer the follower's log starts there, too. That stays so when a crash takes the start
back to where it was checkpointed.

Limits: memory grows with the number of distinct batches and of steps, not with the number of replicas' appends.
Source: KIP-101, KIP-279, KIP-320; LeaderCompleteness and LogMatching as Raft and its TLA+ models name them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import numpy as np

from nemesis.checkers import unclean
from nemesis.checkers.breaks import replicas as breaks
from nemesis.checkers.explain import replicas
from nemesis.checkers.framework.findings import finding, tp_name
from nemesis.checkers.framework.fold import Fold, Results, conclude
from nemesis.checkers.framework.model import Finding, Verdict
from nemesis.checkers.framework.property import Property
from nemesis.checkers.framework.segment import Segment
from nemesis.checkers.replication.replica_log import ReplicaLog
from nemesis.checkers.replication.replica_rows import TopicKey, partitions
from nemesis.checkers.replication.steps import (
    NOT_TRACED,
    Did,
    PartitionLogs,
    Step,
    distinct,
    join,
    summarise,
    without,
)
from nemesis.checkers.unclean import Permissions, permissions
from nemesis.history.events import Kind
from nemesis.history.sources import EventSource

LogsSummary = tuple[dict[TopicKey, PartitionLogs], Permissions]
"""Its logs, and what it says of unclean elections."""


class ReplicaLogs(Fold[LogsSummary]):
    kinds = frozenset(
        {
            Kind.APPEND,
            Kind.BATCH_CLEANED,
            Kind.TRUNCATE,
            Kind.LOG_LOADED,
            Kind.LOG_DIR_CHANGED,
            Kind.LOG_START_OFFSET,
            Kind.BECOME_LEADER,
            Kind.BECOME_FOLLOWER,
            Kind.HIGH_WATERMARK,
            Kind.PRODUCE_ACKNOWLEDGED,
            Kind.LEADER_ELECTED,
            *unclean.KINDS,
        }
    )
    columns = (
        *unclean.COLUMNS,
        "topic",
        "topic_id",
        "partition",
        "node",
        "leader_epoch",
        "offset",
        "last_offset",
        "crc",
        "acks",
        "log_start_offset",
        "log_end_offset",
        "high_watermark",
        "isr",
        "maximal_isr",
    )

    @classmethod
    def properties(cls) -> tuple[Property, ...]:
        return (LOG_MATCHING, LEADER_COMPLETENESS)

    def reduce(self, segment: Segment) -> LogsSummary:
        logs = {key: summarise(part) for key, part in partitions(segment)}
        return logs, permissions(segment)

    def combine(self, a: LogsSummary, b: LogsSummary) -> LogsSummary:
        joined = dict(a[0])
        for key, later in b[0].items():
            joined[key] = join(joined[key], later) if key in joined else later
        return joined, a[1].join(b[1])

    def finish(self, summary: LogsSummary) -> Results:
        matching: list[Finding] = []
        completeness: list[Finding] = []
        appended, elections = 0, 0
        by_partition, permitted = summary
        for (topic, _, partition), logs in by_partition.items():
            tp = tp_name(topic, partition)
            histories = {node: _replay(steps, node) for node, steps in logs.steps.items()}
            leaderships = sorted(
                (lead for history in histories.values() for lead in history.leaderships),
                key=lambda lead: (lead.epoch, lead.row),
            )
            appended += logs.appended
            elections += len(leaderships)
            excused = {
                election.leader_epoch
                for election in logs.elections.unclean()
                if permitted.excuse(topic, partition, [election])
            }
            completeness += _incomplete(tp, logs, leaderships, excused)
            matching += _clashes(tp, logs)
            if not excused and leaderships:
                matching += _diverged(tp, logs, histories, leaderships[-1])
        return (
            conclude(LOG_MATCHING, checked=appended, findings=matching),
            conclude(LEADER_COMPLETENESS, checked=elections, findings=completeness),
        )


class Leadership(NamedTuple):
    """A broker became leader, with this log."""

    epoch: int
    row: int
    node: int
    log: ReplicaLog


@dataclass(slots=True)
class ReplicaHistory:
    log: ReplicaLog
    """As it is at the end."""
    leaderships: list[Leadership] = field(default_factory=list)


def _replay(steps: list[Step], node: int) -> ReplicaHistory:
    history = ReplicaHistory(ReplicaLog())
    for step in steps:
        if step.did is Did.APPENDED:
            history.log.append(step.start, step.end, step.epoch, step.row)
            continue
        if step.start != NOT_TRACED:
            # A crash may take the start back, but brings nothing back that was right.
            is_emptied = step.end < history.log.start
            history.log.start = step.start if is_emptied else max(step.start, history.log.start)
        if step.did is Did.STARTED:
            continue
        history.log.resize(step.end)
        if step.did is Did.LED:
            history.leaderships.append(Leadership(step.epoch, step.row, node, history.log.copy()))
    return history


def _reign(lead: Leadership, end: int) -> ReplicaLog:
    """The leader's log once it reached ``end``: from its election on, only its own epoch wrote."""
    log = lead.log.copy()
    if end > log.end:
        log.append(log.end, end, lead.epoch)
    return log


def _incomplete(
    tp: str, logs: PartitionLogs, leaderships: list[Leadership], unclean: set[int]
) -> Iterator[Finding]:
    """Leaders that lack something committed in a smaller leader epoch.

    ``unclean``: the leader epochs of unclean elections that were permitted.
    """
    waiting = sorted(logs.committed.items())
    first_lead = {lead.epoch: lead for lead in reversed(leaderships)}
    committed: tuple[int, int, ReplicaLog | None] = (0, -1, None)
    forgiven = -1
    for lead in leaderships:
        while waiting and waiting[0][0] < lead.epoch:
            epoch, (end, row) = waiting.pop(0)
            if end > committed[0] and epoch >= forgiven:
                source = first_lead.get(epoch)
                committed = (end, row, None if source is None else _reign(source, end))
        end, row, log = committed
        sentence, instead = _what_is_missing(tp, lead, end, log, logs)
        if sentence is not None:
            allowed = lead.epoch in unclean
            verdict = Verdict.VALID if allowed else Verdict.INVALID
            if allowed:
                sentence += " The topic allows unclean elections."
            # A demoted leader may acknowledge late: in a partition the order of rows is that of time.
            proof = sorted({row, lead.row} if instead is None else {row, lead.row, instead})
            yield finding(LEADER_COMPLETENESS.name, tp, sentence, *proof, verdict=verdict)
        if lead.epoch in unclean:
            committed, forgiven = (0, -1, None), lead.epoch


def _what_is_missing(
    tp: str, lead: Leadership, end: int, log: ReplicaLog | None, logs: PartitionLogs
) -> tuple[str | None, int | None]:
    """Return what the leader lacks of what was committed below ``end``, in words, and the event that put another record
    in its place."""
    subject = f"Broker {lead.node} became leader of {tp} in leader epoch {lead.epoch}"
    if lead.log.end < end:
        sentence = (
            f"{subject} with records only below {lead.log.end}, though all below {end} were committed in an earlier "
            "leader epoch."
        )
        return sentence, None
    offset = None if log is None else lead.log.first_difference(log, lead.log.start, end)
    if log is None or offset is None:
        return None, None
    sentence = (
        f"{subject} with another record at offset {offset} (of leader epoch {lead.log.epoch_at(offset)}) than the one "
        f"committed there (of leader epoch {log.epoch_at(offset)})."
    )
    return sentence, _append_of(lead.log, offset, logs)


def _append_of(log: ReplicaLog, offset: int, logs: PartitionLogs) -> int | None:
    """The row of the append that shows this record: the replica's own if it is kept, else the first of its batch."""
    own = log.row_at(offset)
    return logs.row_of(log.epoch_at(offset), offset) if own is None else own


def _clashes(tp: str, logs: PartitionLogs) -> Iterator[Finding]:
    """Batches of one leader epoch that overlap: the same offset with two contents."""
    if not logs.batches:
        return
    table = without(distinct(np.concatenate(logs.batches)), logs.cleaned)
    epoch, base, last, crc, row = table.T
    clash = (epoch[1:] == epoch[:-1]) & (base[1:] <= last[:-1]) & (epoch[1:] >= 0)
    for index in np.flatnonzero(clash).tolist():
        sentence = (
            f"Two different batches of leader epoch {epoch[index]} cover offset {base[index + 1]} of {tp}: "
            f"{base[index]} to {last[index]} with CRC {crc[index]}, and {base[index + 1]} to {last[index + 1]} with "
            f"CRC {crc[index + 1]}."
        )
        yield finding(LOG_MATCHING.name, tp, sentence, int(row[index]), int(row[index + 1]))


def _diverged(
    tp: str, logs: PartitionLogs, histories: dict[int, ReplicaHistory], newest: Leadership
) -> Iterator[Finding]:
    """Replicas whose committed part differs, at the end, from the newest leader's log."""
    for node, history in sorted(histories.items()):
        end = min(logs.in_sync.get(node, 0), history.log.end)
        reference = _reign(newest, end)
        start = max(newest.log.start, history.log.start)
        offset = history.log.first_difference(reference, start, end)
        if offset is not None:
            sentence = (
                f"Broker {node} holds a record of leader epoch {history.log.epoch_at(offset)} at offset {offset} of "
                f"{tp}, below a high watermark of a leader that had it in its ISR, where leader {newest.node} of "
                f"epoch {newest.epoch} has one of leader epoch {reference.epoch_at(offset)}."
            )
            apart = (_append_of(held, offset, logs) for held in (history.log, reference))
            proof = {newest.row, *(row for row in apart if row is not None)}
            yield finding(LOG_MATCHING.name, tp, sentence, *sorted(proof))


LOG_MATCHING: Final = Property(
    name="log-matching",
    promise="Replicas hold the same records at the same offsets.",
    unit="batches",
    unknown="No replica traced an append.",
    source="KIP-101, KIP-279, KIP-320; LogMatching of Raft.",
    check=ReplicaLogs,
    decided_from=frozenset({EventSource.METADATA_LOG, EventSource.TRACES}),
    reason=replicas.log_matching,
    breaks=breaks.LOG_MATCHING,
)

LEADER_COMPLETENESS: Final = Property(
    name="leader-completeness",
    promise="A new leader holds every record committed in an earlier leader epoch.",
    unit="elections",
    unknown="No broker became leader.",
    source="KIP-101, KIP-279, KIP-320; LeaderCompleteness of Raft.",
    check=ReplicaLogs,
    decided_from=frozenset({EventSource.METADATA_LOG, EventSource.TRACES}),
    reason=replicas.leader_completeness,
    breaks=breaks.LEADER_COMPLETENESS,
)
