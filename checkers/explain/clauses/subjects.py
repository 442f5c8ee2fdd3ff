"""Whom and what clauses are about."""

from __future__ import annotations

from nemesis.checkers.explain.words import tp
from nemesis.history.events import Event


def of(event: Event) -> str:
    """Return the partition or topic that an event is about."""
    return "everything" if event.topic is None else tp(event.topic, event.partition)


def actor(event: Event) -> str:
    """Return the broker, or the process without one, that an event is of."""
    return f"broker {event.node}" if event.node is not None else event.process
