"""What stands beside the batches of a log says what the batches say.

* **log-files-agree**: of each log, as the files of a stopped broker hold it,
  (a) each batch lies in the segment that its offset names;
  (b) an entry (offset, position) of an offset index names the beginning of a batch, and no batch before that position
  reaches the offset; an entry (time, offset) of a time index is so that no batch that ends before the offset has a
  later time, and the batch that holds the offset has this time; the last entry has the largest time of the segment;
  (c) the epoch of each batch is the one that ``leader-epoch-checkpoint`` gives to its offsets;
  (d) a snapshot of producers has the last batch of each producer below the snapshot's offset;
  (e) below the checkpoint of the cleaner no two records have one key;
  (f) what a log was synced and compacted up to, by the checkpoints, is not behind its end;
  (g) when a broker has raised the start of a log, and deleted the segments before it, no epoch in
  ``leader-epoch-checkpoint`` begins before the first segment that is left.
  Smallest break: batches of 10 bytes at offsets 0 and 1, and an index with offset 0 at position 10.
* **segments-roll**: a segment is never larger than ``segment.bytes``, and two segments that follow each other would
  not have fitted into one; the last one does not count, nor one that may have been cut.
  Smallest break: ``segment.bytes`` is 10, and the only segment has 11 bytes.

Why (b) is the promise: who looks up an offset scans from the position of the largest entry up to it, and who looks
up a time from the offset of the largest entry below it. A batch that the entry skips is never found. Indexes are
written when a segment is rolled, so those of the last segment may be old.
Why (e) holds after every cleaning: the cleaner takes in all keys between the last checkpoint and the next one, and
removes what they supersede from all that is below. A log that is cut has its checkpoint cut first.
Why (g) is the promise: when the start moves, the epoch in force there begins there, and the ones before it are removed.
A leader that keeps them answers that an epoch ends where it has no log, and a follower cuts its log there. The epochs
are written before segments are deleted.
Why segments-roll holds for followers: they append what a leader answers, of one of its segments, in one piece. The
piece for which a segment is begun can be cut later, and only a part of it is left: after a change of the leader epoch,
or where a disk has lost what was not synced.

What a correct cluster does and is not convicted for: a log that is damaged where the broker was killed is judged up to
there; an index or snapshot that is missing is built again when the log is opened; epochs at the end of a log may have
no batch yet, and the first one begins where the log was set to start, before a checkpoint has that (a broker that
traces has traced that start); a compacted log
lacks batches that snapshots name; segments are smaller after compaction, and when the time between their records is an
hour or more. A broker that reported a failed log directory could not write checkpoints any more. (d) does not ask for
producers where a wall clock was moved, because old ones are forgotten.

Limits: (g) is judged where the broker traced the new start. Apache Kafka does not, and since 3.8 it writes the epochs
after it deletes segments: a kill in between leaves them. Of segments-roll, two segments are not compared if they and
the next batch are of several leader epochs, or on a broker whose disk failed or lost writes. Topics with settings of
their own about segments are left out, as are those of which the settings cannot be read. Two segments are not compared,
either, where brokers roll segments by age or by the size of an index as well. How many entries an index has is not
judged.
Source: LogSegment, OffsetIndex, TimeIndex, LeaderEpochFileCache, ProducerStateManager, LogCleaner, LocalLog.roll.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Final, NamedTuple

import numpy as np

from nemesis.checkers import settings_written
from nemesis.checkers.breaks import log_files as breaks
from nemesis.checkers.explain import log_files as explain
from nemesis.checkers.framework.findings import finding, tp_name
from nemesis.checkers.framework.fold import Grouped, Results, conclude
from nemesis.checkers.framework.model import Finding
from nemesis.checkers.framework.property import Property
from nemesis.checkers.framework.segment import Key, Segment
from nemesis.checkers.replication.stored_replica import Batches, Replica, replicas
from nemesis.checkers.settings_written import broker_settings
from nemesis.checkers.znodes import TOPIC_CONFIGS
from nemesis.history.events import Kind
from nemesis.history.sources import EventSource
from nemesis.history.vocabulary.harness import ROLLS, SEGMENT_BYTES

_CLOCKS: Final = "clock"
"""In the names of faults that move wall clocks."""
_LOSE_WRITES: Final = frozenset(
    {"power-cut", "corrupt-tail", "disk-full", "disk-failure", "log-dir-failure"}
)
"""Faults after which a log may end in the middle of what was appended in one piece."""
_STARTS: Final = frozenset(
    {Kind.LOG_LOADED, Kind.LOG_START_OFFSET, Kind.LOG_DIR_CHANGED, Kind.TRUNCATE}
)
"""With these a broker traces where a log starts, before the epochs below are removed."""
_UNKNOWN_START: Final = 2**63 - 1
_HOUR_MS: Final = 3_600_000
_SEQUENCES: Final = 2**31


class Sizes(NamedTuple):
    """A segment, and the one behind it."""

    base: int
    size: int
    following: int | None
    """The size of the next segment; None if that is the last one, does not exist, or may have been cut."""
    age_ms: int
    """Between the largest time of its first batch and that of the next segment's."""
    row: int


