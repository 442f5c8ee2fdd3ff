"""What one row group says of a partition: is all in order there, and how does it join what comes before and after?
 The idea: that clients see records in order is a property of neighbours. Inside a row group it is seen at once, in
columns: each poll begins where the last one of its consumer ended and has all offsets from there; offsets of each
producer's acknowledged sends grow; nobody reads above a high watermark. ``Survey.is_clean`` says whether that is so,
except for ``gaps``, which ``chain`` compares with the markers of all row groups. At
its edges the survey tells where its consumers began and ended and what its producers reached, so that ``chain`` can
join row groups in their order. Wherever something is out of order, the walk of ``partition_operations`` and ``polls``
is asked what it is.

For the rest of the certificate an operation must say the same when it is invoked and when it completes; a survey
compares them. What it does not know how to judge is ``irregular``: that partition is walked as a whole.

Limits: a process does one thing at a time, and operations have numbers.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from nemesis.checkers.framework.segment import Mask, Numbers, Segment
from nemesis.checkers.log import kernels
from nemesis.checkers.log.gaps import gaps_in, markers_of
from nemesis.checkers.log.high_watermarks import STATED, Mark
from nemesis.checkers.log.number_range import Span, span_of, wider
from nemesis.checkers.log.offset_cells import cells_of
from nemesis.checkers.log.partition_operations import Send
from nemesis.checkers.log.partition_rows import UNSET, Lists, Role, Rows, Source, by_process
from nemesis.checkers.log.records import Records
from nemesis.checkers.log.topic_incarnations import OPERATIONS
from nemesis.checkers.log.trimmed import Trimmed, trimmed
from nemesis.history.events import Kind

COLUMNS = ("process", "op", "value", "acks", "offset", "offsets", "values", "high_watermark")
"""What is read of every row."""
UNKNOWN_TIME = -1
"""Of the sends that surveys tell of: few are asked for it, and their rows say it."""


class Begun(NamedTuple):
    """An operation that begins before these rows or ends after them, and what it says."""

    f: str
    op: int
    said: int
    """A send's value, a poll's position."""
    acks: int = 0


class Consumed(NamedTuple):
    """A consumer's polls in one row group."""

    first_position: int
    end: int
    last_row: int


class Produced(NamedTuple):
    """A producer's acknowledged sends in one row group."""

    first_offset: int
    highest: Send


@dataclass(slots=True)
class Survey:
    irregular: str | None = None
    """Why the certificate does not speak of this partition."""
    is_clean: bool = True
    opened: dict[str, tuple[Begun, Send | None]] = field(default_factory=dict)
    """By process, what is invoked here and does not complete."""
    closed: dict[str, Begun] = field(default_factory=dict)
    """By process, what completes here and was invoked before."""
    busy: set[str] = field(default_factory=set)
    """The processes that do anything here."""
    consumers: dict[str, Consumed] = field(default_factory=dict)
    producers: dict[str, Produced] = field(default_factory=dict)
    highest: Mark | None = None
    """The highest high watermark."""
    unproved: int = -1
    """The largest offset read that no high watermark from here covers."""
    stated_by: set[int] = field(default_factory=set)
    """Nodes that state a high watermark."""
    cells: dict[int, Span] = field(default_factory=dict)
    """The cells in which offsets were acknowledged or read: the smallest and the largest of each."""
    values: Span | None = None
    """The smallest and the largest value that was sent or read."""
    plain: bool | None = None
    """Set if all rows of the row group are the partition's, and those that have an offset and a value are the
    acknowledged sends: whether its polls are the final ones.
    """
    runs_on: bool = True
    """Whether each poll returned all offsets from its position to its end."""
    gaps: Numbers = field(default_factory=lambda: np.zeros((0, 2), dtype=np.int64))
    """The offsets that consumers were not given: a row (start, end) for each gap."""
    markers: Numbers = field(default_factory=lambda: np.zeros((0, 4), dtype=np.int64))
    """As ``markers_of`` returns them."""
    read: Span | None = None
    """The smallest position of a poll and the largest end."""
    final_position: int | None = None
    """The smallest position of a final poll."""
    failed: Numbers = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    """The values whose sends certainly failed."""
    acknowledged: int = 0
    polls: int = 0
    topic_ids: set[str] = field(default_factory=set)
    """Those that operations name."""
    rare_rows: Trimmed | None = None
    """Rows of other kinds, and, without their records, the final polls that answered last or returned nothing."""


