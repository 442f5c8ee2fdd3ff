"""Reading a partition's rows as arrays."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nemesis.checkers.framework.segment import Mask, Numbers, Segment
from nemesis.history.events import Kind

MAX_COUNTED: Final = 2**16
"""Broker ids below this are told apart by counting, which is faster than sorting."""

LOG_END_KINDS: Final = frozenset(
    {
        Kind.APPEND,
        Kind.TRUNCATE,
        Kind.LOG_LOADED,
        Kind.LOG_DIR_CHANGED,
        Kind.LOG_START_OFFSET,
    }
)
"""Report the end of a log, and may be many. A truncation may raise it: a log that ends before its leader's begins is
emptied, and begins there.
"""

TopicKey = tuple[str, str | None, int]
"""A partition of a topic incarnation: topic, topic id, partition."""


def partitions(segment: Segment) -> Iterator[tuple[TopicKey, Segment]]:
    """Yield the rows of each partition; rows that concern none are left out."""
    for key, part in segment.by("topic", "topic_id", "partition"):
        topic, topic_id, partition = key
        if topic is not None and partition is not None:
            yield (topic, topic_id, partition), part


def members(high_watermarks: Segment) -> tuple[Numbers, Numbers]:
    """Return (position, broker) for each member of each row's maximal ISR, its committed ISR where that is unset."""
    return _flattened(high_watermarks, "maximal_isr", "isr")


def are_committed(high_watermarks: Segment, move_index: Numbers, member: Numbers) -> Mask:
    """Return of each of these ``members`` whether it is in the committed ISR, too."""
    committed_at, committed = _flattened(high_watermarks, "isr")
    span = max(member.max(initial=0), committed.max(initial=0)) + 1
    return np.isin(move_index * span + member, committed_at * span + committed)


def _flattened(segment: Segment, *names: str) -> tuple[Numbers, Numbers]:
    """Return (position, item) for each item of the first of these lists that is set in a row."""
    lists: list[pa.ChunkedArray] = []
    for name in names:
        # Later lists are seldom needed, and cost as much as all other columns together.
        if name in segment.columns.names and not (lists and lists[-1].null_count == 0):
            lists.append(segment.columns.arrow(name))
    if not lists:
        nothing = np.zeros(0, dtype=np.int64)
        return nothing, nothing
    column = (pc.coalesce(*lists) if len(lists) > 1 else lists[0]).combine_chunks()
    if isinstance(column, pa.ChunkedArray):
        column = column.chunk(0)
    positions = pc.list_parent_indices(column).to_numpy(zero_copy_only=False)
    return positions.astype(np.int64), column.flatten().to_numpy(zero_copy_only=False).astype(
        np.int64
    )


def high_watermark_rows(segment: Segment) -> Segment:
    return segment.where(segment.is_kind(Kind.HIGH_WATERMARK))


def brokers_in(nodes: Numbers) -> list[int]:
    """The distinct values, in order."""
    if len(nodes) and nodes.min() >= 0 and nodes.max() < MAX_COUNTED:
        distinct: Numbers = np.flatnonzero(np.bincount(nodes))
    else:
        distinct = np.unique(nodes)
    return [int(node) for node in distinct]
