"""A segment of one partition's history, compressed to what its logs went through.

Runs of appends of one leader epoch become one step; of the high watermarks and acknowledgements only the highest of
each leader epoch is kept; batches are kept once however many replicas have them. Two segments join to what their
concatenation would have given.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

import numpy as np

from nemesis.checkers.framework.segment import Mask, Numbers, Segment
from nemesis.checkers.replication.replica_rows import high_watermark_rows, members
from nemesis.checkers.unclean import Elections, elections_in
from nemesis.history.events import Kind


class Did(Enum):
    """What a step did to a replica's log."""

    APPENDED = "appended"
    """Offsets ``start`` up to ``end``, of leader epoch ``epoch``."""
    RESIZED = "resized"
    """The log now ends at ``end``, and begins at ``start`` if that is traced."""
    STARTED = "started"
    """The log now begins at ``start``; ``end`` says nothing new."""
    LED = "led"
    """It became leader in ``epoch`` with a log from ``start`` up to ``end``."""


NOT_TRACED = -1


class Step(NamedTuple):
    did: Did
    start: int
    end: int
    epoch: int
    row: int


Mark = tuple[int, int]
"""(offset up to which records are committed, row of the event that says so)"""


@dataclass(slots=True)
class PartitionLogs:
    """What a segment of one partition's history says of its logs."""

    steps: dict[int, list[Step]] = field(default_factory=dict)
    """By broker, in order."""
    committed: dict[int, Mark] = field(default_factory=dict)
    """By leader epoch: the highest mark."""
    in_sync: dict[int, int] = field(default_factory=dict)
    """By broker: the highest high watermark that counted it in."""
    elections: Elections = field(default_factory=Elections)
    batches: list[Numbers] = field(default_factory=list)
    """Tables of distinct (leader epoch, base offset, last offset, crc, row)."""
    cleaned: list[Numbers] = field(default_factory=list)
    """The same of batches as compaction has left them."""
    appended: int = 0

    def row_of(self, epoch: int, offset: int) -> int | None:
        """The row of the first append of the batch with this leader epoch and offset; ``None`` if none was traced."""
        rows = [
            int(table[covers, 4].min())
            for table in self.batches
            if (
                covers := (table[:, 0] == epoch) & (table[:, 1] <= offset) & (offset <= table[:, 2])
            ).any()
        ]
        return min(rows, default=None)


def summarise(part: Segment) -> PartitionLogs:
    """Compress the rows of one partition."""
    logs = PartitionLogs()
    nodes = part.numbers("node")
    local = part.is_kind(
        Kind.APPEND,
        Kind.TRUNCATE,
        Kind.LOG_LOADED,
        Kind.LOG_DIR_CHANGED,
        Kind.LOG_START_OFFSET,
        Kind.BECOME_LEADER,
        Kind.BECOME_FOLLOWER,
    )
    for node in np.unique(nodes[local]).tolist():
        logs.steps[node] = _steps(part, np.flatnonzero(local & (nodes == node)))
    appends = part.is_kind(Kind.APPEND)
    logs.appended = int(appends.sum())
    if logs.appended:
        logs.batches.append(distinct(_batches(part, appends)))
    cleaned = part.is_kind(Kind.BATCH_CLEANED)
    if cleaned.any():
        logs.cleaned.append(distinct(_batches(part, cleaned)))
    acked = part.is_kind(Kind.PRODUCE_ACKNOWLEDGED) & (part.numbers("acks", 0) == -1)
    last = np.maximum(part.numbers("last_offset"), part.numbers("offset"))
    moved = part.is_kind(Kind.HIGH_WATERMARK)
    bounds = np.where(moved, part.numbers("high_watermark"), last + 1)
    epochs = part.numbers("leader_epoch")
    for epoch in np.unique(epochs[acked | moved]).tolist():
        positions = np.flatnonzero((acked | moved) & (epochs == epoch))
        top = int(positions[np.argmax(bounds[positions])])
        logs.committed[epoch] = (int(bounds[top]), int(part.rows[top]))
    moves = high_watermark_rows(part)
    move_index, member = members(moves)
    marks = moves.numbers("high_watermark")
    for node in np.unique(member).tolist():
        logs.in_sync[node] = int(marks[move_index[member == node]].max())
    logs.elections = elections_in(part)
    return logs