class Irregular(Exception):
    """The certificate does not speak of such rows. Nothing is wrong with them; raised and caught in this module."""


def survey(source: Source, columns: tuple[str, ...]) -> tuple[Survey, Records | None]:
    """Look at a partition's rows in one row group; ``columns`` are those that rare rows are kept with. Returns their
    records, too, unless they are irregular.
    """
    result = Survey()
    rows = source.read(*COLUMNS)
    try:
        records = _look(rows, result, columns)
    except Irregular as reason:
        result.irregular = str(reason)
        return result, None
    return result, records


def _look(rows: Rows, result: Survey, columns: tuple[str, ...]) -> Records:
    segment = rows.segment
    result.topic_ids = _topic_ids(segment)
    if segment.columns.uniform("key") is None:
        _without_keys(rows)
    followed = _follow(rows, result)
    values = Lists.of(segment, "values")
    offsets = None if rows.runs_on else Lists.of(segment, "offsets")
    _look_at_records(segment, followed.answered, offsets, values)
    final = rows.are_final
    answered = _Polls.of(segment, followed.answered, values.lengths, final)
    _order_of_polls(rows, answered, offsets, result)
    if Role.SEND_FAIL in rows.possible:
        result.failed = segment.numbers("value", UNSET)[rows.are(Role.SEND_FAIL)]
    if followed.is_plain and rows.are_all:
        result.plain = _plain(answered.final)
    (sent, _), (value, _) = (segment.columns.stored(name) for name in ("offset", "value"))
    sends = followed.done, sent, value
    read_offsets = None if offsets is None or result.runs_on else offsets.flat
    records = Records.of(sends, values.lengths, final, values.flat, read_offsets)
    if (read := span_of(records.read)) is not None:
        result.values = wider(result.values, read)
    result.cells = cells_of(records, followed.acknowledged)
    kept = _last_answers(rows, answered.indices[answered.final])
    kept[answered.indices[answered.final & (answered.lengths == 0)]] = True
    if Role.OTHER in rows.possible:
        kept |= rows.are(Role.OTHER)
    if Role.MARKER in rows.possible:
        result.markers = markers_of(segment.where(rows.are(Role.MARKER)))
    if kept.any():
        result.rare_rows = trimmed(
            segment, kept, columns, np.zeros(0, dtype=np.int64), runs_on=rows.runs_on
        )
    return records


def _without_keys(rows: Rows) -> None:
    if (rows.segment.numbers("key")[rows.are(Role.SEND)] >= 0).any():
        raise Irregular("records have keys")


def _plain(are_final: Mask) -> bool | None:
    return True if are_final.all() else None if are_final.any() else False


def _topic_ids(segment: Segment) -> set[str]:
    uniform = segment.columns.uniform("topic_id")
    if uniform is not None:
        return {uniform.value} - {None, ""}
    codes, words = segment.codes("topic_id")
    operations = segment.is_kind(*OPERATIONS)
    said = np.bincount(codes[operations] + 1, minlength=len(words) + 1)[1:]
    return {word for word, times in zip(words, said.tolist(), strict=True) if times and word}


_WHY = {
    kernels.UNTOLD: "operations without a number, a value or a position",
    kernels.OVERLAPS: "a process that does not wait for its operation to complete",
    kernels.DIFFERS: "an operation completes as another one than was invoked",
}


class _Operations(NamedTuple):
    """What processes did."""

    done: Mask
    """Which rows acknowledge a send."""
    answered: Numbers
    """The rows that answer a poll."""
    is_plain: bool
    """Whether the rows that acknowledge are those that have an offset and a value."""
    acknowledged: Span | None
    """The offsets."""


