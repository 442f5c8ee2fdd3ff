"""Joining what row groups say of a partition, in their order: the state before each, and where the order breaks.

A row group whose survey is clean and begins where the ones before it ended is in order. The others are ``suspects``,
each with the state before it; ``walked`` then tells what is wrong there, by the same walk that judges small partitions.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from nemesis.checkers.framework.model import Finding
from nemesis.checkers.framework.segment import PROOF_ROW, Mask, Segment
from nemesis.checkers.log import polls, send_anomalies
from nemesis.checkers.log.gaps import Gaps
from nemesis.checkers.log.high_watermarks import STATED, Mark, rising
from nemesis.checkers.log.partition_operations import Send, Start, gather
from nemesis.checkers.log.partition_rows import Rows, Source
from nemesis.checkers.log.survey import Begun, Survey


@dataclass(frozen=True, slots=True)
class State:
    """What is known of a partition before a row group."""

    opened: list[Send] = field(default_factory=list)
    reached: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Of each consumer, where its last poll ended and its row."""
    highest: dict[str, Send] = field(default_factory=dict)
    """Of each producer, its acknowledged send at the highest offset."""
    mark: Mark | None = None

    def rows(self) -> set[int]:
        """The rows of the sends, which say their times."""
        return {send.row for send in (*self.opened, *self.highest.values())}

    def timed(self, times: Mapping[int, int]) -> State:
        """The same with the times of the sends, by row."""

        def timed_send(send: Send) -> Send:
            return replace(send, time=times[send.row], invoke_time=times[send.row])

        highest = {process: timed_send(send) for process, send in self.highest.items()}
        return replace(self, opened=[*map(timed_send, self.opened)], highest=highest)


@dataclass(slots=True)
class Chain:
    irregular: str | None = None
    suspects: dict[int, State] = field(default_factory=dict)
    """By the number of the row group."""


@dataclass(frozen=True, slots=True)
class Ordered:
    """What is wrong with the order in one row group."""

    polls: list[Finding]
    above: list[Finding]
    above_all: list[Finding]
    sends: list[tuple[int, Finding]]
    """Each with the row of its invocation."""


def chain(surveys: Sequence[Survey], gaps: Gaps, *, marks_known: bool) -> Chain:
    """Join the surveys; ``gaps`` are explained, ``marks_known``: whether every leader has traced its high watermark."""
    chained = Chain()
    opened: dict[str, tuple[Begun, Send | None]] = {}
    reached: dict[str, tuple[int, int]] = {}
    highest: dict[str, Send] = {}
    mark: Mark | None = None
    for number, survey in enumerate(surveys):
        falls = any(
            process in highest and producer.first_offset <= highest[process].offset
            for process, producer in survey.producers.items()
        )
        jumps = any(
            process in reached
            and consumer.first_position != reached[process][0]
            and not gaps.explains(reached[process][0], consumer.first_position)
            for process, consumer in survey.consumers.items()
        )
        skips = not gaps.explain(*survey.gaps.T).all()
        is_above = marks_known and survey.unproved >= (0 if mark is None else max(mark.value, 0))
        if falls or jumps or skips or is_above or not survey.is_clean:
            sends = sorted(
                (send for _, send in opened.values() if send is not None), key=lambda send: send.row
            )
            chained.suspects[number] = State(sends, dict(reached), dict(highest), mark)
        chained.irregular = survey.irregular or _match(survey, opened)
        if chained.irregular is not None:
            return chained
        reached |= {
            name: (consumer.end, consumer.last_row) for name, consumer in survey.consumers.items()
        }
        for name, producer in survey.producers.items():
            if name not in highest or producer.highest.offset > highest[name].offset:
                highest[name] = producer.highest
        if survey.highest is not None and (mark is None or survey.highest.value > mark.value):
            mark = survey.highest
    return chained


def _match(survey: Survey, opened: dict[str, tuple[Begun, Send | None]]) -> str | None:
    """Take out what completes and put in what is invoked; the reason if they do not fit."""
    for process in sorted(survey.busy):
        invoked, _ = opened.pop(process, (None, None))
        closed = survey.closed.get(process)
        if invoked != closed and (invoked is not None or (closed and closed.f == "send")):
            return f"{process} completes another operation than it invoked"
    opened |= survey.opened
    return None


def holding(rows: Collection[int], sources: Sequence[Source]) -> list[Source]:
    """The row groups that hold these rows."""
    return [
        source
        for source in sources
        if any(0 <= row - source.group.first_row < source.group.rows for row in rows)
    ]


def _times(rows: Collection[int], sources: Sequence[Source]) -> dict[int, int]:
    time_of: dict[int, int] = {}
    for source in sources:
        times, first = Segment.of(source.group).numbers("time"), source.group.first_row
        time_of |= {row: int(times[row - first]) for row in rows if 0 <= row - first < len(times)}
    return time_of


def walked(
    tp: str,
    source: Source,
    after: Source | None,
    before: State,
    earlier: Sequence[Source],
    starts: list[Start],
    gaps: Gaps,
    *,
    marks_known: bool,
    is_traced: bool,
) -> Ordered:
    """Walk a partition's rows in one row group, given the state before them; of sends those of producers whose offsets
    do not grow.

    Of the row group ``after`` it, high watermarks of the same nanosecond count: they go last. ``earlier`` ones hold the
    rows of the state. ``starts`` are what readers were told, anywhere; ``gaps`` are explained.
    """
    before = before.timed(_times(before.rows(), earlier))
    rows = source.read()
    segment = rows.segment
    concerned = segment.where(~rows.are_sends | _falling(rows, before.highest))
    operations = gather(tp, concerned, opened=before.opened)
    operations.starts, operations.gaps = starts, gaps
    stated = segment.where(segment.is_kind(*STATED))
    if after is not None and len(segment):
        later = after.read().segment
        is_now = later.numbers("time") == segment.numbers("time")[-1]
        stated = Segment.joined([stated, later.where(is_now & later.is_kind(*STATED))])
    operations.high_watermarks = rising(stated, before.mark) if marks_known else None
    operations.is_traced = is_traced
    falls = send_anomalies.nonmonotonic_sends(operations, before.highest)
    invoked = {send.row: send.invoke_row for send in operations.sends}
    return Ordered(
        list(polls.order_of_polls(operations, before.reached)),
        list(polls.reads_above_hw(operations)),
        list(polls.reads_above_all_hws(operations)),
        [(invoked[fall.events[-1][PROOF_ROW]], fall) for fall in falls],
    )


def _falling(rows: Rows, highest: Mapping[str, Send]) -> Mask:
    """The sends of producers that were not always acknowledged at a higher offset than ever before."""
    codes, words = rows.segment.columns.words("process")
    done = np.flatnonzero(rows.are_acknowledged)
    producers, offsets = codes[done], rows.segment.numbers("offset")[done]
    falls = np.zeros(len(words), dtype=np.bool_)
    for code in np.unique(producers).tolist():
        own_offsets = offsets[producers == code]
        before = highest[words[code]].offset if words[code] in highest else -1
        reached = np.maximum.accumulate(np.concatenate(([before], own_offsets)))
        falls[code] = (own_offsets <= reached[:-1]).any()
    falling: Mask = rows.are_sends & falls[codes]
    return falling
