"""When produce with acks=all was tried and nothing was acknowledged, from clients' sends alone.

An attempt lasts from its invocation to its completion; of one that never completed only the invocation counts. Of a
partition's acknowledgements spans are kept, those that follow each other closely in one, and of the attempts, for each
gap between those, one from the first to the last. So a summary grows with the time that a history covers and not with
the number of its records.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from nemesis.checkers.framework.segment import Mask, Numbers, Segment
from nemesis.checkers.liveness.time_spans import NONE, Spans, complement, union
from nemesis.history.events import Kind

COLUMNS: Final = ("op", "f", "acks", "topic", "partition")
OPERATIONS: Final = frozenset({Kind.INVOKE, Kind.OK, Kind.FAIL, Kind.INFO})
SHORTEST_NS: Final = 100_000_000
"""What is shorter is ordinary latency, and clients that look for the new leader."""
_WITHIN: Final = SHORTEST_NS - 1
_ALL_REPLICAS: Final = -1
_FAR: Final = 2**62
_MANY: Final = 2**15

Attempt = tuple[str, int]
"""Process and operation."""


@dataclass(slots=True)
class Produce:
    """What a stretch of a history says of one partition."""

    acknowledged: Spans = field(default_factory=NONE.copy)
    tried: Spans = field(default_factory=NONE.copy)
    invoked: dict[Attempt, int] = field(default_factory=dict)
    """When attempts were invoked whose completion is not in the stretch."""
    completed: dict[Attempt, int] = field(default_factory=dict)
    """When attempts were completed whose invocation is not in it."""


def sends(segment: Segment) -> Mask:
    """Which rows are of sends with acks=all; a send of an external history without ``acks`` counts as one."""
    is_send = segment.is_kind(*OPERATIONS) & segment.is_word("f", {"send"})
    asks_for_all: Mask = segment.numbers("acks", _ALL_REPLICAS) == _ALL_REPLICAS
    return is_send & asks_for_all


def summarise(part: Segment) -> Produce:
    """Return what the ``sends`` of one partition say."""
    time, op = part.numbers("time"), part.numbers("op")
    process, names = part.codes("process")
    is_invocation = part.is_kind(Kind.INVOKE)
    starts, stops = _pairs(process, op, is_invocation)
    alone = np.ones(len(part), dtype=np.bool_)
    alone[starts] = alone[stops] = False
    left = np.flatnonzero(alone)
    attempts = [
        (names[code], number) for code, number in zip(process[left], op[left].tolist(), strict=True)
    ]
    unpaired = list(zip(attempts, time[left].tolist(), is_invocation[left].tolist(), strict=True))
    acknowledged = time[part.is_kind(Kind.OK)]
    acknowledged_spans = union(np.stack([acknowledged, acknowledged], axis=1), _WITHIN)
    return Produce(
        acknowledged_spans,
        _between(acknowledged_spans, union(np.stack([time[starts], time[stops]], axis=1))),
        {attempt: time_ns for attempt, time_ns, is_begun in unpaired if is_begun},
        {attempt: time_ns for attempt, time_ns, is_begun in unpaired if not is_begun},
    )


def _pairs(process: Numbers, op: Numbers, is_invocation: Mask) -> tuple[Numbers, Numbers]:
    """Return the places of the invocations whose completions are there, too, and of those.

    Nearly all clients wait for an answer before they go on, so that the two follow each other among the rows of a
    process. The others are sorted.
    """
    # Numpy sorts small integers much faster than large ones.
    codes = process.astype(np.int16) if process.max(initial=0) < _MANY else process
    by_process = np.argsort(codes, kind="stable")
    first = _adjacent(by_process, process, op, is_invocation)
    left = np.ones(len(process), dtype=np.bool_)
    left[first[0]] = left[first[1]] = False
    rest = np.flatnonzero(left)
    by_operation = rest[np.lexsort((~is_invocation[rest], op[rest], process[rest]))]
    second = _adjacent(by_operation, process, op, is_invocation)
    return np.concatenate([first[0], second[0]]), np.concatenate([first[1], second[1]])


def _adjacent(
    permutation: Numbers, process: Numbers, op: Numbers, is_invocation: Mask
) -> tuple[Numbers, Numbers]:
    """The pairs among neighbours in this order."""
    first, second = permutation[:-1], permutation[1:]
    is_pair = is_invocation[first] & ~is_invocation[second] & (op[first] == op[second])
    is_pair &= process[first] == process[second]
    return first[is_pair], second[is_pair]


def join(a: Produce, b: Produce) -> Produce:
    """Join two neighbouring stretches, ``a`` before ``b``."""
    both = a.invoked.keys() & b.completed.keys()
    across = _table((a.invoked[attempt], b.completed[attempt]) for attempt in both)
    acknowledged = union(np.concatenate([a.acknowledged, b.acknowledged]), _WITHIN)
    return Produce(
        acknowledged,
        _between(acknowledged, union(np.concatenate([a.tried, b.tried, across]))),
        {attempt: time_ns for attempt, time_ns in a.invoked.items() if attempt not in both}
        | b.invoked,
        a.completed
        | {attempt: time_ns for attempt, time_ns in b.completed.items() if attempt not in both},
    )


def unwritable(produce: Produce) -> Spans:
    """Return the spans of at least ``SHORTEST_NS`` in which produce was tried and nothing acknowledged."""
    loose = _table(
        (time, time) for time in (*produce.invoked.values(), *produce.completed.values())
    )
    tried = _between(produce.acknowledged, union(np.concatenate([produce.tried, loose])))
    return np.compress(tried[:, 1] - tried[:, 0] >= SHORTEST_NS, tried, axis=0)


def _between(acknowledged: Spans, tried: Spans) -> Spans:
    """Of each gap between acknowledgements what lies from the first attempt in it to the last."""
    gaps = complement(acknowledged, -_FAR, _FAR)
    first = np.searchsorted(tried[:, 1], gaps[:, 0], side="right")
    last = np.searchsorted(tried[:, 0], gaps[:, 1], side="left") - 1
    is_tried = first <= last
    gaps, first, last = gaps[is_tried], first[is_tried], last[is_tried]
    starts = np.maximum(gaps[:, 0], tried[first, 0])
    return np.stack([starts, np.minimum(gaps[:, 1], tried[last, 1])], axis=1)


def _table(pairs: Iterable[tuple[int, int]]) -> Spans:
    return np.array(list(pairs), dtype=np.int64).reshape(-1, 2)