def _follow(rows: Rows, result: Survey) -> _Operations:
    """Look at what each process does, one operation after the other, and at the offsets of its sends."""
    codes, words = rows.segment.columns.words("process")
    columns = {
        name: rows.segment.columns.stored(name) for name in ("op", "value", "acks", "offset")
    }
    acks, has_acks = columns["acks"]
    if (acks[has_acks] >= 0).any():
        raise Irregular("sends ask for less than acks=all")
    per_process = [np.full(len(words), -1) for _ in range(4)]
    done, answered = np.empty(len(codes), dtype=np.bool_), np.empty(len(codes), dtype=np.int64)
    said = [array for column in columns.values() for array in column]
    arrays: list[kernels.Array] = [rows.roles, codes, *said, done, answered, *per_process]
    kernel_result = kernels.follow(*arrays)
    if kernel_result.code != kernels.FINE:
        raise Irregular(_WHY[kernel_result.code])
    result.acknowledged = kernel_result.acknowledged
    result.is_clean &= not kernel_result.falls
    result.values = (
        (kernel_result.least, kernel_result.most)
        if kernel_result.least <= kernel_result.most
        else None
    )
    row_values = _RowValues(rows, columns)
    for word, *state in zip(words, *(column.tolist() for column in per_process), strict=True):
        opened, closed, first, highest = state
        if closed != -1:
            result.busy.add(word)
        if closed >= 0:
            result.closed[word] = row_values.begun(closed)
        if opened >= 0:
            is_send = rows.roles[opened] == Role.SEND
            result.opened[word] = (
                row_values.begun(opened),
                row_values.send(word, opened) if is_send else None,
            )
        if first >= 0:
            send = row_values.send(word, highest)
            send.complete("ok", send.row, UNKNOWN_TIME, row_values.number("offset", highest))
            result.producers[word] = Produced(row_values.number("offset", first), send)
    offsets = (
        (kernel_result.first, kernel_result.last)
        if kernel_result.first <= kernel_result.last
        else None
    )
    return _Operations(done, answered[: kernel_result.answers], kernel_result.is_plain, offsets)


@dataclass(frozen=True, slots=True)
class _RowValues:
    """Values of single rows."""

    rows: Rows
    columns: dict[str, tuple[Numbers, Mask]]

    def number(self, name: str, index: int) -> int:
        values, are_set = self.columns[name]
        return int(values[index]) if are_set[index] else int(UNSET)

    def begun(self, index: int) -> Begun:
        op = self.number("op", index)
        if self.rows.roles[index] < Role.POLL:
            return Begun("send", op, self.number("value", index), self.number("acks", index))
        return Begun("poll", op, self.number("offset", index))

    def send(self, process: str, index: int) -> Send:
        row, (op, value, acks) = int(self.rows.segment.rows[index]), self._of_send(index)
        return Send(process, value, acks, row, UNKNOWN_TIME, op=op, row=row)

    def _of_send(self, index: int) -> tuple[int, int, int]:
        return self.number("op", index), self.number("value", index), self.number("acks", index)


def _runs(processes: Numbers) -> list[tuple[int, int]]:
    """Where each process's rows begin and end; those of each stand together."""
    cuts = (np.flatnonzero(processes[1:] != processes[:-1]) + 1).tolist()
    return list(zip([0, *cuts], [*cuts, len(processes)], strict=True)) if len(processes) else []


@dataclass(frozen=True, slots=True)
class _Polls:
    """Polls that were answered."""

    indices: Numbers
    """Their positions in the row group."""
    positions: Numbers
    lengths: Numbers
    final: Mask

    @classmethod
    def of(cls, segment: Segment, indices: Numbers, lengths: Numbers, final: Mask) -> _Polls:
        """``lengths`` and ``final`` are of all rows."""
        positions = segment.columns.stored("offset")[0][indices]
        return cls(indices, positions, lengths[indices].astype(np.int64), final[indices])


