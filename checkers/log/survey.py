"""What one row group says of a partition: is all in order there, and how does it join what comes before and after?

The idea: that clients see records in order is a property of neighbours. Inside a row group it is seen at once, in
columns: each poll begins where the last one of its consumer ended and has all offsets from there; offsets of each
producer's acknowledged sends grow; nobody reads above a high watermark. ``Survey.is_clean`` says whether that is so. At
its edges the survey tells where its consumers began and ended and what its producers reached, so that ``chain`` can
join row groups in their order. Wherever something is out of order, the walk of ``operations`` and ``polls`` is asked
what it is.

For the rest of the certificate an operation must say the same when it is invoked and when it completes; a survey
compares them. What it does not know how to judge is ``irregular``: that partition is walked as a whole.

Limits: operations have numbers; each is invoked once.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from checkers.log.high_watermarks import STATED, Mark
from checkers.log.lives import OPERATIONS
from checkers.log.operations import FINAL_READER, Send
from checkers.log.rows import UNSET, Lists, Source, acknowledged, is_operation
from checkers.log.trimmed import Trimmed, trimmed
from checkers.segment import Mask, Numbers, Segment
from history.events import Kind

CELL_BITS = 22
"""Offsets are looked at in cells of four million (``cells``)."""

Operation = tuple[str, str, int]
"""f, process, op."""


class Closed(NamedTuple):
    """A completion whose invocation is in an earlier row group, and what it repeats of that."""

    operation: Operation
    says: tuple[int, int]


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
    sends_fall: bool = False
    """Whether some producer's offsets do not grow."""
    overlapping: bool = False
    """Whether some producer sends before it has its last answer."""
    opened: dict[Operation, tuple[tuple[int, int], Send | None]] = field(default_factory=dict)
    """Invocations that do not complete here: what they say, and the send."""
    closed: list[Closed] = field(default_factory=list)
    senders: set[str] = field(default_factory=set)
    consumers: dict[str, Consumed] = field(default_factory=dict)
    producers: dict[str, Produced] = field(default_factory=dict)
    highest: Mark | None = None
    """The highest high watermark."""
    unproved: int = -1
    """The largest offset read that no high watermark from here covers."""
    stated_by: set[int] = field(default_factory=set)
    """Nodes that state a high watermark."""
    cells: dict[int, tuple[int, int]] = field(default_factory=dict)
    """The cells in which offsets were acknowledged or read: the smallest and the largest of each."""
    values: tuple[int, int] | None = None
    """The smallest and the largest value that was sent."""
    runs_on: bool = True
    """Whether each poll returned all offsets from its position to its end."""
    lengths: bytes = b""
    """The fingerprint of the polls' lengths."""
    read: tuple[int, int] | None = None
    """The smallest position of a poll and the largest end."""
    final_position: int | None = None
    """The smallest position of a final poll."""
    failed: Numbers = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    """The values whose sends certainly failed."""
    acknowledged: int = 0
    polls: int = 0
    topic_ids: set[str] = field(default_factory=set)
    """Those that operations name."""
    rare: Trimmed | None = None
    """Rows of other kinds, and the final polls that answered last, without their records."""

    @property
    def closed_operations(self) -> set[Operation]:
        return {closed.operation for closed in self.closed}


class Irregular(Exception):
    """The certificate does not speak of such rows. Nothing is wrong with them; raised and caught in this module."""


def survey(source: Source, columns: tuple[str, ...]) -> Survey:
    """Look at a partition's rows in one row group; ``columns`` are those that rare rows are kept with."""
    found = Survey()
    segment = source.read()
    try:
        _look(segment, found)
    except Irregular as reason:
        found.irregular = str(reason)
        return found
    sends, polls = is_operation(segment, "send"), is_operation(segment, "poll")
    others = ~(sends | polls | segment.is_kind(Kind.HIGH_WATERMARK))
    kept = others | _last_answers(segment)
    if kept.any():
        found.rare = trimmed(segment, kept, columns, np.zeros(0, dtype=np.int64))
    return found


def _look(segment: Segment, found: Survey) -> None:
    operations = segment.is_kind(*OPERATIONS)
    codes, words = segment.codes("topic_id")
    said = np.bincount(codes[operations] + 1, minlength=len(words) + 1)[1:]
    found.topic_ids = {word for word, times in zip(words, said.tolist(), strict=True) if times}
    sends, polls = is_operation(segment, "send"), is_operation(segment, "poll")
    if (segment.numbers("key")[sends] >= 0).any():
        raise Irregular("records have keys")
    _pair(segment, sends, polls, found)
    done = acknowledged(segment)
    found.acknowledged = int(done.sum())
    _order_of_sends(segment, np.flatnonzero(done), found)
    answered = polls & segment.is_kind(Kind.OK)
    offsets = Lists.of(segment, "offsets")
    found.lengths = offsets.fingerprint
    _look_at_records(segment, answered, offsets)
    _order_of_polls(segment, np.flatnonzero(answered), offsets, found)
    sent = segment.numbers("value")[sends]
    found.values = (int(sent.min()), int(sent.max())) if len(sent) else None
    found.failed = segment.numbers("value")[sends & segment.is_kind(Kind.FAIL)]
    found.cells = _cells(np.concatenate((segment.numbers("offset")[done], offsets.flat)))