def _batches(part: Segment, kept: Mask) -> Numbers:
    columns = ("leader_epoch", "offset", "last_offset", "crc")
    return np.stack([*(part.numbers(name)[kept] for name in columns), part.rows[kept]], 1)


def _steps(part: Segment, positions: Numbers) -> list[Step]:
    """The steps of one replica; appends that continue each other become one."""
    appended = part.is_kind(Kind.APPEND)[positions]
    led = part.is_kind(Kind.BECOME_LEADER)[positions]
    started = part.is_kind(Kind.LOG_START_OFFSET)[positions]
    log_start = part.numbers("log_start_offset", NOT_TRACED)[positions]
    start = np.where(appended, part.numbers("offset")[positions], log_start)
    end = np.where(
        appended,
        part.numbers("last_offset")[positions] + 1,
        part.numbers("log_end_offset")[positions],
    )
    epoch = np.where(appended | led, part.numbers("leader_epoch")[positions], -1)
    goes_on = np.zeros(len(positions), dtype=np.bool_)
    goes_on[1:] = appended[1:] & appended[:-1] & (epoch[1:] == epoch[:-1]) & (start[1:] == end[:-1])
    firsts = np.flatnonzero(~goes_on)
    lasts = np.append(firsts[1:], len(positions)) - 1
    steps = []
    for first, last in zip(firsts.tolist(), lasts.tolist(), strict=True):
        did = Did.RESIZED
        for kind, action in ((appended, Did.APPENDED), (led, Did.LED), (started, Did.STARTED)):
            did = action if kind[first] else did
        if end[last] >= 0:
            row = int(part.rows[positions[first]])
            steps.append(Step(did, int(start[first]), int(end[last]), int(epoch[first]), row))
    return steps


def distinct(table: Numbers) -> Numbers:
    """The distinct batches, sorted, each with the first row that tells of it."""
    ordered = table[np.lexsort(table.T[::-1])]
    new = np.ones(len(ordered), dtype=np.bool_)
    new[1:] = (ordered[1:, :4] != ordered[:-1, :4]).any(axis=1)
    return ordered[new]


def without(table: Numbers, others: list[Numbers]) -> Numbers:
    """The batches that are not among the others."""
    known = {tuple(batch) for other in others for batch in other[:, :4].tolist()}
    if not known:
        return table
    return table[[tuple(batch) not in known for batch in table[:, :4].tolist()]]


def join(a: PartitionLogs, b: PartitionLogs) -> PartitionLogs:
    """Join two neighbouring segments, ``a`` before ``b``; changes neither."""
    steps = dict(a.steps)
    for node, later in b.steps.items():
        steps[node] = _chain(steps.get(node, []), later)
    committed = dict(a.committed)
    for epoch, mark in b.committed.items():
        if epoch not in committed or mark[0] > committed[epoch][0]:
            committed[epoch] = mark
    in_sync = dict(a.in_sync)
    for node, high_watermark in b.in_sync.items():
        in_sync[node] = max(high_watermark, in_sync.get(node, 0))
    return PartitionLogs(
        steps,
        committed,
        in_sync,
        a.elections.join(b.elections),
        a.batches + b.batches,
        a.cleaned + b.cleaned,
        a.appended + b.appended,
    )


def _chain(a: list[Step], b: list[Step]) -> list[Step]:
    if not a or not b:
        return a or b
    last, first = a[-1], b[0]
    if (
        last.did is first.did is Did.APPENDED
        and last.epoch == first.epoch
        and last.end == first.start
    ):
        return [*a[:-1], last._replace(end=first.end), *b[1:]]
    return a + b
