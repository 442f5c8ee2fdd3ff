"""What the files of the replicas have at the end: read from disk, and not told by whoever wrote them.

* **final-logs**: at the end of a run
  (1) below the smallest high watermark of two replicas both hold the same batches, byte for byte, as far as both
  reach back; (2) no two batches of one leader epoch, in any file or in any trace, share an offset and differ; (3) a log
  has no holes, and the files of a broker that lives are whole below its high watermark; (4) a broker that lives has in
  its files what a leader counted on in its last high watermark, if the broker was not started anew since; (5) the
  files of a broker that lives reach the high watermark that the broker answered when traffic had ended.
  Smallest break: brokers 1 and 2, both with high watermark 1, have batches with different CRCs at offset 0.

The idea: a batch is (base offset, last offset, leader epoch, CRC), which the reader has compared with the bytes; a log
below a high watermark is a set of those. Everybody is compared with the replica whose high watermark is highest.

What a correct cluster does and is not convicted for: high watermarks are checkpointed now and then, so the one in the
files is an old one; what lies above it may differ; a broker that is dead may have lost what was not synced, and its
files may end in the middle of a batch; logs begin where retention, a DeleteRecords or a reassignment let them begin,
and what the files have below that, or below where a log began before a crash, may be anything (see ``logs``);
compaction removes records, so below the offset where it has been logs have holes and are compared where both have a
batch (offsets and leader epochs; the CRC too, but for batches of which the brokers have traced that compaction has
rewritten them); after an unclean election that is permitted replicas may differ.

Limits: a log of which no batch is below a high watermark proves nothing; one that is compacted up to there only
together with another one. What a dead broker lost is not looked at.
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
from nemesis.checkers.framework.fold import Grouped, Results, conclude
from nemesis.checkers.framework.model import Finding, Verdict
from nemesis.checkers.framework.property import Property
from nemesis.checkers.framework.segment import Key, Numbers, Segment
from nemesis.checkers.replication.replica_rows import members
from nemesis.checkers.replication.steps import distinct, without
from nemesis.checkers.unclean import Election, Permissions, elections_in, permissions
from nemesis.history.events import NO_ERROR, Kind
from nemesis.history.sources import EventSource

BATCH = ("offset", "last_offset", "leader_epoch", "crc")


class Log(NamedTuple):
    """One replica's files."""

    node: int
    row: int
    start: int
    """What its files have below, it has not, or has not had at some time."""
    end: int
    high_watermark: int
    cleaned_below: int
    is_alive: bool
    damage: str | None
    batches: Numbers
    """A row for each: base offset, last offset, leader epoch, CRC, row of the history."""

    @property
    def committed(self) -> int:
        """Up to where its batches count."""
        return min(self.high_watermark, self.end)

    def between(self, start: int, end: int) -> Numbers:
        """The batches that lie in there as a whole."""
        inside = (self.batches[:, 0] >= start) & (self.batches[:, 1] < end)
        return self.batches[inside]


_NO_LOG: Final = Log(-1, -1, 0, 0, 0, 0, False, None, np.zeros((0, 5), dtype=np.int64))


@dataclass(slots=True)
class Report:
    """What one partition, or the brokers as a whole, came to."""

    checked: int = 0
    findings: list[Finding] = field(default_factory=list)
    elections: list[Election] = field(default_factory=list)
    """The unclean ones."""
    permissions: Permissions = field(default_factory=Permissions)


_OF_A_LOG = (
    "node",
    "log_start_offset",
    "log_end_offset",
    "high_watermark",
    "cleaner_offset",
    "alive",
    "error",
)