# -- invocations and completions ------------------------------------------------------------------


def _pair(segment: Segment, sends: Mask, polls: Mask, found: Survey) -> None:
    """Compare what invocations and completions say; those that have no partner here go to the edges."""
    at = np.flatnonzero(sends | polls)
    processes, ops = segment.codes("process")[0][at], segment.numbers("op", UNSET)[at]
    invokes, is_send = segment.is_kind(Kind.INVOKE)[at], sends[at]
    value, acks, offset = (segment.numbers(name, UNSET)[at] for name in ("value", "acks", "offset"))
    says = np.where(is_send, value, offset), np.where(is_send, acks, 0)
    must_say = invokes | is_send | segment.is_kind(Kind.OK)[at]
    if (ops == UNSET).any() or (says[0][must_say] == UNSET).any():
        raise Irregular("operations without a number, a value or a position")
    order = _by_operation(processes, ops)
    same = (processes[order[1:]] == processes[order[:-1]]) & (ops[order[1:]] == ops[order[:-1]])
    first, second = order[:-1][same], order[1:][same]
    if (same[1:] & same[:-1]).any() or not invokes[first].all() or invokes[second].any():
        raise Irregular("an operation is invoked or completed more than once")
    compared = is_send[second] | must_say[second]
    differ = (is_send[first] != is_send[second]) | (says[1][first] != says[1][second])
    differ |= compared & (says[0][first] != says[0][second])
    if differ.any():
        raise Irregular("an operation completes as another one than was invoked")
    alone = np.ones(len(at), dtype=np.bool_)
    alone[first] = alone[second] = False
    words = segment.codes("process")[1]
    senders = np.flatnonzero(np.bincount(processes[is_send], minlength=1))
    found.senders = {words[code] for code in senders.tolist()}
    found.overlapping = _overlap(processes, is_send, first, second, alone, invokes)
    times = segment.numbers("time")
    for i in np.flatnonzero(alone & must_say).tolist():
        process, op, row = words[processes[i]], int(ops[i]), int(segment.rows[at[i]])
        operation = "send" if is_send[i] else "poll", process, op
        said = int(says[0][i]), int(says[1][i])
        if not invokes[i]:
            found.closed.append(Closed(operation, said))
            continue
        time, promised = int(times[at[i]]), None if acks[i] == UNSET else int(acks[i])
        send = Send(process, said[0], promised, row, time, op=op, row=row) if is_send[i] else None
        found.opened[operation] = said, send


def _by_operation(processes: Numbers, ops: Numbers) -> Numbers:
    """Positions by process, then by operation, then as they stand.

    Where it fits, position and key are packed into one number and sorted: three times faster than sorting positions.
    """
    count = len(ops)
    if not count:
        return np.zeros(0, dtype=np.int64)
    bits = count.bit_length()
    least, span = int(ops.min()), int(ops.max()) - int(ops.min()) + 1
    if (int(processes.max()) + 1) * span >= 1 << (62 - bits):
        return np.lexsort((ops, processes))
    packed = ((processes * span + (ops - least)) << bits) | np.arange(count)
    packed.sort()
    return packed & ((1 << bits) - 1)


def _overlap(
    processes: Numbers, is_send: Mask, first: Numbers, second: Numbers, alone: Mask, invokes: Mask
) -> bool:
    """Whether some producer did something else between a send's invocation and its completion, as far as is seen here:
    what is invoked here only must be its last row, what completes here only its first.
    """
    places = np.flatnonzero(is_send)
    order = places[np.argsort(processes[places].astype(np.int16), kind="stable")]
    rank = np.empty(len(processes), dtype=np.int64)
    rank[order] = np.arange(len(order))
    sent = is_send[second]
    cuts = np.diff(processes[order]) != 0
    is_first, is_last = np.append(True, cuts), np.append(cuts, True)
    torn = (rank[second[sent]] != rank[first[sent]] + 1).any()
    torn |= not is_last[rank[alone & is_send & invokes]].all()
    return bool(torn or not is_first[rank[alone & is_send & ~invokes]].all())


# -- order ----------------------------------------------------------------------------------------


def _runs(processes: Numbers) -> tuple[Numbers, Numbers, Numbers]:
    """Positions by process and then as they stand, and where each process's begin and end."""
    order = np.argsort(processes.astype(np.int16), kind="stable")
    cuts = np.flatnonzero(np.diff(processes[order])) + 1
    return order, np.concatenate(([0], cuts)), np.concatenate((cuts, [len(order)]))


