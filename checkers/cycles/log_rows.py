"""What is kept of the rows of sends and polls, for the transactions that they are parts of.

A send that has no completion is in doubt, as one that ends with ``info`` is.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nemesis.checkers.framework.arrays import Mask, Numbers
from nemesis.checkers.framework.segment import Segment
from nemesis.history.events import Kind

SEND: Final = "send"
POLL: Final = "poll"


@dataclass(frozen=True, slots=True)
class Placed:
    """Records of logs that events report: arrays of equal length. ``part`` is the event, a position of ``LogRows``."""

    part: Numbers
    log: Numbers
    """A position in ``LogRows.logs``."""
    value: Numbers
    offset: Numbers
    """−1 where it is not known."""

    @classmethod
    def joined(cls, placed: list[Placed]) -> Placed:
        return cls(
            np.concatenate([records.part for records in placed]),
            np.concatenate([records.log for records in placed]),
            np.concatenate([records.value for records in placed]),
            np.concatenate([records.offset for records in placed]),
        )


@dataclass(frozen=True, slots=True)
class Unanswered:
    """Sends without a completion among the rows so far: arrays of equal length."""

    op: Numbers
    began: Numbers
    row: Numbers
    process: Numbers
    """A position in ``LogRows.processes``."""
    log: Numbers
    """A position in ``LogRows.logs``."""
    value: Numbers

    def except_for(self, answered: Numbers) -> Unanswered:
        """Return the sends without those of these ops."""
        kept = np.flatnonzero(~np.isin(self.op, answered))
        return Unanswered(*(column[kept] for column in self.columns()))

    @classmethod
    def joined(cls, parts: list[Unanswered]) -> Unanswered:
        arrays = zip(*(part.columns() for part in parts), strict=True)
        return cls(*(np.concatenate(array) for array in arrays))

    def columns(self) -> tuple[Numbers, ...]:
        """Return all arrays, in the order of the fields."""
        return self.op, self.began, self.row, self.process, self.log, self.value


@dataclass(frozen=True, slots=True)
class LogRows:
    """Parts of operations: which were invoked when, and which succeeded or are in doubt."""

    began_op: Numbers
    began_at: Numbers
    op: Numbers
    """Of each part that succeeded or is in doubt. What follows likewise."""
    is_ok: Mask
    """Whether it succeeded."""
    is_ended: Mask
    """Whether it has a completion."""
    ended: Numbers
    """When it ended; without a completion, when it began."""
    row: Numbers
    process: Numbers
    """A position in ``processes``."""
    processes: list[str]
    logs: list[str]
    sent: Placed
    polled: Placed
    failed_op: Numbers
    unanswered: Unanswered
    """Sends whose completion may be in another part; none once all parts are joined."""

    @classmethod
    def of(cls, segment: Segment) -> LogRows:
        segment = segment.where(segment.is_word("f", {SEND, POLL}))
        begun = segment.where(segment.is_kind(Kind.INVOKE))
        done = segment.where(segment.is_kind(Kind.OK, Kind.INFO))
        failed_op = segment.where(segment.is_kind(Kind.FAIL)).numbers("op")
        answered = np.concatenate([done.numbers("op"), failed_op])
        sends = begun.where(begun.is_word("f", {SEND}))
        sends = sends.take(np.flatnonzero(~np.isin(sends.numbers("op"), answered)))
        process, processes = done.codes("process")
        log, logs = done.codes("topic")
        processes, logs = list(processes), list(logs)
        unanswered = Unanswered(
            op=sends.numbers("op"),
            began=sends.numbers("time"),
            row=sends.rows,
            process=_codes(sends, "process", processes),
            log=_codes(sends, "topic", logs),
            value=sends.numbers("value"),
        )
        is_send = done.is_word("f", {SEND})
        return cls(
            began_op=begun.numbers("op"),
            began_at=begun.numbers("time"),
            op=done.numbers("op"),
            is_ok=done.is_kind(Kind.OK),
            is_ended=np.ones(len(done), dtype=np.bool_),
            ended=done.numbers("time"),
            row=done.rows,
            process=process,
            processes=processes,
            logs=logs,
            sent=_sent(done, log, is_send),
            polled=_polled(done, log, ~is_send),
            failed_op=failed_op,
            unanswered=unanswered,
        )

    @classmethod
    def joined(cls, parts: list[LogRows]) -> LogRows:
        """All rows, one part after the other, and behind them the sends that have no completion."""
        processes: dict[str, int] = {}
        logs: dict[str, int] = {}
        process: list[Numbers] = []
        sent: list[Placed] = []
        polled: list[Placed] = []
        unanswered: list[Unanswered] = []
        before = 0
        for part in parts:
            process.append(_renumbered(part.process, part.processes, processes))
            log = _lookup(part.logs, logs)
            sends = part.unanswered
            unanswered.append(
                replace(
                    sends,
                    process=_renumbered(sends.process, part.processes, processes),
                    log=log[sends.log],
                )
            )
            for into, placed in ((sent, part.sent), (polled, part.polled)):
                into.append(
                    Placed(placed.part + before, log[placed.log], placed.value, placed.offset)
                )
            before += len(part.op)
        op = np.concatenate([part.op for part in parts])
        failed_op = np.concatenate([part.failed_op for part in parts])
        open_sends = Unanswered.joined(unanswered).except_for(np.concatenate([op, failed_op]))
        has_log = np.flatnonzero(open_sends.log >= 0)
        nowhere = np.full(len(has_log), -1, dtype=np.int64)
        sent.append(
            Placed(before + has_log, open_sends.log[has_log], open_sends.value[has_log], nowhere)
        )
        is_open = np.zeros(len(open_sends.op), dtype=np.bool_)
        return cls(
            began_op=np.concatenate([part.began_op for part in parts]),
            began_at=np.concatenate([part.began_at for part in parts]),
            op=np.concatenate([op, open_sends.op]),
            is_ok=np.concatenate([*(part.is_ok for part in parts), is_open]),
            is_ended=np.concatenate([*(part.is_ended for part in parts), is_open]),
            ended=np.concatenate([*(part.ended for part in parts), open_sends.began]),
            row=np.concatenate([*(part.row for part in parts), open_sends.row]),
            process=np.concatenate([*process, open_sends.process]),
            processes=list(processes),
            logs=list(logs),
            sent=Placed.joined(sent),
            polled=Placed.joined(polled),
            failed_op=failed_op,
            unanswered=open_sends.except_for(open_sends.op),
        )


def _sent(done: Segment, log: Numbers, is_send: Mask) -> Placed:
    rows = np.flatnonzero(is_send & (log >= 0))
    return Placed(rows, log[rows], done.numbers("value")[rows], done.numbers("offset")[rows])


def _polled(done: Segment, log: Numbers, is_poll: Mask) -> Placed:
    rows = np.flatnonzero(is_poll & (log >= 0))
    polls = done.take(rows)
    offsets, values = polls.columns.arrow("offsets"), polls.columns.arrow("values")
    lengths = pc.fill_null(pc.list_value_length(offsets), 0).to_numpy()
    part = np.repeat(rows, lengths)
    return Placed(part, log[part], _flat(values), _flat(offsets))


def _codes(segment: Segment, column: str, words: list[str]) -> Numbers:
    """For each row the position of its word in a list, which gets the words that it lacks; −1 without a word."""
    codes, own = segment.codes(column)
    known = {word: number for number, word in enumerate(words)}
    positions: Numbers = _lookup(list(own), known)[codes]
    words[:] = known
    return positions


def _flat(lists: pa.ChunkedArray) -> Numbers:
    return np.asarray(pc.list_flatten(lists).to_numpy(), dtype=np.int64)


def _renumbered(codes: Numbers, words: list[str], known: dict[str, int]) -> Numbers:
    renumbered: Numbers = _lookup(words, known)[codes]
    return renumbered


def _lookup(words: list[str], known: dict[str, int]) -> Numbers:
    """The number of each word, new ones included; one more for none."""
    return np.array([known.setdefault(word, len(known)) for word in words] + [-1], dtype=np.int64)