@dataclass(slots=True)
class Report:
    """What one partition, or the run as a whole, came to."""

    logs: int = 0
    segments: int = 0
    findings: list[Finding] = field(default_factory=list)
    behind_end: list[tuple[int, Finding]] = field(default_factory=list)
    """With the broker: nothing is known where its log directory failed."""
    forgotten: list[Finding] = field(default_factory=list)
    """Producers that a snapshot lacks."""
    sizes: list[tuple[int, Sizes]] = field(default_factory=list)
    """With the broker; of logs that were never compacted."""
    segment_bytes: list[int] = field(default_factory=list)
    """The brokers' ``segment.bytes``, as they were configured."""
    changed_bytes: list[int] = field(default_factory=list)
    """The same setting, as it was changed meanwhile."""
    has_other_rolls: bool = False
    """Whether brokers roll segments by other settings, too."""
    special: set[str] = field(default_factory=set)
    """Topics with settings of their own about segments."""
    failed: set[int] = field(default_factory=set)
    """Brokers that reported a failed log directory."""
    has_moved_clocks: bool = False
    struck: set[str] = field(default_factory=set)
    """Nodes whose disks failed or lost writes."""


class LogFiles(Grouped[Report]):
    keys = ("topic", "partition", "topic_id")
    kinds = frozenset(
        {
            Kind.STORED_LOG,
            Kind.STORED_SEGMENT,
            Kind.STORED_BATCH,
            Kind.STORED_INDEX_ENTRY,
            Kind.STORED_EPOCH,
            Kind.STORED_SNAPSHOT,
            Kind.STORED_PRODUCER,
            Kind.BROKER_PROPERTY,
            Kind.ZNODE,
            Kind.LOG_DIR_FAILED,
            Kind.FAULT_INVOKE,
            *_STARTS,
        }
    )
    columns = (
        *("topic", "topic_id", "partition", "node", "offset", "last_offset", "leader_epoch"),
        *("segment_offset", "position", "max_timestamp", "count", "error", "log_start_offset"),
        *("log_end_offset", "cleaner_offset", "recovery_point", "superseded_offset"),
        *(
            "producer_id",
            "producer_epoch",
            "sequence",
            "setting",
            "fault",
            "targets",
            *settings_written.COLUMNS,
        ),
    )

    @classmethod
    def properties(cls) -> tuple[Property, ...]:
        return (LOG_FILES_AGREE, SEGMENTS_ROLL)

    def check(self, key: Key, segment: Segment) -> Report:
        topic, partition, _ = key
        report = _of_run(segment)
        if topic is None:
            return report
        tp = tp_name(topic, partition)
        raised = _raised_starts(segment.only({Kind.LOG_START_OFFSET}))
        starts = _traced_starts(segment.only(_STARTS))
        for replica in replicas(segment):
            report.logs += 1
            report.findings += _misplaced(tp, replica)
            report.findings += _offset_entries(tp, replica)
            report.findings += _time_entries(tp, replica)
            report.findings += _epochs(tp, replica, starts.get(replica.node))
            report.findings += _epochs_before_start(tp, replica, raised.get(replica.node))
            report.findings += _superseded(tp, replica)
            report.findings += _wrong_producers(tp, replica)
            report.forgotten += _forgotten_producers(tp, replica)
            report.behind_end += ((replica.node, item) for item in _behind_end(tp, replica))
            sizes = list(_sizes(replica))
            report.segments += len(sizes)
            report.sizes += ((replica.node, item) for item in sizes)
        return report

    def finish(self, summaries: list[tuple[Key, Report]]) -> Results:
        reports = [report for _, report in summaries]
        failed = {node for report in reports for node in report.failed}
        agreeing = [item for report in reports for item in report.findings]
        agreeing += [
            item for report in reports for node, item in report.behind_end if node not in failed
        ]
        if not any(report.has_moved_clocks for report in reports):
            agreeing += [item for report in reports for item in report.forgotten]
        rolled = [item for key, report in summaries for item in _rolled(key, report, reports)]
        is_known = any(report.segment_bytes for report in reports)
        return [
            conclude(LOG_FILES_AGREE, checked=sum(r.logs for r in reports), findings=agreeing),
            conclude(
                SEGMENTS_ROLL,
                checked=sum(report.segments for report in reports) if is_known else 0,
                findings=rolled,
            ),
        ]


