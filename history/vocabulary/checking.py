"""Whether an event has the columns that its kind declares.

Simulation and tests check every event as it is recorded (``CheckingRecorder``). Real runs do not: their recorders cost
one JSON encoding and one ``write()`` per event.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import msgspec

from nemesis.history.events import Event, Kind
from nemesis.history.recorder import Recorder
from nemesis.history.vocabulary import (
    brokers,
    clients,
    controller,
    faults,
    foreign,
    groups,
    harness,
    replication,
    transactions,
    zookeeper,
)
from nemesis.history.vocabulary.declaring import (
    OUR_CLIENTS,
    View,
    by_kind,
    declarations,
)

MODULES = (
    *(clients, groups, transactions),
    *(brokers, controller, replication, zookeeper, faults, harness, foreign),
)
"""All modules that declare kinds."""


class WrongEventError(TypeError):
    """An event does not have the columns that its kind declares."""


class Vocabulary:
    """The declarations of the histories of one workload."""

    def __init__(self, workload: str = OUR_CLIENTS) -> None:
        """``workload``: of a history of another system; the default is a history of our own runs."""
        self._views: Mapping[tuple[str, str | None], type[View]] = by_kind(declarations(), workload)
        self.other: type[View] | None = foreign.OtherOperation if workload else None
        """The declaration of all other functions, in histories of other systems."""

    def view_of(self, kind: str, f: str | None) -> type[View]:
        """Return the declaration of a kind, and of a function if it has one; raises WrongEventError."""
        view = self._views.get((kind, f), self.other)
        if view is None:
            label = kind if f is None else f"{kind} of {f}"
            raise WrongEventError(f"{label}: expected a declared kind of event, got an unknown one")
        return view

    def check(self, columns: Mapping[str, Any]) -> None:
        """Raise WrongEventError if these columns are not those of their kind: one is unknown, missing, or wrong."""
        view = self.view_of(columns["kind"], columns.get("f"))
        try:
            msgspec.convert(columns, view, strict=True)
        except msgspec.ValidationError as error:
            raise WrongEventError(f"{columns['kind']}: {error}, got {dict(columns)}") from None


class CheckingRecorder(Recorder):
    """A recorder that accepts only events with the columns of their kind.

    A *shape* is a kind, a function, and the names and types of columns. The first event of a shape is checked in full,
    elements of lists included; later events of the shape are accepted, because simulation records many.
    """

    _vocabulary = Vocabulary()
    _accepted: ClassVar[set[tuple[Any, ...]]] = set()
    """Shapes."""

    def write(self, kind: Kind, columns: dict[str, Any]) -> Event:
        """Write one event and return it; raises WrongEventError before anything is written."""
        shape = (kind, columns.get("f"), *columns, *map(type, columns.values()))
        if shape not in self._accepted:
            self._vocabulary.check({"time": 0, "process": "", "kind": kind._value_, **columns})
            self._accepted.add(shape)
        return super().write(kind, columns)
