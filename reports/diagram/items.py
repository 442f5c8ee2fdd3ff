"""What a message diagram consists of: stops in columns, joined by arrows.

An item is a chain of stops. One stop is a note (a broker is elected, a fault strikes); two or more are a message on its
way (sent, handled; sent, appended, acknowledged, answered). Every stop gets a row of its own, so that no label can lie
on another.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import IntEnum, StrEnum
from typing import Final

from nemesis.history.events import Event

CLIENTS: Final = "clients"
ZOOKEEPER: Final = "ZooKeeper"

Identity = tuple[str, str, int, int | None, int]


class Rank(IntEnum):
    """What to leave out last."""

    PROOF = 0
    TURN = 1
    """What turns the course of things: elections of controllers, sessions, processes, faults."""
    SUBJECT = 2
    """About the partition, or by and to the brokers, that the finding is about."""
    CONTROL = 3
    DATA = 4
    """Records on their way."""


class Tone(StrEnum):
    """How a stop looks."""

    PLAIN = "plain"
    GOOD = "good"
    BAD = "bad"
    FAULT = "fault"


@dataclass(frozen=True, slots=True)
class Stop:
    """A place and a time of an item, and what is written there."""

    time: int
    """Nanoseconds, on the clock of the history."""
    column: str
    text: str = ""
    tone: Tone = Tone.PLAIN
    event: Identity | None = None
    shares_row: bool = False
    """Drawn half a row above the next stop instead of in a row of its own: a turning point, without text."""


@dataclass(frozen=True, slots=True)
class Item:
    """A note or a message."""

    stops: tuple[Stop, ...]
    rank: Rank
    epoch: int | None = None
    """The controller epoch or leader epoch that it carries; arrows are coloured by it."""
    burst: tuple[object, ...] | None = None
    """Equal items shortly after one another are drawn once, with their number; None: never."""
    lost_to: str | None = None
    """The column that it was sent to, when no arrival is recorded."""
    count: int = 1

    @property
    def start(self) -> int:
        return self.stops[0].time

    @property
    def rows(self) -> int:
        return sum(not stop.shares_row for stop in self.stops)


@dataclass(frozen=True, slots=True)
class Bar:
    """A fault in force on one column."""

    column: str
    label: str
    start: int
    stop: int | None
    """None: to the end."""


@dataclass(frozen=True, slots=True)
class Scene:
    """All that is drawn."""

    items: Sequence[Item]
    columns: Sequence[str]
    bars: Sequence[Bar] = field(default=())
    left_out: int = 0


def identity(event: Event) -> Identity:
    """Return what tells this event from every other of its history."""
    return (
        event.process,
        event.kind,
        event.time,
        event.zxid if event.time < 0 else None,
        event.seq,
    )
