"""Operations of administrators: how a check gets at them, and how a model of what must be true follows them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from nemesis.checkers.framework.event_list import EventListCheck, Row
from nemesis.checkers.framework.segment import Segment
from nemesis.checkers.possible import Effect, Possible, State
from nemesis.history.events import Event, Kind

CLIENT_KINDS = frozenset({Kind.INVOKE, Kind.OK, Kind.FAIL, Kind.INFO})


class Administered(EventListCheck):
    """A fold over some client operations and other rare events; sends and polls, which are many, are left out early."""

    operations: ClassVar[frozenset[str]]
    """The values of ``f`` that it is given."""

    def reduce(self, segment: Segment) -> list[Row]:
        wanted = ~segment.is_kind(*CLIENT_KINDS) | segment.is_word("f", self.operations)
        return super().reduce(segment.where(wanted)) if wanted.any() else []


def in_time(rows: Iterable[Row]) -> list[Row]:
    """The client operations among the rows, in the order of their events."""
    operations = [(row, event) for row, event in rows if event.kind in CLIENT_KINDS]
    return sorted(operations, key=lambda item: (item[1].time, item[1].process, item[1].seq))


def follow(possible: Possible[State, Effect], event: Event, effect: Effect) -> bool:
    """Tell a model of one event of an operation; returns False for a success that cannot be."""
    operation = (event.process, event.op)
    if not possible.is_pending(operation):  # a torn history may lack the invocation
        possible.invoked(operation, effect)
    if event.kind == Kind.INVOKE:
        return True
    if event.kind == Kind.FAIL:
        possible.failed(operation)
    elif event.kind == Kind.INFO:
        possible.in_doubt(operation)
    else:
        return possible.succeeded(operation)
    return True
