"""The record of a simulated run: every event of every process, in memory, in the order in which they happened.

SimulationResult time is strictly increasing from event to event, so this order is the order of time. Nothing is written
before the run is over; ``store`` of ``nemesis.running.simulated.run`` makes files of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import msgspec

from nemesis.history.events import Event, Kind
from nemesis.history.recorder import Clock, Recorder
from nemesis.history.vocabulary.checking import CheckingRecorder, WrongEventError
from nemesis.history.znodes import PROCESS as ZOOKEEPER
from nemesis.history.znodes import ZnodeEvents
from nemesis.history.zookeeper_log import Transaction
from nemesis.simulation.incarnation import Incarnation


class Entry(msgspec.Struct, frozen=True, gc=False):
    """An event and the file of a run's directory in which it belongs."""

    file: str
    event: Event


class MemoryRecord:
    """Implements ``nemesis.running.record.Record``, and makes the tracers of the brokers."""

    def __init__(self, clock: Clock, observer: Callable[[Event], None] | None = None) -> None:
        """``onlooker`` is shown every event, and must not touch the simulation."""
        self._clock = clock
        self._observer = observer
        self._watchers: list[Callable[[Event], None]] = []
        self._is_sealed = self._has_transactions = False
        self.entries: list[Entry] = []
        self.phases: list[str] = []
        self.wrong_event: str | None = None
        """What is wrong with the first event that its kind does not allow; None: all events are right."""

    def recorder(self, process: str, file: str) -> Recorder:
        return _MemoryRecorder(self, file, process=process, clock=self._clock)

    def tracer(self, process: str, node: int, incarnation: Incarnation) -> IncarnationTracer:
        """Return the tracer of one incarnation of a broker; its events carry the present time as incarnation."""
        recorder = _MemoryRecorder(
            self,
            process,
            process=process,
            clock=self._clock,
            node=node,
            incarnation=self._clock(),
        )
        return IncarnationTracer(recorder, incarnation)

    def set_transactions(self, transactions: Sequence[Transaction]) -> None:
        """Add what ZooKeeper has committed, as ``nemesis.history.ingest`` reads it from the log of a real one; once."""
        if not self._has_transactions:
            self._has_transactions = True
            events = ZnodeEvents().events(transactions)
            self.entries += [Entry(ZOOKEEPER, event) for event in events]

    def seal(self) -> None:
        """Take no more events: what is taken down after the run is no part of it."""
        self._is_sealed = True

    def store(self, entry: Entry) -> None:
        """Add an event."""
        if self._is_sealed:
            return
        self.entries.append(entry)
        if self._observer is not None:
            self._observer(entry.event)
        for watch in self._watchers:
            watch(entry.event)

    @contextmanager
    def watched(self, watch: Callable[[Event], None]) -> Iterator[None]:
        """Call ``watch`` with every event until the end of the block; it may wake a task of the harness."""
        self._watchers.append(watch)
        try:
            yield
        finally:
            self._watchers.remove(watch)

    def phase(self, name: str) -> None:
        self.phases.append(name)

    def close(self) -> None:
        """There is nothing to close."""


class IncarnationTracer:
    """Implements ``nemesis.reference.trace.Tracer`` for one incarnation: the dead tell nothing."""

    def __init__(self, recorder: Recorder, incarnation: Incarnation) -> None:
        self._write = recorder.write
        self._incarnation = incarnation

    def event(self, kind: Kind, /, **columns: Any) -> None:
        incarnation = self._incarnation
        if incarnation.actions_left is not None:
            incarnation.act()
        if not incarnation.is_dead:
            self._write(kind, columns)


class _MemoryRecorder(CheckingRecorder):
    """Keeps events instead of lines."""

    def __init__(
        self,
        record: MemoryRecord,
        file: str,
        *,
        process: str,
        clock: Clock,
        node: int | None = None,
        incarnation: int | None = None,
    ) -> None:
        super().__init__(_no_line, process=process, clock=clock, node=node, incarnation=incarnation)
        self._record = record
        self._file = file

    def write(self, kind: Kind, columns: dict[str, Any]) -> Event:
        """Record an event and return it; a wrong one is noted, too, because the node may survive the error."""
        try:
            return super().write(kind, columns)
        except WrongEventError as error:
            self._record.wrong_event = self._record.wrong_event or str(error)
            raise

    def store(self, event: Event) -> None:
        self._record.store(Entry(self._file, event))


def _no_line(line: bytes) -> None:
    raise AssertionError(f"a line was written: {line!r}")