def _of_run(segment: Segment) -> Report:
    """Return what the events tell that are not about the files of a log."""
    report = Report()
    written = broker_settings(list(segment.only({Kind.ZNODE}).events(*settings_written.COLUMNS)))
    report.has_other_rolls = not written.keys().isdisjoint(ROLLS)
    report.changed_bytes = [
        int(text) for text in written.get(SEGMENT_BYTES, ()) if text.isdecimal()
    ]
    others = segment.only(
        {Kind.BROKER_PROPERTY, Kind.ZNODE, Kind.LOG_DIR_FAILED, Kind.FAULT_INVOKE}
    )
    for _, event in others.events("node", "setting", "count", "fault", "targets", "path", "data"):
        if event.kind == Kind.LOG_DIR_FAILED:
            report.failed.add(event.node or 0)
        elif event.kind == Kind.FAULT_INVOKE:
            report.has_moved_clocks |= _CLOCKS in (event.fault or "")
            report.struck.update(event.targets or () if event.fault in _LOSE_WRITES else ())
        elif event.setting in ROLLS:
            report.has_other_rolls = True
        elif event.setting == SEGMENT_BYTES and event.count is not None:
            report.segment_bytes.append(event.count)
        elif (event.path or "").startswith(TOPIC_CONFIGS) and "segment" in (event.data or ""):
            report.special.add((event.path or "").removeprefix(TOPIC_CONFIGS))
    return report


# -- log-files-agree


def _misplaced(tp: str, replica: Replica) -> Iterator[Finding]:
    bases = sorted(replica.segments)
    behind = dict(pairwise(bases))
    batches = replica.batches
    for base in bases:
        inside = batches.where(batches.segment == base)
        end = behind.get(base)
        wrong = inside.base < base
        if end is not None:
            wrong = wrong | (inside.last >= end)
        for index in np.flatnonzero(wrong)[:1].tolist():
            sentence = (
                f"In the files of broker {replica.node} offset {inside.base[index]} of {tp} is in the segment from "
                f"offset {base} on" + (f", though the next one begins at {end}." if end else ".")
            )
            yield finding(LOG_FILES_AGREE.name, tp, sentence, int(inside.row[index]))


def _offset_entries(tp: str, replica: Replica) -> Iterator[Finding]:
    for entry in replica.index_entries:
        inside = replica.rolled_batches(entry.segment)
        if inside is None or entry.position is None:
            continue
        named = np.flatnonzero(inside.position == entry.position)
        skipped = np.flatnonzero((inside.position < entry.position) & (inside.last >= entry.offset))
        if len(named) and not len(skipped):
            continue
        problem = (
            "where no batch begins"
            if not len(named)
            else "and a batch before it reaches that offset"
        )
        sentence = (
            f"In the files of broker {replica.node} the index of the segment of {tp} from offset {entry.segment} on "
            f"has offset {entry.offset} at byte {entry.position}, {problem}."
        )
        rows = [int(inside.row[skipped[0]])] if len(skipped) else []
        yield finding(LOG_FILES_AGREE.name, tp, sentence, *rows, entry.row)
        return


