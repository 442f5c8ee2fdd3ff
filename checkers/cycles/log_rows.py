"""What is kept of the rows of sends and polls, for the transactions that they are parts of."""

from __future__ import annotations

from dataclasses import dataclass
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
class LogRows:
    """Parts of operations: which were invoked when, and which succeeded or are in doubt."""

    began_op: Numbers
    began_at: Numbers
    op: Numbers
    """Of each part that succeeded or is in doubt. What follows likewise."""
    is_ok: Mask
    """Whether it succeeded."""
    ended: Numbers
    row: Numbers
    process: Numbers
    """A position in ``processes``."""
    processes: list[str]
    logs: list[str]
    sent: Placed
    polled: Placed

    @classmethod
    def of(cls, segment: Segment) -> LogRows:
        segment = segment.where(segment.is_word("f", {SEND, POLL}))
        begun = segment.where(segment.is_kind(Kind.INVOKE))
        done = segment.where(segment.is_kind(Kind.OK, Kind.INFO))
        process, processes = done.codes("process")
        log, logs = done.codes("topic")
        is_send = done.is_word("f", {SEND})
        return cls(
            began_op=begun.numbers("op"),
            began_at=begun.numbers("time"),
            op=done.numbers("op"),
            is_ok=done.is_kind(Kind.OK),
            ended=done.numbers("time"),
            row=done.rows,
            process=process,
            processes=list(processes),
            logs=list(logs),
            sent=_sent(done, log, is_send),
            polled=_polled(done, log, ~is_send),
        )

    @classmethod
    def joined(cls, parts: list[LogRows]) -> LogRows:
        """All rows, one part after the other."""
        processes: dict[str, int] = {}
        logs: dict[str, int] = {}
        process: list[Numbers] = []
        sent: list[Placed] = []
        polled: list[Placed] = []
        before = 0
        for part in parts:
            process.append(_renumbered(part.process, part.processes, processes))
            log = _lookup(part.logs, logs)
            for into, placed in ((sent, part.sent), (polled, part.polled)):
                into.append(
                    Placed(placed.part + before, log[placed.log], placed.value, placed.offset)
                )
            before += len(part.op)
        return cls(
            began_op=np.concatenate([part.began_op for part in parts]),
            began_at=np.concatenate([part.began_at for part in parts]),
            op=np.concatenate([part.op for part in parts]),
            is_ok=np.concatenate([part.is_ok for part in parts]),
            ended=np.concatenate([part.ended for part in parts]),
            row=np.concatenate([part.row for part in parts]),
            process=np.concatenate(process),
            processes=list(processes),
            logs=list(logs),
            sent=Placed.joined(sent),
            polled=Placed.joined(polled),
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


def _flat(lists: pa.ChunkedArray) -> Numbers:
    return np.asarray(pc.list_flatten(lists).to_numpy(), dtype=np.int64)


def _renumbered(codes: Numbers, words: list[str], known: dict[str, int]) -> Numbers:
    renumbered: Numbers = _lookup(words, known)[codes]
    return renumbered


def _lookup(words: list[str], known: dict[str, int]) -> Numbers:
    """The number of each word, new ones included; one more for none."""
    return np.array([known.setdefault(word, len(known)) for word in words] + [-1], dtype=np.int64)
