"""A log with offsets, of which nothing is known but what clients sent and polled: anybody's, also with transactions.

What Jepsen's kafka workload asks of a log. Its order is that of its *known* offsets: those where a send was
acknowledged or a poll returned a record. Between two of them offsets may be missing (markers of transactions take
some), so a gap alone is no anomaly.

* **lost-write**: a send was acknowledged at an offset, records at larger offsets were read, and nobody ever read its
  value. Smallest break: ok(7 at 0), a poll returns offset 1 only. So is a record of a transaction in doubt that is
  proved committed, if a record was read that was sent to the log later (``doubtful_transactions``).
* **unseen**: a send was acknowledged, and nobody ever read its value, though a consumer read the log to its end
  afterwards (``read_to_end``). A transaction in doubt is proved committed by a poll of one of its records in any log;
  its other records count as acknowledged then (``doubtful_transactions``).
* **duplicate**: one value at several offsets. Smallest break: ok(7 at 0), a poll returns 7 at 1.
* **inconsistent-offset**: one offset with several values. Smallest break: ok(7 at 0), a poll returns 8 at 0.
* **dirty-read** (G1a): a value was read, and each send of it failed.
* **poll-skip**: from one record to the next that a consumer was given, in one poll or in two, there is a known offset.
* **nonmonotonic-poll**: the next record that a consumer was given is at the same or a smaller offset.
* **nonmonotonic-send**: a producer's send was acknowledged at an offset below that of an earlier one of its own.

Premises, which are those of the workload: a value is sent once; consumers begin at the start of a log and read all of
it, or are other consumers (``nemesis.history.foreign.logs`` names those that are assigned anew); nothing is deleted
by age or compaction. A poll that failed, or whose end is unknown, counts for the records that it reports: they were in
the log. Where its consumer reads on is unknown, so of the order of polls only successful ones tell. A record that such
a poll may have returned is not lost for certain (``polls_in_doubt``). How many
acknowledged records were not read when the history ended is given as a number: it includes those that no consumer
looked for.

The check is arithmetic on columns, one partition at a time. Limits: a partition's records must fit into memory; a
value that nobody sent is not looked for. Source: jepsen.tests.kafka.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Final, Self

import numpy as np
import pyarrow.compute as pc

from nemesis.checkers.breaks import logs as breaks
from nemesis.checkers.cycles.asked_anomalies import model_asked
from nemesis.checkers.cycles.models import Level
from nemesis.checkers.framework.asked import Asked
from nemesis.checkers.framework.findings import finding, tp_name
from nemesis.checkers.framework.fold import MAX_FINDINGS, Grouped, Results, conclude
from nemesis.checkers.framework.model import Finding
from nemesis.checkers.framework.property import History, Property
from nemesis.checkers.framework.segment import Key, Numbers, Segment
from nemesis.checkers.log import client_log
from nemesis.checkers.log.doubtful_transactions import (
    RecordsInDoubt,
    missed_in_doubt,
    records_in_doubt,
)
from nemesis.checkers.log.polls_in_doubt import (
    Missed,
    PollsInDoubt,
    Reader,
    polls_in_doubt,
    readers_of,
)
from nemesis.checkers.log.read_to_end import ends_of_log, unseen
from nemesis.history.events import Kind
from nemesis.history.sources import EventSource


@dataclass(frozen=True, slots=True)
class Records:
    """Places in a log that somebody told of: arrays of equal length, in the order of the rows that tell."""

    offset: Numbers
    value: Numbers
    row: Numbers

    def __len__(self) -> int:
        return len(self.offset)


@dataclass(slots=True)
class LogReport:
    """What one log came to."""

    findings: dict[str, list[Finding]] = field(default_factory=lambda: defaultdict(list))
    """The first of each property."""
    counts: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    checked: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    unseen: int = 0
    missed: dict[str, list[Missed]] = field(default_factory=lambda: defaultdict(list))
    """The first of each property that rests on what no poll returned."""
    in_doubt: RecordsInDoubt | None = None
    polls_in_doubt: PollsInDoubt = field(default_factory=PollsInDoubt)

    def note(self, anomaly: Finding | Missed) -> None:
        """Count a finding, and keep it if it is one of the first of its property."""
        name = (anomaly.finding if isinstance(anomaly, Missed) else anomaly).property
        self.counts[name] += 1
        if self.counts[name] > MAX_FINDINGS:
            return
        if isinstance(anomaly, Missed):
            self.missed[name].append(anomaly)
        else:
            self.findings[name].append(anomaly)

    def judged(self, name: str, in_doubt: PollsInDoubt) -> list[Finding]:
        """Return the findings of a property that were kept; ``in_doubt``: polls of the whole history."""
        return [
            *self.findings.get(name, ()),
            *(missed.judged(in_doubt) for missed in self.missed.get(name, ())),
        ]


class OffsetLog(Grouped[LogReport]):
    keys = ("topic", "partition")
    kinds = frozenset({Kind.INVOKE, Kind.OK, Kind.FAIL, Kind.INFO})
    columns = ("f", "op", "value", "offset", "offsets", "values", "topic", "partition", "group")

    @classmethod
    def properties(cls) -> tuple[Property, ...]:
        return _PROPERTIES

    def __init__(self, *, reads_committed: bool = True) -> None:
        """``reads_committed``: consumers are given only records of committed transactions."""
        self.reads_committed = reads_committed

    @classmethod
    def made_for(cls, asked: Asked) -> Self:
        return cls(reads_committed=model_asked(asked).level >= Level.G1)

    def check(self, key: Key, segment: Segment) -> LogReport:
        report = LogReport(polls_in_doubt=polls_in_doubt(segment))
        topic, partition = key
        if topic is not None:
            _judge(tp_name(topic, partition), segment, report)
        return report

    def finish(self, summaries: list[tuple[Key, LogReport]]) -> Results:
        reports = [report for _, report in summaries]
        in_doubt = PollsInDoubt()
        for report in reports:
            in_doubt.update(report.polls_in_doubt)
        if self.reads_committed:
            reports.append(_judged_together(reports))
        unseen = {
            "acknowledged_and_never_read_records": float(sum(report.unseen for report in reports))
        }
        return [
            conclude(
                decided,
                checked=sum(report.checked[decided.name] for report in reports),
                findings=[
                    finding
                    for report in reports
                    for finding in report.judged(decided.name, in_doubt)
                ],
                finding_count=sum(report.counts[decided.name] for report in reports),
                numbers=unseen if decided is LOST_WRITE else None,
            )
            for decided in self.properties()
        ]


def _judged_together(reports: list[LogReport]) -> LogReport:
    """Return what all logs together show of transactions in doubt."""
    report = LogReport()
    logs = [log.in_doubt for log in reports if log.in_doubt is not None]
    for anomaly in missed_in_doubt(logs):
        report.note(anomaly)
        report.checked[anomaly.finding.property] += 1
    return report


def _judge(tp: str, everything: Segment, report: LogReport) -> None:
    segment = everything.where(~everything.is_kind(Kind.INVOKE))
    sends = segment.where(segment.is_word("f", {"send"}))
    failed = sends.where(sends.is_kind(Kind.FAIL))
    sends = sends.where(sends.is_kind(Kind.OK))
    placed = sends.where(sends.numbers("offset") >= 0)
    acknowledged = Records(placed.numbers("offset"), placed.numbers("value"), placed.rows)
    polls = segment.where(segment.is_word("f", {"poll"}))
    read, poll = _records(polls)
    done = polls.where(polls.is_kind(Kind.OK))
    given, consumer = _records(done)
    known = Records(
        np.concatenate((acknowledged.offset, read.offset)),
        np.concatenate((acknowledged.value, read.value)),
        np.concatenate((acknowledged.row, read.row)),
    )
    never_read = ~np.isin(sends.numbers("value"), read.value)
    report.unseen = int(np.count_nonzero(never_read))
    ends = ends_of_log(everything, int(read.offset.max())) if len(read) else []
    report.in_doubt = records_in_doubt(tp, everything, ends)
    missing = list(unseen(tp, sends.where(never_read), ends))
    for anomaly in (
        *_lost(tp, acknowledged, read, poll, polls),
        *missing,
        *_several(tp, known),
        *_dirty(tp, failed, everything, read),
        *_polled(tp, given, consumer, done, np.unique(known.offset)),
        *_sent(tp, placed),
    ):
        report.note(anomaly)
    report.checked.update(
        {
            "lost-write": len(acknowledged) if len(read) else 0,
            "unseen": len(sends) - report.unseen + len(missing),
            "duplicate": len(known),
            "inconsistent-offset": len(known),
            "dirty-read": len(read),
            "poll-skip": len(given),
            "nonmonotonic-poll": len(given),
            "nonmonotonic-send": len(acknowledged),
        }
    )


def _records(polls: Segment) -> tuple[Records, Numbers]:
    """What polls returned, and which poll (its place in ``polls``) returned each."""
    offsets, values = polls.columns.arrow("offsets"), polls.columns.arrow("values")
    lengths = pc.fill_null(pc.list_value_length(offsets), 0).to_numpy()
    poll = np.repeat(np.arange(len(polls), dtype=np.int64), lengths)
    flat = [
        np.asarray(pc.list_flatten(column).to_numpy(), dtype=np.int64)
        for column in (offsets, values)
    ]
    return Records(flat[0], flat[1], polls.rows[poll]), poll


def _lost(
    tp: str, acknowledged: Records, read: Records, poll: Numbers, polls: Segment
) -> Iterator[Missed]:
    """Yield lost writes in the order of their offsets; ``poll``: the position in ``polls`` of each record read."""
    if not len(read):
        return
    last = int(np.argmax(read.offset))
    is_lost = (acknowledged.offset < read.offset[last]) & ~np.isin(acknowledged.value, read.value)
    # A consumer that passed over a record passed over those before it, so the first are the most certain.
    lost = np.flatnonzero(is_lost)
    lost = lost[np.argsort(acknowledged.offset[lost], kind="stable")]
    witnesses = _next_read(acknowledged.offset[lost], read)
    readers: tuple[Reader, ...] = ()
    for number, (offset, value, row, witness) in enumerate(
        zip(
            acknowledged.offset[lost].tolist(),
            acknowledged.value[lost].tolist(),
            acknowledged.row[lost].tolist(),
            witnesses.tolist(),
            strict=True,
        )
    ):
        sentence = (
            f"Value {value}, acknowledged at offset {offset} of {tp}, was never read, though offset "
            f"{read.offset[witness]} was."
        )
        steps = (
            f"A send of {value} to {tp} was acknowledged at offset {offset}.",
            f"A poll returned value {read.value[witness]} at offset {read.offset[witness]}, which is behind it.",
            f"No poll of the history returned {value}, at any offset.",
        )
        if number < MAX_FINDINGS:
            readers = readers_of(polls, poll[read.offset > offset])
        rows = row, int(read.row[witness])
        yield Missed(finding("lost-write", tp, sentence, *rows, steps=steps), readers)


def _next_read(offsets: Numbers, read: Records) -> Numbers:
    """The record read at the smallest larger offset, for each of these offsets; there is one."""
    permutation = np.argsort(read.offset, kind="stable")
    return permutation[np.searchsorted(read.offset[permutation], offsets, side="right")]


def _several(tp: str, known: Records) -> Iterator[Finding]:
    """Offsets with several values, and values at several offsets."""
    for first, other in _disagreeing(known.offset, known.value):
        offset, values = known.offset[first], (known.value[first], known.value[other])
        sentence = f"Offset {offset} of {tp} held value {values[0]} and value {values[1]}."
        rows = int(known.row[first]), int(known.row[other])
        yield finding("inconsistent-offset", tp, sentence, *rows)
    for first, other in _disagreeing(known.value, known.offset):
        value, offsets = known.value[first], (known.offset[first], known.offset[other])
        sentence = (
            f"Value {value} stands at offset {offsets[0]} and at offset {offsets[1]} of {tp}."
        )
        rows = int(known.row[first]), int(known.row[other])
        yield finding("duplicate", tp, sentence, *rows)


def _disagreeing(keys: Numbers, values: Numbers) -> Iterator[tuple[int, int]]:
    """For each key with different values: the position of its first value, and of the first other one."""
    if not len(keys):
        return
    permutation = np.lexsort((np.arange(len(keys)), keys))
    begins = np.concatenate(([True], keys[permutation][1:] != keys[permutation][:-1]))
    first = permutation[np.flatnonzero(begins)][np.cumsum(begins) - 1]
    differs = np.flatnonzero(values[permutation] != values[first])
    _, once = np.unique(keys[permutation][differs], return_index=True)
    for index in np.sort(differs[once]).tolist():
        yield int(first[index]), int(permutation[index])


def _dirty(tp: str, failed: Segment, everything: Segment, read: Records) -> Iterator[Finding]:
    """Yield values that were read and of which every send failed; ``everything``: all events of the log."""
    values = failed.numbers("value")
    sends = everything.where(everything.is_word("f", {"send"}))
    others = sends.numbers("value")[~np.isin(sends.numbers("op"), failed.numbers("op"))]
    is_read = np.isin(values, read.value) & ~np.isin(values, others)
    read_values, first = np.unique(read.value, return_index=True)
    reads = read.row[first[np.searchsorted(read_values, values[is_read])]]
    rows = failed.rows[is_read]
    for value, row, read_row in zip(
        values[is_read].tolist(), rows.tolist(), reads.tolist(), strict=True
    ):
        sentence = f"Value {value} was read from {tp} though its send had failed."
        yield finding("dirty-read", tp, sentence, row, read_row)


def _polled(
    tp: str, read: Records, poll: Numbers, polls: Segment, known: Numbers
) -> Iterator[Finding]:
    """What consumers were given one after the other; ``known``: offsets, ascending, each once."""
    consumers, names = polls.codes("process")
    permutation = np.argsort(consumers[poll], kind="stable")
    before, after = permutation[:-1], permutation[1:]
    same = consumers[poll][before] == consumers[poll][after]
    before, after = before[same], after[same]
    rank = np.searchsorted(known, read.offset)
    step = rank[after] - rank[before]
    for index in np.flatnonzero(step != 1).tolist():
        a, b = int(before[index]), int(after[index])
        process = names[int(consumers[poll[a]])]
        offset, next_offset = int(read.offset[a]), int(read.offset[b])
        rows = dict.fromkeys((int(read.row[a]), int(read.row[b])))
        if step[index] > 1:
            skipped = int(known[rank[a] + 1])
            name = "poll-skip"
            sentence = (
                f"{process} was given offset {offset} of {tp}, then {next_offset}, and not {skipped}, where a record "
                "stands."
            )
        else:
            name = "nonmonotonic-poll"
            sentence = f"{process} was given offset {offset} of {tp}, then {next_offset}."
        yield finding(name, tp, sentence, *rows)


def _sent(tp: str, placed: Segment) -> Iterator[Finding]:
    """Acknowledged sends of one producer in the order in which it sent."""
    producers, names = placed.codes("process")
    permutation = np.lexsort((placed.numbers("op"), producers))
    offsets, values = placed.numbers("offset")[permutation], placed.numbers("value")[permutation]
    producer = producers[permutation]
    before, after = np.arange(len(permutation) - 1), np.arange(1, len(permutation))
    falls = (producer[before] == producer[after]) & (offsets[after] <= offsets[before])
    for index in np.flatnonzero(falls).tolist():
        process = names[int(producer[index])]
        sentence = (
            f"{process} sent value {values[index]} to {tp} and then value {values[index + 1]}, which were acknowledged "
            f"at offsets {offsets[index]} and {offsets[index + 1]}."
        )
        rows = int(placed.rows[permutation[index]]), int(placed.rows[permutation[index + 1]])
        yield finding("nonmonotonic-send", tp, sentence, *rows)


def _of_a_log(
    property_of_ours: Property, unit: str, smallest: tuple[History, ...], *, is_self_evident: bool
) -> Property:
    """Return the property of the same promise, of a log of which only operations are known."""
    return replace(
        property_of_ours,
        unit=unit,
        unknown=f"The history has no {unit}.",
        source="The kafka workload of jepsen.tests.",
        check=OffsetLog,
        decided_from=frozenset({EventSource.CLIENTS}),
        completed_by=frozenset(),
        breaks=smallest,
        is_self_evident=is_self_evident,
    )


LOST_WRITE: Final = _of_a_log(
    client_log.LOST_WRITE, "acknowledged sends", breaks.LOST_WRITE, is_self_evident=False
)
_PROPERTIES: Final = (
    LOST_WRITE,
    replace(
        _of_a_log(client_log.UNSEEN, "acknowledged sends", breaks.UNSEEN, is_self_evident=False),
        promise="An acknowledged record is read by a consumer that reads its log to the end afterwards.",
        unknown="No acknowledged record was read, and no consumer read a log to its end.",
        reason=None,
        stand_ins=frozenset(),
    ),
    _of_a_log(client_log.DUPLICATE, "known records", breaks.DUPLICATE, is_self_evident=True),
    _of_a_log(
        client_log.INCONSISTENT_OFFSET,
        "known records",
        breaks.INCONSISTENT_OFFSET,
        is_self_evident=True,
    ),
    _of_a_log(client_log.DIRTY_READ, "records read", breaks.DIRTY_READ, is_self_evident=True),
    _of_a_log(client_log.POLL_SKIP, "records read", breaks.POLL_SKIP, is_self_evident=False),
    _of_a_log(
        client_log.NONMONOTONIC_POLL,
        "records read",
        breaks.NONMONOTONIC_POLL,
        is_self_evident=False,
    ),
    _of_a_log(
        client_log.NONMONOTONIC_SEND,
        "acknowledged sends",
        breaks.NONMONOTONIC_SEND,
        is_self_evident=True,
    ),
)
