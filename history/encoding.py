"""How the Parquet files of a history are encoded: for reading fast, a few columns at a time.

Words and small numbers (nodes, epochs, partitions) are dictionary-coded. Numbers that grow from row to row (times,
offsets, zxids), or from record to record of a poll, are stored as differences, which takes a tenth of the room and is
decoded four times as fast as compressed plain numbers. A row group is what a checker works on at once: large enough
that the calls around the arithmetic do not count, small enough that its columns stay in the processor's cache
(``row_groups`` cuts it).
"""

from __future__ import annotations

from collections.abc import Iterator
from types import MappingProxyType
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from history.schema import NUMBER_LISTS, WORD_COLUMNS

ROW_GROUP_ROWS: Final = 64 * 1024
ROW_GROUP_RECORDS: Final = 512 * 1024
"""Records of polls: a row may hold hundreds."""

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
    "peer",
    "zk_version",
    "fault_id",
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
)
_RECORD_LISTS: Final = ("values", "offsets")
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
    }
)
"""Arguments of ``pyarrow.parquet.ParquetWriter``."""


def row_groups(rows: pa.Table) -> Iterator[pa.Table]:
    """Yield the rows of each row group; only the last one may have room left."""
    lengths = pc.fill_null(pc.list_value_length(rows.column("offsets")), 0)
    records = np.concatenate(([0], np.cumsum(lengths.to_numpy())))
    start = 0
    while start < rows.num_rows:
        fits = int(np.searchsorted(records, records[start] + ROW_GROUP_RECORDS, side="right")) - 1
        stop = max(start + 1, min(start + ROW_GROUP_ROWS, fits, rows.num_rows))
        yield rows.slice(start, stop - start)
        start = stop


def records_in(rows: pa.Table) -> int:
    """How many records the polls among these rows returned."""
    return pc.sum(pc.list_value_length(rows.column("offsets"))).as_py() or 0