def _time_entries(tp: str, replica: Replica) -> Iterator[Finding]:
    last: dict[int, Any] = {}
    for entry in replica.index_entries:
        inside = replica.rolled_batches(entry.segment)
        if inside is None or entry.timestamp is None:
            continue
        last[entry.segment] = entry
        later = np.flatnonzero((inside.last < entry.offset) & (inside.timestamp > entry.timestamp))
        holder = np.flatnonzero((inside.base <= entry.offset) & (entry.offset <= inside.last))
        is_other = bool(len(holder)) and int(inside.timestamp[holder[0]]) != entry.timestamp
        if len(later) or is_other:
            index = int(later[0] if len(later) else holder[0])
            yield _wrong_time(tp, replica, entry, inside, index)
            return
    for segment, entry in last.items():
        inside = replica.rolled_batches(segment)
        if inside is not None and len(inside) and inside.timestamp.max() > entry.timestamp:
            yield _wrong_time(tp, replica, entry, inside, int(inside.timestamp.argmax()))
            return


def _wrong_time(tp: str, replica: Replica, entry: Any, inside: Batches, index: int) -> Finding:
    sentence = (
        f"In the files of broker {replica.node} the time index of the segment of {tp} from offset {entry.segment} on "
        f"has time {entry.timestamp} at offset {entry.offset}, but the batch from offset {inside.base[index]} to "
        f"{inside.last[index]} has {inside.timestamp[index]}."
    )
    return finding(LOG_FILES_AGREE.name, tp, sentence, int(inside.row[index]), entry.row)


def _epochs(tp: str, replica: Replica, traced_start: int | None) -> Iterator[Finding]:
    """Of the first batch whose epoch is not the one of the checkpoint.

    Where the first epoch of the checkpoint begins behind the checkpoint of the start, the log was set to start there. A
    broker that traces has traced this start before: ``traced_start`` is the highest that it has.
    """
    epochs = replica.epochs
    start = replica.start
    if traced_start is not None:
        start = max(replica.checkpointed_start, min(start, traced_start))
    batches = replica.batches.where(replica.batches.base >= start)
    if not len(batches):
        return
    starts = np.array([epoch.offset for epoch in epochs], dtype=np.int64)
    numbers = np.array([-1, *(epoch.leader_epoch for epoch in epochs)], dtype=np.int64)
    first = np.searchsorted(starts, batches.base, side="right")
    wrong = (numbers[first] != batches.epoch) | (
        np.searchsorted(starts, batches.last, side="right") != first
    )
    for index in np.flatnonzero(wrong)[:1].tolist():
        known = int(first[index])
        epoch = f"leader epoch {numbers[known]}" if known else "no leader epoch"
        sentence = (
            f"In the files of broker {replica.node} the batch of {tp} from offset {batches.base[index]} to "
            f"{batches.last[index]} is of leader epoch {batches.epoch[index]}, and its checkpoint of epochs gives "
            f"them {epoch}."
        )
        row = epochs[known - 1].row if known else None
        yield finding(LOG_FILES_AGREE.name, tp, sentence, int(batches.row[index]), row)


def _raised_starts(moves: Segment) -> dict[int, tuple[int, int]]:
    """Return for each broker the highest start of the log that it traced, and the row that proves it."""
    highest: dict[int, tuple[int, int]] = {}
    for row, event in moves.events("node", "log_start_offset"):
        move = (event.log_start_offset or 0, row)
        node = event.node or 0
        highest[node] = max(highest.get(node, move), move)
    return highest


def _traced_starts(traced: Segment) -> dict[int, int]:
    """Return for each broker that traces the highest start of the log that it traced."""
    highest: dict[int, int] = {}
    loaded: set[int] = set()
    for _, event in traced.events("node", "log_start_offset"):
        node, start = event.node or 0, event.log_start_offset
        # Truncations in old histories have no start.
        highest[node] = max(highest.get(node, 0), _UNKNOWN_START if start is None else start)
        if event.kind == Kind.LOG_LOADED:
            loaded.add(node)
    return {node: start for node, start in highest.items() if node in loaded}