def _look_at_records(
    segment: Segment, answered: Numbers, offsets: Lists | None, values: Lists
) -> None:
    if not values.is_whole or len(values.flat) != int(values.lengths[answered].sum()):
        raise Irregular("records that were not polled")
    positions, are_set = segment.columns.stored("offset")
    if (positions[answered] < 0).any() or not are_set[answered].all():
        raise Irregular("a position below 0")
    if offsets is not None:
        if not offsets.is_whole or (offsets.flat < 0).any():
            raise Irregular("an offset below 0")
        if not np.array_equal(offsets.lengths, values.lengths):
            raise Irregular("a poll that has not as many values as offsets")


def _order_of_polls(rows: Rows, polls: _Polls, offsets: Lists | None, result: Survey) -> None:
    segment, indices, positions, lengths = (
        rows.segment,
        polls.indices,
        polls.positions,
        polls.lengths,
    )
    result.polls = len(indices)
    ends = positions + lengths
    full = lengths > 0
    within = between = result.gaps
    if offsets is not None and not kernels.runs_on(offsets.flat, lengths, positions):
        result.runs_on = False
        within, ascends = gaps_in(positions, lengths, offsets.flat)
        result.is_clean &= ascends
        starts = np.cumsum(lengths) - lengths
        highest = np.maximum.reduceat(offsets.flat, starts[full])
        ends[full] = np.maximum(positions[full], highest + 1)
    _under_high_watermarks(segment, indices[full], ends[full], result)
    if not len(indices):
        return
    codes, words = segment.columns.words("process")
    permutation = by_process(codes[indices])
    processes, positions, ends = (
        codes[indices][permutation],
        positions[permutation],
        ends[permutation],
    )
    breaks = (positions[1:] != ends[:-1]) & (processes[1:] == processes[:-1])
    if breaks.any():
        between = np.column_stack((ends[:-1][breaks], positions[1:][breaks]))
        result.is_clean &= bool((between[:, 0] < between[:, 1]).all())
    result.gaps = np.unique(np.concatenate((within, between)), axis=0)
    for start, end in _runs(processes):
        row = int(segment.rows[indices[permutation[end - 1]]])
        consumed = Consumed(int(positions[start]), int(ends[end - 1]), row)
        result.consumers[words[processes[start]]] = consumed
    is_final = polls.final[permutation]
    if is_final.any():
        result.final_position = int(positions[is_final].min())
    result.read = int(positions.min()), int(ends.max())


def _under_high_watermarks(
    segment: Segment, indices: Numbers, ends: Numbers, result: Survey
) -> None:
    """Compare where polls that returned records ended with what their answers say, and with what leaders had traced."""
    marks = segment.numbers("high_watermark", UNSET)[indices]
    result.is_clean &= not ((marks != UNSET) & (ends > marks)).any()
    stated = np.flatnonzero(segment.is_kind(*STATED))
    if len(stated):
        result.stated_by = set(np.unique(segment.numbers("node")[stated]).tolist())
        highest = np.maximum.accumulate(segment.numbers("high_watermark")[stated])
        first = int(np.argmax(highest))
        result.highest = Mark(int(highest[-1]), int(segment.rows[stated[first]]))
        times = segment.numbers("time", UNSET)
        before = np.searchsorted(times[stated], times[indices], side="right") - 1
        ends = ends[(before < 0) | (ends > highest[before])]
    if len(ends):
        result.unproved = int(ends.max()) - 1


def _last_answers(rows: Rows, indices: Numbers) -> Mask:
    """Of final polls, those that were answered last: in these rows, and before each final read had ended."""
    kept = np.zeros(len(rows.segment), dtype=np.bool_)
    if len(indices):
        times = rows.segment.numbers("time", UNSET)
        until = times[rows.segment.is_kind(Kind.FINAL_READ)]
        last = np.searchsorted(times[indices], until, side="right") - 1
        kept[indices[last[last >= 0]]] = kept[indices[-1]] = True
    return kept
