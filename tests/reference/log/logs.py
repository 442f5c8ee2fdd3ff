"""A log on a real disk, and its record batches read to the end."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from nemesis.reference.adapters.disk import RealDisk
from nemesis.reference.log.log import Log
from nemesis.reference.log.log_config import LogConfig
from nemesis.reference.model import TopicPartition
from nemesis.reference.ports import Disk
from nemesis.reference.protocol.record_batch import iter_batches
from tests.reference.log.batches import PRODUCERS

TP = TopicPartition("t", 0)


MANY = 2**31


def open_log(tmp_path: Path, *, disk: Disk | None = None, **config: Any) -> Log:
    return Log(
        TP, str(tmp_path / "t-0"), disk=disk or RealDisk(), config=LogConfig(**config), **PRODUCERS
    )


def ranges(data: bytes) -> list[tuple[int, int]]:
    return [(header.base_offset, header.last_offset) for header in iter_batches(data)]


def read_all(log: Log) -> list[tuple[int, int]]:
    offsets: list[tuple[int, int]] = []
    offset = log.log_start_offset
    while offset < log.log_end_offset:
        more = ranges(log.read(offset, MANY, MANY, min_one_message=True))
        assert more, f"nothing to read at {offset}"
        assert more[-1][1] >= offset
        offsets += more
        offset = more[-1][1] + 1
    return offsets
