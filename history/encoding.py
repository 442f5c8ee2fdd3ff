"""How the Parquet files of a history are encoded: for reading fast, a few columns at a time.

Words and small numbers (nodes, epochs, partitions) are dictionary-coded. Numbers that grow from row to row (times,
offsets, zxids) are stored as differences, which takes a tenth of the room and is decoded four times as fast as
compressed plain numbers. A row group is what a checker works on at once: large enough that the calls around the
arithmetic do not count, small enough that its columns stay in the processor's cache.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Any, Final

from history.schema import NUMBER_LISTS, WORD_COLUMNS

ROW_GROUP_ROWS: Final = 64 * 1024

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
_BROKER_LISTS: Final = sorted(NUMBER_LISTS - {"values", "offsets", "isr_epochs"})

PARQUET_OPTIONS: Final = MappingProxyType[str, Any](
    {
        "compression": "lz4",
        "use_dictionary": [
            *sorted(WORD_COLUMNS),
            *_SMALL_NUMBERS,
            *(f"{name}.list.element" for name in _BROKER_LISTS),
        ],
        "column_encoding": dict.fromkeys(_GROWING_NUMBERS, "DELTA_BINARY_PACKED"),
        "write_page_checksum": True,
    }
)
"""Arguments of ``pyarrow.parquet.ParquetWriter``."""
