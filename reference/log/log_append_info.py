"""What an append added to a log.

Source: kafka's LogAppendInfo of Kafka 3.9.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from nemesis.reference.log.producer_append_info import OpenedTransaction, WrittenMarker
from nemesis.reference.protocol.record_batch import RecordBatchHeader


class AppendedBatch(NamedTuple):
    """One batch as it now is in the log: offsets ``base_offset`` to ``last_offset``, both included."""

    base_offset: int
    last_offset: int
    leader_epoch: int
    crc: int
    size: int


class LogAppendInfo(NamedTuple):
    """What one append added; with no batch, ``last_offset`` is ``first_offset`` − 1."""

    first_offset: int
    last_offset: int
    batches: tuple[AppendedBatch, ...]
    log_append_time: int = -1
    """Of a batch that was in the log before, and so was not appended again: its time in ms."""
    opened: tuple[OpenedTransaction, ...] = ()
    """The transactions that begin with one of the batches."""
    markers: tuple[WrittenMarker, ...] = ()


def appended_batches(headers: Iterable[RecordBatchHeader]) -> tuple[AppendedBatch, ...]:
    """Return what is told of these batches."""
    return tuple(
        AppendedBatch(
            header.base_offset,
            header.last_offset,
            header.partition_leader_epoch,
            header.crc,
            header.size_in_bytes,
        )
        for header in headers
    )
