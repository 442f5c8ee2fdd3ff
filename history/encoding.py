"""How the Parquet files of a history are encoded: for reading fast, a few columns at a time.

Words and small numbers (nodes, epochs, partitions) are dictionary-coded. Numbers that grow from row to row (times,
offsets, zxids), or from record to record of a poll, are stored as differences, which takes a tenth of the room and is
decoded four times as fast as compressed plain numbers. A row group is what a checker works on at once: large enough
that the calls around the arithmetic do not count, small enough that its columns stay in the processor's cache
(``row_groups`` cuts it).

A file's footer records what a row's kind and node determine (``nemesis.history.statistics``).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from math import ceil
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Any, Final, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from nemesis.history.events import Kind
from nemesis.history.schema import NUMBER_LISTS, SCHEMA, WORD_COLUMNS
from nemesis.history.statistics import StatisticsCollector

ROW_GROUP_ROWS: Final = 128 * 1024
ROW_GROUP_RECORDS: Final = 512 * 1024
"""Records of polls: a row may hold hundreds."""
LONG_STRETCH: Final = 16 * 1024
"""Rows that are worth row groups of their own."""

_FREQUENT: Final = frozenset(
    {
        Kind.INVOKE,
        Kind.OK,
        Kind.FAIL,
        Kind.INFO,
        Kind.APPEND,
        Kind.HIGH_WATERMARK,
        Kind.PRODUCE_ACKNOWLEDGED,
    }
)
"""Kinds that grow with the load."""

_SMALL_NUMBERS: Final = (
    "incarnation",
    "node",
    "acks",
    "partition",
    "controller_id",
    "controller_epoch",
    "leader",
    "leader_epoch",
    "partition_epoch",
    "broker_epoch",
    "replica",
    "peer",
    "zk_version",
    "fault_id",
    "count",
    "partition_count",
    "producer_epoch",
    "min_insync_replicas",
    "timeout_ms",
)
_GROWING_NUMBERS: Final = (
    "time",
    "seq",
    "op",
    "offset",
    "last_offset",
    "high_watermark",
    "log_start_offset",
    "log_end_offset",
    "zxid",
    "wall_ms",
    "key",
    "value",
    "sequence",
)
_RECORD_LISTS: Final = ("values", "micro_operations", "offsets")
_BROKER_LISTS: Final = sorted(NUMBER_LISTS - {*_RECORD_LISTS, "isr_epochs"})

PARQUET_OPTIONS: Final = MappingProxyType[str, Any](
    {
        "compression": "lz4",
        "use_dictionary": [
            *sorted(WORD_COLUMNS),
            *_SMALL_NUMBERS,
            *(f"{name}.list.element" for name in _BROKER_LISTS),
        ],
        "column_encoding": dict.fromkeys(
            [*_GROWING_NUMBERS, *(f"{name}.list.element" for name in _RECORD_LISTS)],
            "DELTA_BINARY_PACKED",
        ),
        "write_page_checksum": True,
        # The default, 1,024, takes half of the time of a file: most columns are unset in all rows.
        "write_batch_size": ROW_GROUP_ROWS,
    }
)
"""Arguments of ``pyarrow.parquet.ParquetWriter``."""


class EventsFile:
    """Writes one file of a history, a row group at a time."""

    def __init__(self, path: Path, columns: Sequence[str] = ()) -> None:
        """``columns``: those that the file has, in the order of ``SCHEMA``; empty: all of them."""
        self._columns = list(columns or SCHEMA.names)
        schema = pa.schema([SCHEMA.field(name) for name in self._columns])
        self._file = pq.ParquetWriter(path, schema, **PARQUET_OPTIONS)
        self._statistics = StatisticsCollector()

    def write(self, group: pa.Table) -> None:
        """Write these rows, which have all columns of ``SCHEMA``, as one row group."""
        self._file.write_table(group.select(self._columns), row_group_size=ROW_GROUP_ROWS)
        self._statistics.add(group)

    def close(self) -> None:
        """Finish the file."""
        self._file.add_key_value_metadata(self._statistics.footer())
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def row_groups(rows: pa.Table) -> Iterator[pa.Table]:
    """Yield the rows of each row group. Columns other than the kind may be missing.

    They are as large as they may be, but end where a long stretch of nothing but what clients and logs do begins or
    ends: an election says more in more columns than an append, and would have them decoded for all of its row group.
    """
    records = np.zeros(rows.num_rows + 1, dtype=np.int64)
    if "offsets" in rows.column_names:
        lengths = pc.fill_null(pc.list_value_length(rows.column("offsets")), 0)
        records[1:] = np.cumsum(lengths.to_numpy())
    for first, end in pairwise(_cuts(rows.column("kind"))):
        start, most = first, ceil((end - first) / ceil((end - first) / ROW_GROUP_ROWS))
        while start < end:
            fits = int(np.searchsorted(records, records[start] + ROW_GROUP_RECORDS, "right")) - 1
            stop = max(start + 1, min(start + most, fits, end))
            yield rows.slice(start, stop - start)
            start = stop


def _cuts(kinds: pa.ChunkedArray) -> list[int]:
    """Where long stretches of frequent kinds begin and end, and the first and the last row."""
    # Of each chunk's dictionary the frequent words, then of its rows: no row becomes a text.
    is_frequent = np.concatenate(
        [
            np.isin(chunk.dictionary.to_pylist(), sorted(_FREQUENT))[chunk.indices.to_numpy()]
            for chunk in kinds.chunks
        ]
        or [np.zeros(0, dtype=np.bool_)]
    )
    infrequent = np.concatenate(([-1], np.flatnonzero(~is_frequent), [len(kinds)]))
    long = np.flatnonzero(np.diff(infrequent) > LONG_STRETCH)
    cuts: list[int] = np.unique(
        np.concatenate(([0], infrequent[long] + 1, infrequent[long + 1], [len(kinds)]))
    ).tolist()
    return cuts


def records_in(rows: pa.Table) -> int:
    """How many records the polls among these rows returned."""
    return pc.sum(pc.list_value_length(rows.column("offsets"))).as_py() or 0
