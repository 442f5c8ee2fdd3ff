"""A property: one promise of the system under test, and everything that is known about it in one object.

A property's module defines the check that decides it and then the ``Property`` itself. Every list derives from the
registered properties (``nemesis.checkers.CHECKERS``): the command line, reports, JUnit, ``docs/properties.md`` and
``docs/findings.md``. One check may decide several properties; each of them names that check.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection
from dataclasses import dataclass
from typing import ClassVar, Final

from nemesis.checkers.framework.reason import Reason, SeekCause
from nemesis.history.events import Event
from nemesis.history.sources import STAND_INS, EventSource, source_of

ONLY_TRACES: Final = frozenset({EventSource.TRACES})

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


def see_only(check: Check, sources: Collection[EventSource]) -> None:
    """Give a check events of these sources alone. Events of others are there in part, if at all."""
    accepted = frozenset(source for decided in check.properties() for source in decided.stand_ins)
    visible = _standing_in(sources, accepted)
    vars(check)["kinds"] = frozenset(kind for kind in check.kinds if source_of(kind) in visible)


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
    decided_from: frozenset[EventSource]
    """The sources without any one of which the property is not observed: its check would convict, or see nothing."""
    completed_by: frozenset[EventSource] = frozenset()
    """The sources that decide the rest of the promise: without one of them a violation is certain, its absence not."""
    stand_ins: frozenset[EventSource] = frozenset()
    """Those of ``STAND_INS`` that the check can read instead. The metadata logs of a KRaft quorum decide all that
    ZooKeeper's transaction log does; what Kafka brokers log decides the promise in part."""
    stands_in_for: str = ""
    """The exact property of which this one is a sample. It is judged only where brokers do not trace: a violation is
    certain, its absence is not."""
    is_of_quorum: bool = False
    """Whether it is about a KRaft quorum: it is not judged, nor listed, where a cluster has none."""
    workloads: frozenset[str] = frozenset()
    """The workloads whose runs are judged; empty: those of all. Runs of others have no events that it judges."""
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

    def not_observed_without(self, observed: Collection[EventSource]) -> tuple[EventSource, ...]:
        """Return the sources that the property needs and that are not among the observed ones."""
        return _missing(self.decided_from, _standing_in(observed, self.stand_ins))

    def incomplete_without(self, observed: Collection[EventSource]) -> tuple[EventSource, ...]:
        """Return the sources that would decide the rest of the promise and are not among the observed ones."""
        return _missing(self.wanted_in_addition, observed)

    @property
    def wanted_in_addition(self) -> frozenset[EventSource]:
        """``completed_by``, and traces for a sample and for what logs of brokers decide: both tell less."""
        tells_less = self.stands_in_for or EventSource.BROKER_LOGS in self.stand_ins
        return self.completed_by | (ONLY_TRACES if tells_less else frozenset())

    @property
    def summary(self) -> str:
        """The line about the property in ``nemesis list``: the promise, and the sources that decide it."""
        return f"{self.promise} ({self.extent})"

    @property
    def extent(self) -> str:
        """The sources that decide the property: ``from metadata-log; in part without traces``."""
        extent = f"from {_listed(self.decided_from)}"
        for stand_in in sorted(self.stand_ins):
            original = STAND_INS[stand_in].value
            extent = extent.replace(original, f"{original} or {stand_in.value}")
        if self.wanted_in_addition:
            extent += f"; in part without {_listed(self.wanted_in_addition)}"
        return extent


def _standing_in(
    observed: Collection[EventSource], accepted: Collection[EventSource]
) -> set[EventSource]:
    """Return the observed sources, and those for which an observed and accepted one stands in."""
    return {*observed, *(STAND_INS[source] for source in observed if source in accepted)}


def _listed(sources: Collection[EventSource]) -> str:
    return ", ".join(source.value for source in EventSource if source in sources)


def _missing(
    wanted: Collection[EventSource], observed: Collection[EventSource]
) -> tuple[EventSource, ...]:
    return tuple(source for source in EventSource if source in wanted and source not in observed)


def property_names(check: Check | type[Check]) -> tuple[str, ...]:
    """Return the names of the properties that a check decides."""
    return tuple(decided.name for decided in check.properties())
