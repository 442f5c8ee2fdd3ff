"""An entry of the list of known behaviour, and the evidence by which an instance of it differs from a new finding.

A property and a version alone would hide new bugs behind old ones. So an entry names partitions, from evidence that
does not come from the findings: the intent of a fault, or what a broker has logged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final

import msgspec

from nemesis.checkers.framework.model import Finding
from nemesis.checkers.framework.segment import Segment
from nemesis.history.events import Event, Kind
from nemesis.history.reader import open_history
from nemesis.history.run_directory import RunDirectory
from nemesis.support.node_names import node_of

Release = tuple[int, ...]
"""Major, minor and patch number."""
REFERENCE: Final[Release] = (3, 9, 1)
"""The release as which the reference behaves, with ZooKeeper."""


class Evidence:
    """What a run shows beside its findings."""

    def __init__(self, run: RunDirectory) -> None:
        self._run = run
        self._info = run.read_info()

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
    def begun_faults(self) -> tuple[Event, ...]:
        """The ``fault-invoke`` events, with ``fault`` and ``detail``."""
        columns = ["time", "process", "kind", "seq", "fault", "targets", "detail"]
        segments = (
            Segment.of(group, columns) for group in open_history(self._run.history).row_groups
        )
        return tuple(
            event
            for segment in segments
            for _, event in segment.only({Kind.FAULT_INVOKE}).events("fault", "targets", "detail")
        )

    def broker_logs(self) -> Iterator[Path]:
        """Yield the files of what the brokers have logged, those that there are."""
        for number in range(1, self._info.brokers + 1):
            file = self._run.path / "logs" / f"{node_of(number)}.log"
            if file.is_file():
                yield file


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
    partitions: Callable[[Evidence], frozenset[str]]
    """Returns the partitions in which the run shows it, as findings name them: ``orders-0-1``."""
    is_shown_by: Callable[[Finding], bool] = lambda finding: True  # noqa: ARG005
    """Whether a finding looks like it, beside its property and partition."""
    is_documented: bool = True
    """Whether Kafka's project documents it; otherwise it is a bug that we suspect, and counts unless asked."""

    def holds_for(self, release: Release | None) -> bool:
        """Return whether brokers of this release behave so; not if the release is not known."""
        if release is None:
            return False
        return self.first <= release and release[: len(self.last)] <= self.last


def detail_of(event: Event) -> dict[str, object]:
    """Return the JSON object in ``detail``; empty if it has another form."""
    try:
        return msgspec.json.decode(event.detail or "{}", type=dict[str, object])
    except msgspec.MsgspecError:
        return {}
