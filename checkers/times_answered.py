"""What ListOffsets answers to a time.

* **times-answered**: a leader that is asked for the first record that is not older than a time answers an offset so
  that (a) the batch that holds the offset has a record that is not older; (b) no batch that the leader had before it
  was asked, behind the start of its log, ends before the offset and has a record that is not older; and it answers
  that no such record exists only if (c) no such batch lay below its high watermark.
  Smallest break: batches at offsets 0 and 1 have times 10 and 20, and a leader answers 1 to time 10.

The idea: the times that count are those in the batches. They are read from the broker's files once it is stopped, where
each batch has the largest time of its records. A batch that the broker had appended before it was asked, and that is
still in its files, was there when it answered. One that it has appended since says nothing about the answer.

What a correct cluster does and is not convicted for: answers from the first record of a batch that holds the right
one; batches that were deleted or truncated since; batches of a log that was deleted, before the replica that came back
has fetched them again; batches below where the log has begun at any time; records at or
above the high watermark, which consumers do not see yet; partitions that were compacted; wall clocks that are
wrong, because no clock is looked at.

Source: KIP-33, KIP-79; UnifiedLog.fetchOffsetByTimestamp.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import numpy as np

from nemesis.checkers.breaks import times_answered as breaks
from nemesis.checkers.explain import times_answered as explain
from nemesis.checkers.framework.findings import finding, tp_name
from nemesis.checkers.framework.fold import Grouped, Results, conclude
from nemesis.checkers.framework.model import Finding
from nemesis.checkers.framework.property import Property
from nemesis.checkers.framework.segment import Key, Numbers, Segment
from nemesis.history.events import Event, Kind
from nemesis.history.sources import EventSource

_BY_TIME: Final = "offset-by-time"
_STARTS: Final = frozenset(
    {Kind.LOG_START_OFFSET, Kind.LOG_LOADED, Kind.LOG_DIR_CHANGED, Kind.TRUNCATE}
)
_MARKS: Final = frozenset(
    {Kind.HIGH_WATERMARK, Kind.BECOME_LEADER, Kind.BECOME_FOLLOWER, Kind.LOG_LOADED}
)
"""They state the high watermark of a log."""


class Answer(NamedTuple):
    node: int
    asked_at: int
    """When the request was sent, in ns."""
    answered_at: int
    """When the answer was received, in ns."""
    wanted_ms: int
    offset: int
    """−1: no record."""
    asked_row: int
    row: int


class Files(NamedTuple):
    """The batches that one broker left, and since when it had each."""

    base: Numbers
    last: Numbers
    time_ms: Numbers
    """The largest of each."""
    since: Numbers
    """When the broker appended the batch to the log that it left, in ns; very late if it did not trace that."""
    row: Numbers


@dataclass(slots=True)
class Report:
    checked: int = 0
    findings: list[Finding] = field(default_factory=list)


class TimesAnswered(Grouped[Report]):
    keys = ("topic", "partition", "topic_id")
    kinds = _STARTS | {
        *(Kind.INVOKE, Kind.OK, Kind.STORED_LOG, Kind.STORED_BATCH, Kind.APPEND),
        *(Kind.LOG_CLEANED, Kind.HIGH_WATERMARK, Kind.BECOME_LEADER, Kind.BECOME_FOLLOWER),
    }
    columns = (
        *("topic", "topic_id", "partition", "node", "f", "op", "wall_ms", "offset", "last_offset"),
        *("crc", "leader_epoch", "max_timestamp", "log_start_offset", "cleaner_offset"),
        "high_watermark",
    )

    @classmethod
    def properties(cls) -> tuple[Property, ...]:
        return (TIMES_ANSWERED,)

    def check(self, key: Key, segment: Segment) -> Report:
        topic, partition, _ = key
        answers = _answers(segment.only({Kind.INVOKE, Kind.OK})) if topic is not None else []
        report = Report(checked=len(answers) + int(segment.is_kind(Kind.BECOME_LEADER).sum()))
        if not answers or _is_compacted(segment):
            return report
        tp = tp_name(topic, partition)
        files = {node: _files(segment, node) for node in {answer.node for answer in answers}}
        for answer in answers:
            report.findings += _judge(tp, answer, files[answer.node], segment)
        return report

    def finish(self, summaries: list[tuple[Key, Report]]) -> Results:
        return conclude(
            TIMES_ANSWERED,
            checked=sum(report.checked for _, report in summaries),
            findings=[item for _, report in summaries for item in report.findings],
        )


def _answers(operations: Segment) -> list[Answer]:
    asked: dict[tuple[str, int | None], tuple[int, Event]] = {}
    answers: list[Answer] = []
    by_time = operations.where(operations.is_word("f", {_BY_TIME}))
    for row, event in by_time.events("node", "f", "op", "wall_ms", "offset"):
        if event.kind == Kind.INVOKE:
            asked[event.process, event.op] = (row, event)
        elif (question := asked.pop((event.process, event.op), None)) is not None:
            asked_row, invoked = question
            wanted = invoked.wall_ms or 0
            offset = -1 if event.offset is None else event.offset
            node = -1 if event.node is None else event.node
            answers.append(Answer(node, invoked.time, event.time, wanted, offset, asked_row, row))
    return answers


def _is_compacted(segment: Segment) -> bool:
    logs = segment.only({Kind.STORED_LOG})
    return bool(
        segment.is_kind(Kind.LOG_CLEANED).any() or (logs.numbers("cleaner_offset") > 0).any()
    )


def _files(segment: Segment, node: int) -> Files:
    """Return the batches of a broker behind every start that its log has had."""
    stored = segment.only({Kind.STORED_BATCH})
    stored = stored.where(stored.numbers("node") == node)
    starts = segment.only(_STARTS | {Kind.STORED_LOG})
    starts = starts.where(starts.numbers("node") == node)
    start = starts.numbers("log_start_offset").max(initial=0)
    stored = stored.where(stored.numbers("offset") >= start) if len(stored) else stored
    appended = segment.only({Kind.APPEND})
    appended = appended.where(appended.numbers("node") == node) if len(appended) else appended
    return Files(
        stored.numbers("offset"),
        stored.numbers("last_offset"),
        stored.numbers("max_timestamp"),
        _since(stored, appended),
        stored.rows,
    )


def _since(stored: Segment, appended: Segment) -> Numbers:
    names = ("offset", "leader_epoch", "crc")
    times = appended.numbers("time").tolist()
    batches = zip(*(appended.numbers(name).tolist() for name in names), strict=True)
    last = dict(zip(batches, times, strict=True))  # a replica that came back appended it again
    never = np.iinfo(np.int64).max
    return np.array(
        [
            last.get(batch, never)
            for batch in zip(*(stored.numbers(n).tolist() for n in names), strict=True)
        ],
        dtype=np.int64,
    )


def _judge(tp: str, answer: Answer, files: Files, segment: Segment) -> Iterator[Finding]:
    is_known = files.since < answer.answered_at
    holder = np.flatnonzero(
        is_known & (files.base <= answer.offset) & (answer.offset <= files.last)
    )
    if len(holder) and files.time_ms[holder[0]] < answer.wanted_ms:
        yield _finding(tp, answer, files, int(holder[0]))
        return
    end = answer.offset if answer.offset >= 0 else _high_watermark(segment, answer)
    missed = np.flatnonzero(
        (files.last < end) & (files.time_ms >= answer.wanted_ms) & (files.since < answer.asked_at)
    )
    if len(missed):
        yield _finding(tp, answer, files, int(missed[0]))


def _high_watermark(segment: Segment, answer: Answer) -> int:
    """Return the high watermark that the broker had at least when it was asked; 0 if it is not traced.

    A log that was deleted and loaded again has another one than before.
    """
    marks = segment.only(_MARKS)
    own = np.flatnonzero(
        (marks.numbers("node") == answer.node) & (marks.numbers("time") < answer.asked_at)
    )
    return int(marks.numbers("high_watermark")[own[-1]]) if len(own) else 0


def _finding(tp: str, answer: Answer, files: Files, index: int) -> Finding:
    said = f"offset {answer.offset}" if answer.offset >= 0 else "no record"
    sentence = (
        f"Broker {answer.node} answered {said} when it was asked for the first record of {tp} from time "
        f"{answer.wanted_ms} on, but the batch from {files.base[index]} to {files.last[index]} has time "
        f"{files.time_ms[index]}."
    )
    return finding(
        TIMES_ANSWERED.name, tp, sentence, answer.asked_row, answer.row, int(files.row[index])
    )


TIMES_ANSWERED: Final = Property(
    name="times-answered",
    promise="ListOffsets answers the first record that is not older than the requested time.",
    unit="terms of leaders and answers",
    unknown="No broker traced that it became leader, and no client asked for an offset by time.",
    source="KIP-33, KIP-79; UnifiedLog.fetchOffsetByTimestamp.",
    check=TimesAnswered,
    decided_from=frozenset({EventSource.CLIENTS, EventSource.STORED_LOGS, EventSource.TRACES}),
    recorded_since=7,
    reason=explain.times_answered,
    breaks=breaks.TIMES_ANSWERED,
)
