"""What transactional producers did, in words: their transactions, and what they asked of coordinators."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from nemesis.checkers.explain.words import tp
from nemesis.history.events import Event, Kind

_REQUESTS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "add-partitions": "to add partitions to",
        "commit-transaction": "to commit",
        "abort-transaction": "to abort",
        "send-offset": "to commit an offset in",
    }
)


def is_producer_request(event: Event) -> bool:
    """Whether the event is about a transactional producer and a coordinator."""
    is_initialization = event.f == "init-producer-id" and event.transactional_id is not None
    return is_initialization or event.f in {*_REQUESTS, "fetch-stable-offset"}


def producer_request(event: Event) -> str:
    """Return the clause of a request or of its end."""
    request = f"{event.process}'s request {_request(event)}"
    match event.kind:
        case Kind.INVOKE:
            return f"{event.process} asked {_request(event)}"
        case Kind.FAIL:
            return f"{request} certainly failed ({event.error})"
        case Kind.INFO:
            return f"{request} ended without a certain outcome ({event.error})"
    if event.f == "init-producer-id":
        return f"{event.process} became {producer(event)}"
    if event.f == "fetch-stable-offset":
        return f"{request} was answered with offset {event.offset}"
    return f"{request} succeeded"


def transaction_begun(event: Event) -> str:
    """Return the clause of a transaction's beginning."""
    return f"{event.process} began {transaction(event)}"


def transaction(event: Event) -> str:
    """Name the transaction of an event."""
    return f"transaction {event.transaction} as {producer(event)}"


def producer(event: Event) -> str:
    """Name the producer of an event."""
    identity = f"producer {event.producer_id} of {event.transactional_id}"
    return f"{identity} in epoch {event.producer_epoch}"


def _request(event: Event) -> str:
    if event.f == "init-producer-id":
        return f"to become the producer of {event.transactional_id}"
    partition = tp(event.topic, event.partition)
    if event.f == "fetch-stable-offset":
        return f"for the committed offset of {partition} in group {event.group}"
    request = f"{_REQUESTS[event.f or '']} {transaction(event)}"
    if event.f == "send-offset":
        return f"{request}: offset {event.offset} of {partition} in group {event.group}"
    return request
