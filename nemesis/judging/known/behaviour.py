"""An entry of the list of known behaviour, and the evidence by which an instance of it differs from a new finding.

A property and a version alone would hide new bugs behind old ones. So an entry has a test that compares a finding with
evidence that does not come from the findings: a fault and what it was measured to do, or what a broker has logged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import msgspec

from nemesis.checkers.framework.model import Finding
from nemesis.checkers.framework.segment import Segment
from nemesis.history.events import Event, Kind
from nemesis.history.reader import History, open_history
from nemesis.history.run_directory import RunDirectory
from nemesis.history.vocabulary.faults import MEASURED
from nemesis.support.node_names import node_of

Release = tuple[int, ...]
"""Major, minor and patch number."""
REFERENCE: Final[Release] = (3, 9, 1)
"""The release as which the reference behaves, with ZooKeeper."""
_COLUMNS: Final = ("fault_id", "targets", "effect", "detail")


@dataclass(frozen=True, slots=True)
class AppliedFault:
    """A fault that had its effect."""

    began_ns: int
    """When it was about to be applied."""
    applied_ns: int
    """When its effect had been measured."""
    intent: Mapping[str, Any]
    """What was about to be done."""
    measured: Mapping[str, Any]
    """What was measured, by the names of the nodes."""


class Evidence:
    """What a run shows beside its findings."""

    def __init__(self, run: RunDirectory, history: History | None = None) -> None:
        """``history``: of the run that is judged, if it is not the stored one."""
        self._run = run
        self._info = run.read_info()
        self._given = history

    @property
    def release(self) -> Release | None:
        """The release of Kafka; None if the run does not say which (``--kafka-home``, another system)."""
        if self._info.foreign:
            return None
        if self._info.target == "reference":
            return REFERENCE
        options = self._info.config.get("target_options") or {}
        parts = str(options.get("kafka-version", "")).split(".")
        return tuple(map(int, parts)) if all(part.isdigit() for part in parts) else None

    @cached_property
    def applied_faults(self) -> tuple[AppliedFault, ...]:
        """The faults whose effect was measured, in the order of their effects."""
        begun = {event.fault_id: event for event in self._events(Kind.FAULT_INVOKE, *_COLUMNS)}
        return tuple(
            AppliedFault(
                begun[event.fault_id].time,
                event.time,
                _object_in(begun[event.fault_id]),
                _object_in(event),
            )
            for event in self._events(Kind.FAULT_APPLIED, *_COLUMNS)
            if event.effect == MEASURED and event.fault_id in begun
        )

    @cached_property
    def deleted_topics(self) -> frozenset[str]:
        """The topics of which a client has requested the deletion: their names may stand for several topics."""
        asked = self._events(Kind.INVOKE, "f", "topic")
        return frozenset(
            event.topic for event in asked if event.f == "delete-topic" and event.topic
        )

    def broker_logs(self) -> Iterator[tuple[str, Path]]:
        """Yield the names of brokers, and the files of what they have logged, those that there are."""
        for number in range(1, self._info.brokers + 1):
            file = self._run.path / "logs" / f"{node_of(number)}.log"
            if file.is_file():
                yield node_of(number), file

    @cached_property
    def _history(self) -> History:
        return open_history(self._run.history) if self._given is None else self._given

    def _events(self, kind: Kind, *columns: str) -> Iterator[Event]:
        names = ["time", "process", "kind", "seq", *columns]
        for group in self._history.row_groups:
            for _, event in Segment.of(group, names).only({kind}).events(*columns):
                yield event


Test = Callable[[Finding], bool]
"""Returns whether a finding of the behaviour's properties is an instance of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownBehaviour:
    """Behaviour of some releases that breaks properties."""

    reference: str
    """A KIP, a number of Kafka's issue tracker, or one of our pages: what a reader looks up."""
    reason: str
    """One sentence: why the property is broken."""
    first: Release
    last: Release
    """The releases that have it, both included: (3, 9) stands for all of 3.9."""
    properties: frozenset[str]
    """The properties that it breaks."""
    test: Callable[[Evidence], Test]
    """Returns the test of findings that the evidence of a run permits."""
    is_documented: bool = True
    """Whether Kafka's project documents it; otherwise it is a bug that we suspect, and counts unless asked."""

    def holds_for(self, release: Release | None) -> bool:
        """Return whether brokers of this release behave so; not if the release is not known."""
        if release is None:
            return False
        return self.first <= release and release[: len(self.last)] <= self.last


def _object_in(event: Event) -> dict[str, Any]:
    """Return the JSON object in ``detail``; empty if it has another form."""
    try:
        return msgspec.json.decode(event.detail or "{}", type=dict[str, Any])
    except msgspec.MsgspecError:
        return {}
