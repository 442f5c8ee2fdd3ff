"""A property: one promise of the system under test, and everything that is known about it in one object.

A property's module defines the check that decides it and then the ``Property`` itself. Every list derives from the
registered properties (``nemesis.checkers.CHECKERS``): the command line, reports, JUnit, ``docs/properties.md`` and
``docs/findings.md``. One check may decide several properties; each of them names that check.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from nemesis.checkers.framework.reason import Reason, SeekCause
from nemesis.history.events import Event

History = tuple[Event, ...]
"""The events of a tiny history, in any order."""


class Check(ABC):
    """What every shape of check (``nemesis.checkers.framework.fold``) has."""

    kinds: ClassVar[frozenset[str]]
    """The kinds of events that the engine gives to the check."""
    columns: ClassVar[tuple[str, ...]]
    """The columns that the check reads, in addition to ``time``, ``process``, ``kind`` and ``seq``."""

    @classmethod
    @abstractmethod
    def properties(cls) -> tuple[Property, ...]:
        """Return the properties that the check decides: it returns one result for each."""

    @property
    def name(self) -> str:
        """The names of the check's properties, for messages; the property's own name if there is one."""
        return ", ".join(property_names(self))


@dataclass(frozen=True, slots=True, kw_only=True)
class Property:
    """One promise, and how a history proves or refutes it."""

    name: str
    """The name on the command line and in results, e.g. ``hw-bounded``."""
    promise: str
    """The promise in one plain sentence."""
    unit: str = "events"
    """What ``Result.checked`` counts, in the plural."""
    unknown: str
    """When the verdict is ``unknown``, as one sentence; a history without any of ``needs`` always is."""
    source: str
    """Where the promise comes from: a KIP, an issue, a paper, a class of Kafka."""
    check: type[Check]
    """The check that decides the property."""
    recorded_since: int = 2
    """The first format of events whose runs record what the property needs. It does not judge runs of older formats."""
    reason: Reason | None = None
    """Says why the events of a finding contradict the promise; ``None`` where the check gives all steps itself."""
    reason_covers_excuses: bool = False
    """Whether ``reason`` also says why a finding with the verdict ``valid`` is allowed."""
    cause: SeekCause | None = None
    """Names the cause of a violation, where its own events show only the symptom (``nemesis.checkers.causes``)."""
    is_self_evident: bool = False
    """Whether a finding holds however many operations the history lacks: its events alone contradict the promise."""
    breaks: tuple[History, ...] = ()
    """The smallest histories that break the property, the smallest first; each breaks it in another way."""

    @property
    def needs(self) -> frozenset[str]:
        """The kinds of events that the check reads."""
        return self.check.kinds

    @property
    def summary(self) -> str:
        """The line about the property in ``nemesis list``."""
        return self.promise


def property_names(check: Check | type[Check]) -> tuple[str, ...]:
    """Return the names of the properties that a check decides."""
    return tuple(decided.name for decided in check.properties())