def _epochs_before_start(
    tp: str, replica: Replica, raised: tuple[int, int] | None
) -> Iterator[Finding]:
    """Of the earliest epoch that begins before the first segment, if the broker has raised the start up to there.

    The first segment counts, not the start: a broker that is killed may have traced a start and not yet acted on it.
    """
    first = min(replica.segments, default=0)
    if raised is None or raised[0] < first:
        return
    for epoch in replica.epochs:
        if epoch.offset < first:
            sentence = (
                f"In the files of broker {replica.node} the first segment of {tp} is the one from offset {first} on, "
                f"but by its checkpoint of epochs leader epoch {epoch.leader_epoch} begins at {epoch.offset}."
            )
            rows = (replica.segments[first][1], epoch.row)
            yield finding(LOG_FILES_AGREE.name, tp, sentence, raised[1], *rows)
            return


def _superseded(tp: str, replica: Replica) -> Iterator[Finding]:
    if replica.superseded is not None:
        sentence = (
            f"In the files of broker {replica.node} the record at offset {replica.superseded} of {tp} is still there, "
            f"though a later one has its key, and the log is compacted up to {replica.cleaned_below}."
        )
        yield finding(LOG_FILES_AGREE.name, tp, sentence, replica.row)


def _wrong_producers(tp: str, replica: Replica) -> Iterator[Finding]:
    batches = replica.batches
    for known in replica.producers:
        if known.snapshot > replica.end:
            continue
        own = batches.where((batches.producer == known.producer) & (batches.last < known.snapshot))
        holder = batches.where(
            (batches.base <= known.last_offset) & (known.last_offset <= batches.last)
        )
        newer = own.where(own.last > known.last_offset)
        if known.last_offset < 0:
            # A marker of a newer epoch ended the producer's epoch, and the log has nothing else of the newer one.
            newer = newer.where(newer.producer_epoch == known.epoch)
        wrong = newer if len(newer) else holder.where(_is_another(holder, known))
        is_beyond = known.last_offset >= known.snapshot
        if not len(wrong) and not is_beyond:
            continue
        sentence = (
            f"In the files of broker {replica.node} the snapshot of the producers of {tp} below offset "
            f"{known.snapshot} has offset {known.last_offset}, epoch {known.epoch} and sequence number "
            f"{known.sequence} as the last of producer {known.producer}"
        )
        if len(wrong):
            sentence += (
                f", but the batch from {wrong.base[0]} to {wrong.last[0]} is of producer {wrong.producer[0]}, epoch "
                f"{wrong.producer_epoch[0]}, from sequence number {wrong.sequence[0]} on"
            )
        row = int(wrong.row[0]) if len(wrong) else None
        yield finding(LOG_FILES_AGREE.name, tp, f"{sentence}.", row, known.row)
        return


def _is_another(holder: Batches, known: Any) -> Any:
    numbered = (holder.sequence + holder.last - holder.base) % _SEQUENCES
    last_sequence = np.where(holder.sequence < 0, holder.sequence, numbered)
    return (
        (holder.producer != known.producer)
        | (holder.producer_epoch != known.epoch)
        | (holder.last != known.last_offset)
        | (last_sequence != known.sequence)
    )


def _forgotten_producers(tp: str, replica: Replica) -> Iterator[Finding]:
    batches = replica.batches
    batches = batches.where((batches.producer >= 0) & (batches.base >= replica.start))
    for offset, row in replica.snapshots:
        known = {item.producer for item in replica.producers if item.snapshot == offset}
        below = batches.where(batches.last < offset)
        missing = np.flatnonzero(~np.isin(below.producer, list(known)))
        if offset > replica.end or not len(missing):
            continue
        index = int(missing[0])
        sentence = (
            f"In the files of broker {replica.node} the snapshot of the producers of {tp} below offset {offset} lacks "
            f"producer {below.producer[index]}, which wrote the batch from {below.base[index]} to {below.last[index]}."
        )
        yield finding(LOG_FILES_AGREE.name, tp, sentence, int(below.row[index]), row)
        return