class FinalLogs(Grouped[Report]):
    keys = ("topic", "partition", "topic_id")
    kinds = frozenset(
        {
            Kind.STORED_LOG,
            Kind.STORED_BATCH,
            Kind.APPEND,
            Kind.LOG_CLEANED,
            Kind.BATCH_CLEANED,
            Kind.LOG_LOADED,
            Kind.LOG_START_OFFSET,
            Kind.TRUNCATE,
            Kind.HIGH_WATERMARK,
            Kind.LEADER_ELECTED,
            Kind.REPLICA_OFFSETS,
            *unclean.KINDS,
        }
    )
    columns = (
        *unclean.COLUMNS,
        *BATCH,
        "topic",
        "topic_id",
        "partition",
        "node",
        "isr",
        "maximal_isr",
        "high_watermark",
        "log_start_offset",
        "log_end_offset",
        "cleaner_offset",
        "alive",
        "error",
    )

    @classmethod
    def properties(cls) -> tuple[Property, ...]:
        return (FINAL_LOGS,)

    def check(self, key: Key, segment: Segment) -> Report:
        topic, partition, _ = key
        report = Report(permissions=permissions(segment))
        if topic is None:
            report.findings += _unread(segment)
            return report
        tp = tp_name(topic, partition)
        logs = _logs(segment)
        report.elections += elections_in(segment).unclean()
        cleanings = segment.where(segment.is_kind(Kind.LOG_CLEANED))
        cleaned = max(
            [*(log.cleaned_below for log in logs), *(cleanings.numbers("last_offset") + 1)],
            default=0,
        )
        reference = _reference(logs)
        for log in logs:
            report.checked += len(log.between(cleaned, log.committed))
            report.checked += len(_shared_where_cleaned(log, reference, cleaned)[0])
            report.findings += _holes(tp, log, cleaned)
        report.findings += _differences(tp, logs, cleaned)
        report.findings += _clashes(tp, logs, segment, cleaned)
        report.findings += _missing(tp, logs, segment)
        report.findings += _below_answers(tp, logs, segment)
        return report

    def finish(self, summaries: list[tuple[Key, Report]]) -> Results:
        permitted = Permissions()
        for _, report in summaries:
            permitted = permitted.join(report.permissions)
        findings: list[Finding] = []
        for (topic, partition, _), report in summaries:
            if topic is not None and permitted.excuse(topic, partition, report.elections):
                continue  # whoever followed the new leader lost what it had, on purpose
            findings += report.findings
        checked = sum(report.checked for _, report in summaries)
        return conclude(FINAL_LOGS, checked=checked, findings=findings)


def _unread(segment: Segment) -> Iterator[Finding]:
    """Brokers whose files could not be read."""
    log_rows = segment.where(segment.is_kind(Kind.STORED_LOG))
    for row, event in log_rows.events("node", "error"):
        if event.error != NO_ERROR:
            sentence = f"The files of broker {event.node} could not be read: {event.error}."
            key = f"broker-{event.node}"
            yield finding(FINAL_LOGS.name, key, sentence, row, verdict=Verdict.UNKNOWN)


def _logs(segment: Segment) -> list[Log]:
    stored = segment.where(segment.is_kind(Kind.STORED_BATCH))
    nodes = stored.numbers("node")
    table = np.stack([*(stored.numbers(name) for name in BATCH), stored.rows], 1)
    log_rows = segment.where(segment.is_kind(Kind.STORED_LOG))
    starts = _starts(segment)
    return [
        Log(
            node=event.node or 0,
            row=row,
            start=max(event.log_start_offset or 0, starts.get(event.node, 0)),
            end=event.log_end_offset or 0,
            high_watermark=event.high_watermark or 0,
            cleaned_below=event.cleaner_offset or 0,
            is_alive=event.alive is True,
            damage=None if event.error == NO_ERROR else event.error,
            batches=table[nodes == event.node],
        )
        for row, event in log_rows.events(*_OF_A_LOG)
    ]


def _starts(segment: Segment) -> dict[int | None, int]:
    """By broker, where its log has begun at the latest since it was emptied last, as it has traced."""
    starts: dict[int | None, int] = {}
    resizes = segment.where(segment.is_kind(Kind.LOG_START_OFFSET, Kind.LOG_LOADED, Kind.TRUNCATE))
    for _, event in resizes.events("node", "log_start_offset", "log_end_offset"):
        start, before = event.log_start_offset or 0, starts.get(event.node, 0)
        is_emptied = (event.log_end_offset or 0) < before
        starts[event.node] = start if is_emptied else max(start, before)
    return starts