def _order_of_sends(segment: Segment, at: Numbers, found: Survey) -> None:
    if not len(at):
        return
    codes, words = segment.codes("process")
    order, starts, ends = _runs(codes[at])
    at = at[order]
    offsets = segment.numbers("offset")[at]
    falls = np.diff(offsets) <= 0
    falls[starts[1:] - 1] = False
    found.sends_fall = bool(falls.any())
    found.is_clean &= not found.sends_fall
    values, times = segment.numbers("value"), segment.numbers("time")
    for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
        place = int(at[start + int(np.argmax(offsets[start:end]))])
        row, time, offset = (
            int(segment.rows[place]),
            int(times[place]),
            int(segment.numbers("offset")[place]),
        )
        process = words[codes[place]]
        highest = Send(
            process,
            int(values[place]),
            -1,
            row,
            time,
            outcome="ok",
            row=row,
            time=time,
            offset=offset,
        )
        found.producers[process] = Produced(int(offsets[start]), highest)


def _look_at_records(segment: Segment, answered: Mask, offsets: Lists) -> None:
    if not offsets.is_whole or int(offsets.lengths.sum()) != int(offsets.lengths[answered].sum()):
        raise Irregular("records that were not polled")
    positions = segment.numbers("offset", UNSET)[answered]
    if (positions < 0).any() or (offsets.flat < 0).any():
        raise Irregular("a position or an offset below 0")


def _order_of_polls(segment: Segment, at: Numbers, offsets: Lists, found: Survey) -> None:
    found.polls = len(at)
    if not len(at):
        _under_high_watermarks(segment, at, at, found)
        return
    positions, lengths = segment.numbers("offset")[at], offsets.lengths[at]
    starts = np.cumsum(lengths) - lengths
    expected = np.repeat(positions - starts, lengths) + np.arange(len(offsets.flat))
    ends = positions + lengths
    if not np.array_equal(offsets.flat, expected):
        found.is_clean = found.runs_on = False
        full = lengths > 0
        ends[full] = np.maximum(
            positions[full], np.maximum.reduceat(offsets.flat, starts[full]) + 1
        )
    codes, words = segment.codes("process")
    processes = codes[at]
    order, firsts, lasts = _runs(processes)
    breaks = positions[order[1:]] != ends[order[:-1]]
    breaks[firsts[1:] - 1] = False
    found.is_clean &= not breaks.any()
    for start, end in zip(order[firsts].tolist(), order[lasts - 1].tolist(), strict=True):
        row = int(segment.rows[at[end]])
        consumed = Consumed(int(positions[start]), int(ends[end]), row)
        found.consumers[words[processes[start]]] = consumed
    is_final = _is_final(segment)[at]
    if is_final.any():
        found.final_position = int(positions[is_final].min())
    found.read = int(positions.min()), int(ends.max())
    _under_high_watermarks(segment, at[lengths > 0], ends[lengths > 0], found)


def _under_high_watermarks(segment: Segment, at: Numbers, ends: Numbers, found: Survey) -> None:
    """Compare where polls that returned records ended with what their answers say, and with what leaders had traced."""
    marks = segment.numbers("high_watermark", UNSET)[at]
    found.is_clean &= not ((marks != UNSET) & (ends > marks)).any()
    stated = np.flatnonzero(segment.is_kind(*STATED))
    if len(stated):
        found.stated_by = set(np.unique(segment.numbers("node")[stated]).tolist())
        highest = np.maximum.accumulate(segment.numbers("high_watermark")[stated])
        first = int(np.argmax(highest))
        found.highest = Mark(int(highest[-1]), int(segment.rows[stated[first]]))
        times = segment.numbers("time")
        before = np.searchsorted(times[stated], times[at], side="right") - 1
        ends = ends[(before < 0) | (ends > highest[before])]
    if len(ends):
        found.unproved = int(ends.max()) - 1


def _is_final(segment: Segment) -> Mask:
    codes, words = segment.codes("process")
    final = np.array([word.startswith(FINAL_READER) for word in words] + [False], dtype=np.bool_)
    return final[codes]


def _last_answers(segment: Segment) -> Mask:
    """The final polls that were answered last: here, and before each final read was over."""
    kept = np.zeros(len(segment), dtype=np.bool_)
    polls = is_operation(segment, "poll") & segment.is_kind(Kind.OK) & _is_final(segment)
    places, times = np.flatnonzero(polls), segment.numbers("time")
    if len(places):
        until = times[segment.is_kind(Kind.FINAL_READ)]
        last = np.searchsorted(times[places], until, side="right") - 1
        kept[places[last[last >= 0]]] = kept[places[-1]] = True
    return kept


# -- where offsets and values lie -----------------------------------------------------------------


def _cells(offsets: Numbers) -> dict[int, tuple[int, int]]:
    if not len(offsets):
        return {}
    cells = offsets >> CELL_BITS
    starts = np.concatenate(([0], np.flatnonzero(np.diff(cells)) + 1))
    low, high = np.minimum.reduceat(offsets, starts), np.maximum.reduceat(offsets, starts)
    found: dict[int, tuple[int, int]] = {}
    for cell, least, most in zip(cells[starts].tolist(), low.tolist(), high.tolist(), strict=True):
        before = found.get(cell, (least, most))
        found[cell] = min(before[0], least), max(before[1], most)
    return found
