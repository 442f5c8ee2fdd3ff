"""What coordinators and leaders did with transactions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from nemesis.checkers.explain.clauses.subjects import actor, of
from nemesis.history.events import Event, Kind


def _transaction_opened(event: Event) -> str:
    return f"{actor(event)} appended the first batch of {transaction_of(event)} at offset {event.offset} of {of(event)}"


def _marker_appended(event: Event) -> str:
    began = (
        f", which began at offset {event.first_offset}" if (event.first_offset or 0) >= 0 else ""
    )
    return (
        f"{actor(event)} appended the marker of coordinator epoch {event.coordinator_epoch} at offset {event.offset} "
        f"of {of(event)}: {event.outcome} of {transaction_of(event)}{began}"
    )


def _transaction_partition_added(event: Event) -> str:
    return (
        f"the coordinator on broker {event.node} added {of(event)} to {transaction_of(event)}, whose time-out is "
        f"{event.timeout_ms} ms"
    )


def _transaction_completed(event: Event) -> str:
    return (
        f"the coordinator on broker {event.node}, of epoch {event.coordinator_epoch}, completed "
        f"{transaction_of(event)} in {of(event)}: {event.outcome}"
    )


def transaction_of(event: Event) -> str:
    """Return the producer of a transaction and its epoch."""
    return f"a transaction of producer {event.producer_id}, epoch {event.producer_epoch}"


CLAUSES: Final[Mapping[str, Callable[[Event], str]]] = MappingProxyType(
    {
        Kind.TRANSACTION_OPENED: _transaction_opened,
        Kind.MARKER_APPENDED: _marker_appended,
        Kind.TRANSACTION_PARTITION_ADDED: _transaction_partition_added,
        Kind.TRANSACTION_COMPLETED: _transaction_completed,
    }
)
