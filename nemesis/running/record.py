"""Where a run writes down what it sees: in the run's directory, line by line, or in memory.

A record hands out recorders by process name; the recorders of one file share its sink, so that each line is one write.
"""

from __future__ import annotations

from typing import Final, Protocol

import msgspec

from nemesis.history.recorder import Clock, FileSink, Recorder
from nemesis.history.run_directory import RunDirectory

NS: Final = 1_000_000_000
END: Final = "end"
"""The last phase has no length: from then on the cluster is stopped and its records are brought in."""
STOP: Final = "stop"


class Record(Protocol):
    """The harness's side of a history, and how far the run has got."""

    def recorder(self, process: str, file: str) -> Recorder:
        """Return a recorder that writes the events of ``process`` into ``file`` (``clients``, ``nemesis``, ...)."""

    def phase(self, name: str) -> None:
        """Note that a phase begins, for whoever reads the run later."""

    def close(self) -> None: ...


class FileRecord:
    """The record of a run in its directory."""

    def __init__(self, directory: RunDirectory, clock: Clock) -> None:
        self._directory = directory
        self._clock = clock
        self._sinks: dict[str, FileSink] = {}
        self._phases: list[str] = []
        self._durations_s: dict[str, float] = {}
        self._began_ns = clock()

    def recorder(self, process: str, file: str) -> Recorder:
        if file not in self._sinks:
            self._sinks[file] = FileSink(self._directory.raw_file(file))
        return Recorder(self._sinks[file], process=process, clock=self._clock)

    def phase(self, name: str) -> None:
        self._end_phase()
        self._phases.append(name)
        self._write_down()

    def close(self) -> None:
        self._end_phase()
        self._write_down()
        for sink in self._sinks.values():
            sink.close()

    def _end_phase(self) -> None:
        now = self._clock()
        for last in self._phases[-1:]:
            name = STOP if last == END else last
            self._durations_s[name] = round((now - self._began_ns) / NS, 3)
        self._began_ns = now

    def _write_down(self) -> None:
        info = self._directory.read_info()
        self._directory.write_info(
            msgspec.structs.replace(
                info, phases=list(self._phases), durations_s=dict(self._durations_s)
            )
        )