def _behind_end(tp: str, replica: Replica) -> Iterator[Finding]:
    if replica.damage is not None:
        return
    for label, offset in (
        ("synced", replica.recovery_point),
        ("compacted", replica.cleaned_below),
    ):
        if offset > replica.end:
            sentence = (
                f"By a checkpoint of broker {replica.node} {tp} was {label} up to offset {offset}, but its log ends at "
                f"{replica.end}."
            )
            yield finding(LOG_FILES_AGREE.name, tp, sentence, replica.row)


# -- segments-roll


def _sizes(replica: Replica) -> Iterator[Sizes]:
    bases = sorted(replica.segments)
    for index, base in enumerate(bases):
        size, row = replica.segments[base]
        following = None
        age_ms = 0
        if (
            index + 2 < len(bases)
            and replica.cleaned_below == 0
            and _is_of_one_epoch(replica, *bases[index : index + 3])
        ):
            following = replica.segments[bases[index + 1]][0]
            age_ms = _age_ms(replica, base, bases[index + 1])
        yield Sizes(base, size, following, age_ms, row)


def _is_of_one_epoch(replica: Replica, base: int, following: int, then: int) -> bool:
    """Whether the batches of two segments and the first behind them are of one leader epoch: a log is cut where epochs
    change."""
    batches = replica.batches
    inside = batches.epoch[(batches.segment == base) | (batches.segment == following)]
    behind = batches.epoch[batches.segment == then][:1]
    return len({*inside.tolist(), *behind.tolist()}) <= 1


def _age_ms(replica: Replica, base: int, following: int) -> int:
    batches = replica.batches
    first, then = (
        batches.timestamp[batches.segment == segment][:1] for segment in (base, following)
    )
    return int(then[0] - first[0]) if len(first) and len(then) else _HOUR_MS


def _rolled(key: Key, report: Report, reports: Sequence[Report]) -> Iterator[Finding]:
    topic, partition, _ = key
    limits = [size for item in reports for size in item.segment_bytes]
    if topic is None or not limits or any(topic in item.special for item in reports):
        return
    limits += [size for item in reports for size in item.changed_bytes]
    least, most = min(limits), max(limits)
    has_other_rolls = any(item.has_other_rolls for item in reports)
    tp = tp_name(topic, partition)
    struck = {node for item in reports for node in item.struck}
    for node, sizes in report.sizes:
        if sizes.size > most:
            sentence = (
                f"In the files of broker {node} the segment of {tp} from offset {sizes.base} on has {sizes.size:,} "
                f"bytes; segment.bytes is {most:,}."
            )
            yield finding(SEGMENTS_ROLL.name, tp, sentence, sizes.row)
        elif (
            sizes.following is not None
            and not has_other_rolls
            and f"broker-{node}" not in struck
            and sizes.size + sizes.following <= least
            and abs(sizes.age_ms) < _HOUR_MS
        ):
            sentence = (
                f"In the files of broker {node} the segment of {tp} from offset {sizes.base} on has {sizes.size:,} "
                f"bytes and the next one {sizes.following:,}; segment.bytes is {least:,}."
            )
            yield finding(SEGMENTS_ROLL.name, tp, sentence, sizes.row)


LOG_FILES_AGREE: Final = Property(
    name="log-files-agree",
    promise="Indexes, epochs, snapshots of producers and checkpoints say of a log what its batches say.",
    unit="stored logs",
    unknown="No broker's files could be read.",
    source="LogSegment, OffsetIndex, TimeIndex, LeaderEpochFileCache, ProducerStateManager, LogCleaner.",
    check=LogFiles,
    decided_from=frozenset({EventSource.STORED_LOGS}),
    completed_by=frozenset({EventSource.FAULTS}),
    recorded_since=7,
    reason=explain.log_files_agree,
    breaks=breaks.LOG_FILES_AGREE,
)

SEGMENTS_ROLL: Final = Property(
    name="segments-roll",
    promise="A log begins a new segment when the last one is full, and not before.",
    unit="stored segments",
    unknown="The harness did not record segment.bytes, or no log was read.",
    source="LocalLog.roll, LogSegment.shouldRoll.",
    check=LogFiles,
    decided_from=frozenset({EventSource.STORED_LOGS, EventSource.HARNESS}),
    recorded_since=7,
    reason=explain.segments_roll,
    breaks=breaks.SEGMENTS_ROLL,
)
