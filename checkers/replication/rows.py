"""Reading a partition's rows as arrays."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from checkers.segment import Mask, Numbers, Segment
from history.events import Kind

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


def are_committed(high_watermarks: Segment, at: Numbers, member: Numbers) -> Mask:
    """Return of each of these ``members`` whether it is in the committed ISR, too."""
    committed_at, committed = _flattened(high_watermarks, "isr")
    span = max(member.max(initial=0), committed.max(initial=0)) + 1
    return np.isin(at * span + member, committed_at * span + committed)


def _flattened(segment: Segment, *names: str) -> tuple[Numbers, Numbers]:
    """Return (position, item) for each item of the first of these lists that is set in a row."""
    lists = [segment.columns.arrow(name) for name in names if name in segment.columns.names]
    if not lists:
        nothing = np.zeros(0, dtype=np.int64)
        return nothing, nothing
    column = pc.coalesce(*lists).combine_chunks()
    if isinstance(column, pa.ChunkedArray):
        column = column.chunk(0)
    positions = pc.list_parent_indices(column).to_numpy(zero_copy_only=False)
    return positions.astype(np.int64), column.flatten().to_numpy(zero_copy_only=False).astype(
        np.int64
    )


def high_watermark_rows(segment: Segment) -> Segment:
    return segment.where(segment.is_kind(Kind.HIGH_WATERMARK))
