"""Records that were acknowledged and never read, although a consumer read their log to its end afterwards.

A consumer has read a log to its end if

1. a poll of it, begun after the acknowledgement, returned the last record that any poll of the history returned, and
2. the next poll of this consumer succeeded and returned no record at all.

The acknowledged record stands behind the last record that was read, or nothing is known of its offset. So the consumer
was where it stands, could read the log, and was given nothing. A first poll without a record says less: it may have
ended before the first answer of a broker. Smallest break: ok(7 at 0), ok(8 at 1), then a poll returns offset 0, the
next one nothing.

Limit: a broker that cannot be reached between these two polls, until the history ends, looks the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow.compute as pc

from nemesis.checkers.framework.findings import finding
from nemesis.checkers.framework.model import Finding
from nemesis.checkers.framework.segment import Segment
from nemesis.checkers.log.polls_in_doubt import Missed, Reader
from nemesis.history.events import Kind
from nemesis.history.foreign.logs import process_of


@dataclass(frozen=True, slots=True)
class EndOfLog:
    """A consumer that read a log to its end."""

    process: str
    began: int
    """When the poll began that returned the last record."""
    last_offset: int
    row: int
    """The row of that poll."""
    empty_row: int
    """The row of the poll that returned nothing."""

    @property
    def reader(self) -> Reader:
        return Reader(process_of(self.process), False, self.began)


def ends_of_log(segment: Segment, last_offset: int) -> list[EndOfLog]:
    """Return the consumers that read the records up to this offset and then nothing."""
    polls = segment.where(segment.is_word("f", {"poll"}))
    invoked = polls.where(polls.is_kind(Kind.INVOKE))
    began = dict(zip(invoked.numbers("op").tolist(), invoked.numbers("time").tolist(), strict=True))
    done = polls.where(polls.is_kind(Kind.OK))
    offsets = done.columns.arrow("offsets")
    counts = pc.fill_null(pc.list_value_length(offsets), 0).to_numpy()
    poll = np.repeat(np.arange(len(done)), counts)
    flat = np.asarray(pc.list_flatten(offsets).to_numpy(), dtype=np.int64)
    codes, names = done.codes("process")
    ops, rows = done.numbers("op"), done.rows
    ends = []
    for reached in np.unique(poll[flat == last_offset]).tolist():
        later = np.flatnonzero((codes == codes[reached]) & (ops > ops[reached]))
        op = int(ops[reached])
        if op not in began or not len(later):
            continue
        following = int(later[np.argmin(ops[later])])
        if counts[following] == 0:
            process = names[int(codes[reached])]
            end = EndOfLog(
                process, began[op], last_offset, int(rows[reached]), int(rows[following])
            )
            ends.append(end)
    return ends


def unseen(tp: str, never_read: Segment, ends: list[EndOfLog]) -> Iterator[Finding | Missed]:
    """Yield the acknowledged sends of values that were never read, but would have been."""
    columns = (
        never_read.numbers("value"),
        never_read.numbers("offset"),
        never_read.numbers("time"),
    )
    for value, offset, time, row in zip(
        *(column.tolist() for column in columns), never_read.rows.tolist(), strict=True
    ):
        end = next((end for end in ends if end.began > time), None)
        if end is None or 0 <= offset <= end.last_offset:
            continue
        where = f" at offset {offset}" if offset >= 0 else ""
        sentence = (
            f"Value {value}, acknowledged{where} of {tp}, was never read, though client {end.process} read the log to "
            "its end afterwards."
        )
        steps = (
            f"A send of {value} to {tp} was acknowledged{where}.",
            f"A poll of client {end.process}, begun later, returned offset {end.last_offset}, the last that was read.",
            f"The next poll of client {end.process} returned no record.",
        )
        anomaly = finding("unseen", tp, sentence, row, end.row, end.empty_row, steps=steps)
        if offset >= 0:  # it is behind the last one, so no earlier poll returned it
            yield anomaly
        else:
            yield Missed(anomaly, tuple(end.reader for end in ends if end.began > time))
