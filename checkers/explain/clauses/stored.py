"""What the files of a broker hold."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from nemesis.checkers.explain.clauses.subjects import of
from nemesis.checkers.explain.clauses.transactions import transaction_of
from nemesis.checkers.explain.words import offsets
from nemesis.checkers.framework.event_list import succeeded
from nemesis.history.events import Event, Kind


def _stored_marker(event: Event) -> str:
    return (
        f"the files of broker {event.node} hold the marker of coordinator epoch {event.coordinator_epoch} at offset "
        f"{event.offset} of {of(event)}: {event.outcome} of {transaction_of(event)}"
    )


def _stored_log(event: Event) -> str:
    if event.topic is None:
        return f"the files of broker {event.node} could not be read ({event.error})"
    damage = "" if succeeded(event) else f", and are damaged there: {event.error}"
    checkpointed = event.high_watermark
    mark = (
        f" and its checkpointed high watermark was {checkpointed}"
        if checkpointed is not None
        else ""
    )
    return f"in the files of broker {event.node} {of(event)} ended at {event.log_end_offset}{mark}{damage}"


def _stored_segment(event: Event) -> str:
    segment = (
        f"a segment of {of(event)} from offset {event.offset} on, {event.count or 0:,} bytes long"
    )
    return f"the files of broker {event.node} had {segment}"


def _stored_batch(event: Event) -> str:
    records = f"{offsets(event.offset, event.last_offset)} of {of(event)}"
    return (
        f"the files of broker {event.node} held {records} as a batch of leader epoch {event.leader_epoch}, CRC "
        f"{event.crc}"
    )


def _stored_index_entry(event: Event) -> str:
    entry = f"offset {event.offset} at byte {event.position}"
    if event.position is None:
        entry = f"time {event.max_timestamp} at offset {event.offset}"
    segment = f"the segment of {of(event)} from offset {event.segment_offset} on"
    return f"the files of broker {event.node} had an index of {segment} with {entry}"


def _stored_epoch(event: Event) -> str:
    epoch = f"leader epoch {event.leader_epoch} begins at offset {event.offset}"
    return f"by the files of broker {event.node} {epoch} of {of(event)}"


def _stored_snapshot(event: Event) -> str:
    snapshot = f"a snapshot of the producers of {of(event)} below offset {event.offset}"
    return f"the files of broker {event.node} had {snapshot}"


def _stored_producer(event: Event) -> str:
    batch = (
        f"whose last batch ends at offset {event.last_offset} and sequence number {event.sequence}"
    )
    return f"{_stored_snapshot(event)} with producer {event.producer_id}, {batch}"


CLAUSES: Final[Mapping[str, Callable[[Event], str]]] = MappingProxyType(
    {
        Kind.STORED_LOG: _stored_log,
        Kind.STORED_SEGMENT: _stored_segment,
        Kind.STORED_BATCH: _stored_batch,
        Kind.STORED_MARKER: _stored_marker,
        Kind.STORED_INDEX_ENTRY: _stored_index_entry,
        Kind.STORED_EPOCH: _stored_epoch,
        Kind.STORED_SNAPSHOT: _stored_snapshot,
        Kind.STORED_PRODUCER: _stored_producer,
    }
)