def _holes(tp: str, log: Log, cleaned: int) -> Iterator[Finding]:
    batches = log.batches[log.batches[:, 1] >= cleaned]
    gaps = np.flatnonzero(batches[1:, 0] != batches[:-1, 1] + 1)
    for index in gaps[:1].tolist():
        sentence = (
            f"In the files of broker {log.node} offset {batches[index + 1, 0]} of {tp} follows on "
            f"{batches[index, 1]}."
        )
        yield finding(
            FINAL_LOGS.name, tp, sentence, int(batches[index, 4]), int(batches[index + 1, 4])
        )
    if log.damage is not None and log.is_alive and log.end < log.high_watermark:
        sentence = (
            f"The files of broker {log.node} have {tp} only up to offset {log.end}, below its high watermark "
            f"{log.high_watermark}: {log.damage}."
        )
        yield finding(FINAL_LOGS.name, tp, sentence, log.row)


def _differences(tp: str, logs: list[Log], cleaned: int) -> Iterator[Finding]:
    """Replicas that differ from the one with the highest high watermark below their own."""
    reference = _reference(logs)
    for log in logs:
        begins = max(log.start, reference.start)
        start = max(
            [
                cleaned,
                begins,
                *(
                    int(replica.batches[0, 0])
                    for replica in (log, reference)
                    if len(replica.batches)
                ),
            ]
        )
        yield from _apart_where_cleaned(tp, log, reference, cleaned)
        held, expected = log.between(start, log.committed), reference.between(start, log.committed)
        shared = min(len(held), len(expected))
        differ = np.flatnonzero((held[:shared, :4] != expected[:shared, :4]).any(axis=1))
        if len(held) == len(expected) and not len(differ):
            continue
        index = int(differ[0]) if len(differ) else shared
        rows = [int(table[index, 4]) for table in (held, expected) if index < len(table)]
        offset = min(int(table[index, 0]) for table in (held, expected) if index < len(table))
        sentence = (
            f"Below high watermark {log.committed} the files of broker {log.node} have another batch at offset "
            f"{offset} of {tp}, or none, than those of broker {reference.node}."
        )
        yield finding(FINAL_LOGS.name, tp, sentence, *sorted(rows))


def _reference(logs: list[Log]) -> Log:
    """Return the log with which the others are compared; of no logs an empty one."""
    highest = max(logs, key=lambda log: (log.committed, -log.node), default=None)
    return _NO_LOG if highest is None else highest


def _shared_where_cleaned(log: Log, reference: Log, cleaned: int) -> tuple[Numbers, Numbers]:
    """Return the batches of both logs that begin at one offset, below where compaction has been; none of one log."""
    end = min(cleaned, log.committed) if log is not reference else 0
    start = max(log.start, reference.start)
    held, expected = log.between(start, end), reference.between(start, end)
    _, held_index, expected_index = np.intersect1d(held[:, 0], expected[:, 0], return_indices=True)
    return held[held_index], expected[expected_index]


def _apart_where_cleaned(tp: str, log: Log, reference: Log, cleaned: int) -> Iterator[Finding]:
    """Of those batches the first that end elsewhere, or are of another leader epoch."""
    held, expected = _shared_where_cleaned(log, reference, cleaned)
    for index in np.flatnonzero((held[:, 1:3] != expected[:, 1:3]).any(axis=1))[:1].tolist():
        batch, other_batch = held[index], expected[index]
        sentence = (
            f"The files of broker {log.node} have another batch at offset {batch[0]} of {tp} than those of broker "
            f"{reference.node}, where compaction has been."
        )
        yield finding(FINAL_LOGS.name, tp, sentence, *sorted((int(batch[4]), int(other_batch[4]))))


