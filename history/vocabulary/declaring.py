"""How a kind of event is declared: as a class whose fields are the kind's columns.

The class is the declaration and the typed view in one. Its docstring says what the event records, its fields which
columns the event has: a field without a default is required. A field has the type that the column has in
``nemesis.history.events.Event``; the docstring under it says what the column means in this kind, where the kind
narrows the meaning.

An operation of a client is declared once for each function: the columns of its invocation. Its completions have the
same columns; a ``fail`` or an ``info`` has ``error`` too, and an ``ok`` what the class declares that ``answers``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Self, TypeVar

import msgspec

from nemesis.history.events import Event, Kind, Milliseconds, Nanoseconds, Word

OUR_CLIENTS: Final = ""
"""The workload of the operations that our own clients record: their functions mean the same in each."""


class View(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, gc=False):
    """An event as its kind declares it; the columns that every event may have."""

    time: Nanoseconds
    process: Word
    kind: Word
    seq: int = 0
    incarnation: Nanoseconds | None = None
    node: int | None = None

    @classmethod
    def of(cls, event: Event) -> Self | None:
        """Return the event as this view; None if the event lacks a column that this kind requires.

        The caller knows the kind. Runs of older versions, and damaged ones, may lack columns.
        """
        try:
            return msgspec.convert(event, cls, from_attributes=True)
        except msgspec.ValidationError:
            return None


class PartitionView(View, frozen=True, kw_only=True):
    """An event about one partition of a topic."""

    topic: Word
    partition: int
    topic_id: Word | None = None


@dataclass(frozen=True, slots=True)
class Declaration:
    """One kind of event, or one end of an operation."""

    kind: Kind
    view: type[View]
    f: str | None = None
    """The function, of an operation of a client."""
    workloads: tuple[str, ...] = (OUR_CLIENTS,)
    """The workloads of other systems' histories in which the operation occurs."""


_DECLARED: Final[list[Declaration]] = []
_V = TypeVar("_V", bound=type[View])


def declares(*kinds: Kind) -> Callable[[_V], _V]:
    """Return what declares a class as the columns of these kinds."""

    def declare(view: _V) -> _V:
        _DECLARED.extend(Declaration(kind, view) for kind in kinds)
        return view

    return declare


_WAITED: Final = ("duration_ms", Milliseconds | None, None)
"""How long the client waited, if its last request had no answer."""


def invokes(*functions: str, workloads: Iterable[str] = (OUR_CLIENTS,)) -> Callable[[_V], _V]:
    """Return what declares a class as the columns of an operation, except what its ``ok`` adds.

    ``workloads``: those of other systems' histories in which the functions have these columns.
    """
    names = tuple(workloads)

    def declare(view: _V) -> _V:
        ended: Any = msgspec.defstruct(
            f"{view.__name__}Ended",
            [("error", Word), _WAITED] if OUR_CLIENTS in names else [("error", Word | None, None)],
            bases=(view,),
            frozen=True,
            kw_only=True,
            forbid_unknown_fields=True,
            gc=False,
        )
        for f in functions:
            _DECLARED.append(Declaration(Kind.INVOKE, view, f, names))
            _DECLARED.append(Declaration(Kind.FAIL, ended, f, names))
            _DECLARED.append(Declaration(Kind.INFO, ended, f, names))
        return view

    return declare


def answers(*functions: str, workloads: Iterable[str] = (OUR_CLIENTS,)) -> Callable[[_V], _V]:
    """Return what declares a class as the columns of an operation that succeeded."""
    names = tuple(workloads)

    def declare(view: _V) -> _V:
        _DECLARED.extend(Declaration(Kind.OK, view, f, names) for f in functions)
        return view

    return declare


def declarations() -> tuple[Declaration, ...]:
    """Return all declarations, in the order of the modules that make them."""
    return tuple(_DECLARED)


def columns_of(*views: type[View]) -> tuple[str, ...]:
    """Return the columns of these views, each once: what a check names that reads its events as them."""
    return tuple(dict.fromkeys(name for view in views for name in view.__struct_fields__))


def by_kind(listed: Iterable[Declaration], workload: str) -> Mapping[tuple[str, str | None], Any]:
    """Return the view of each kind, or kind and function, as it is in the histories of a workload."""
    return {
        (item.kind.value, item.f): item.view
        for item in listed
        if item.f is None or workload in item.workloads
    }
