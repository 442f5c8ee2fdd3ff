"""What brokers trace of records: appends on every replica, the high watermark behind them, acknowledgements.

The leader appends a few records, each follower fetches and appends them, the high watermark moves once over them all,
and they are acknowledged: a *round* of one to ``ROUND_RECORDS`` records, drawn for each. All of a stretch's rows are
made at once, in the order of their times.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from benchmarks.histories import columns
from benchmarks.histories.columns import Array
from benchmarks.histories.shape import SLOT_NS, Stretch
from nemesis.history.events import Kind

ROUND_RECORDS = 4
INCARNATION = 1
_KINDS = (Kind.APPEND.value, Kind.HIGH_WATERMARK.value, Kind.PRODUCE_ACKNOWLEDGED.value)
_APPEND, _HIGH_WATERMARK, _ACKNOWLEDGED = range(3)


def events_per_record(replication_factor: int) -> float:
    """How many rows a record makes on average."""
    return replication_factor + 1 + 2 / (ROUND_RECORDS + 1)


def rows(stretch: Stretch) -> pa.Table:
    """Return the rows of a stretch, sorted by time."""
    count = len(stretch.partition.replicas)
    brokers = np.array([stretch.leader, *stretch.followers])
    sizes = _round_sizes(stretch)
    lengths = sizes * (count + 1) + 1
    in_round = np.repeat(np.arange(len(sizes)), lengths)
    position = np.arange(len(in_round)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    size = sizes[in_round]
    before = (np.cumsum(sizes) - sizes)[in_round]
    appended, end = size * count, stretch.first + before + size
    kind = np.where(position < appended, _APPEND, np.where(position == appended, 1, _ACKNOWLEDGED))
    is_append, is_mark = kind == _APPEND, kind == _HIGH_WATERMARK
    index = np.where(is_append, position % size, position - appended - 1)
    offset = stretch.first + before + index
    writer = np.where(is_append, position // size, 0)
    time = stretch.start_ns + before * SLOT_NS + position * (SLOT_NS // (count + 2))
    total = len(position)
    return columns.rows(
        {
            "time": columns.numbers(time),
            "process": columns.words(writer, [f"broker-{broker}" for broker in brokers]),
            "kind": columns.words(kind, _KINDS),
            "seq": columns.numbers(time // (SLOT_NS // (count + 2))),
            "incarnation": columns.number(INCARNATION, total),
            "node": columns.numbers(brokers[writer]),
            "acks": columns.numbers(np.full(total, -1), kind == _ACKNOWLEDGED),
            "topic": columns.word(stretch.partition.topic, total),
            "topic_id": columns.word(stretch.partition.topic_id, total),
            "partition": columns.number(stretch.partition.index, total),
            "leader_epoch": columns.number(stretch.leader_epoch, total),
            "isr": columns.same_list(sorted(stretch.partition.replicas), ~is_append),
            "maximal_isr": columns.same_list(sorted(stretch.partition.replicas), is_mark),
            "role": columns.words((writer > 0), ("leader", "follower"), is_append),
            "offset": columns.numbers(offset, ~is_mark),
            "last_offset": columns.numbers(offset, ~is_mark),
            "crc": columns.numbers(crc(stretch.partition.number, offset), is_append),
            "high_watermark": columns.numbers(end, ~is_append),
            "log_end_offset": columns.numbers(
                np.where(is_append, offset + 1, end), kind != _ACKNOWLEDGED
            ),
        }
    )


def crc(partition: int, offset: Array) -> Array:
    """A number of 32 bits that tells the batches of a history apart."""
    mixed = (offset.astype(np.uint64) + np.uint64(partition << 32)) * np.uint64(0x9E3779B97F4A7C15)
    return (mixed >> np.uint64(32)).astype(np.int64)


def _round_sizes(stretch: Stretch) -> Array:
    rng = np.random.default_rng(stretch.seed)
    sizes = rng.integers(1, ROUND_RECORDS + 1, size=stretch.records)
    last = int(np.searchsorted(np.cumsum(sizes), stretch.records))
    kept = sizes[: last + 1].copy()
    kept[-1] -= int(kept.sum()) - stretch.records
    return kept