def _clashes(tp: str, logs: list[Log], segment: Segment, cleaned: int) -> Iterator[Finding]:
    """Two batches of one leader epoch that share an offset; one of them is in a file.

    Of what compaction has rewritten nothing is known unless the brokers have traced it.
    """
    appended = _traced(segment, Kind.APPEND)
    rewritten = _traced(segment, Kind.BATCH_CLEANED)
    stored = [log.batches for log in logs]
    if not any(map(len, stored)):
        return
    in_files = {tuple(batch) for batches in stored for batch in batches[:, :4].tolist()}
    everything = np.concatenate([*stored, appended])
    if not segment.is_kind(Kind.LOG_CLEANED).any():
        everything = everything[everything[:, 0] >= cleaned]
    everything = everything[:, [2, 0, 1, 3, 4]]
    by_epoch = without(distinct(everything), [rewritten[:, [2, 0, 1, 3, 4]]])
    epoch, base, last, crc, row = by_epoch.T
    clash = (epoch[1:] == epoch[:-1]) & (base[1:] <= last[:-1]) & (epoch[1:] >= 0)
    for index in np.flatnonzero(clash).tolist():
        both = [
            (int(base[i]), int(last[i]), int(epoch[i]), int(crc[i])) for i in (index, index + 1)
        ]
        if in_files.isdisjoint(both):
            continue  # both are gone: that is the property log-matching
        sentence = (
            f"Two different batches of leader epoch {epoch[index]} have offset {base[index + 1]} of {tp}, with CRC "
            f"{crc[index]} and {crc[index + 1]}; one of them is in a file."
        )
        yield finding(
            FINAL_LOGS.name, tp, sentence, *sorted((int(row[index]), int(row[index + 1])))
        )
        return


def _traced(segment: Segment, kind: Kind) -> Numbers:
    """A row for each batch, as in ``Log.batches``."""
    traced = segment.where(segment.is_kind(kind))
    return np.stack([*(traced.numbers(name) for name in BATCH), traced.rows], 1)


def _missing(tp: str, logs: list[Log], segment: Segment) -> Iterator[Finding]:
    """Living brokers whose files lack what the last high watermark that counted them says that they have."""
    moves = segment.where(segment.is_kind(Kind.HIGH_WATERMARK))
    loads = segment.where(segment.is_kind(Kind.LOG_LOADED))
    move_index, member = members(moves)
    marks, epochs, times = (
        moves.numbers(name)[move_index] for name in ("high_watermark", "leader_epoch", "time")
    )
    newest = epochs.max() if len(epochs) else 0
    for log in logs:
        counted = np.flatnonzero((member == log.node) & (epochs == newest))
        if not log.is_alive or not len(counted):
            continue
        last = int(counted[-1])
        loaded = loads.numbers("time")[loads.numbers("node") == log.node]
        if len(loaded) and loaded.max() > times[last]:
            continue
        if log.end < marks[last]:
            sentence = (
                f"The files of broker {log.node} end at offset {log.end} of {tp}, though a leader counted on it when "
                f"the high watermark became {marks[last]}."
            )
            yield finding(FINAL_LOGS.name, tp, sentence, int(moves.rows[move_index[last]]), log.row)


def _below_answers(tp: str, logs: list[Log], segment: Segment) -> Iterator[Finding]:
    """Yield the living brokers whose files end below the high watermark that they answered at rest.

    The answer came from the running broker, after the last write; only the stop lies between it and the files.
    """
    answers = segment.where(segment.is_kind(Kind.REPLICA_OFFSETS))
    answered = {
        event.node: (row, event.high_watermark)
        for row, event in answers.events("node", "error", "high_watermark")
        if event.error == NO_ERROR and event.high_watermark is not None
    }
    for log in logs:
        row, mark = answered.get(log.node, (log.row, 0))
        if log.is_alive and log.end < mark:
            sentence = (
                f"The files of broker {log.node} end at offset {log.end} of {tp}, though the running broker answered "
                f"that its high watermark was {mark}."
            )
            yield finding(FINAL_LOGS.name, tp, sentence, row, log.row)


FINAL_LOGS: Final = Property(
    name="final-logs",
    promise="The files of all replicas hold the same committed records when all is over.",
    unit="stored batches",
    unknown="A broker's files cannot be read, or no stored batch lies below a high watermark.",
    source="KIP-101, KIP-279, KIP-320.",
    check=FinalLogs,
    decided_from=frozenset({EventSource.METADATA_LOG, EventSource.STORED_LOGS}),
    stand_ins=frozenset({EventSource.QUORUM_LOG}),
    completed_by=frozenset({EventSource.TRACES, EventSource.REPLICA_OFFSETS}),
    reason=replicas.final_logs,
    breaks=breaks.FINAL_LOGS,
)
