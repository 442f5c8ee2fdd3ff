"""Writing a history while the run lasts: JSON lines, one ``write()`` per event.

A line is handed to the operating system before ``record`` returns, so a process that is killed with SIGKILL
has lost nothing that anybody else could have seen the effect of. The file is opened with ``O_APPEND`` and
never buffered. A line that an earlier life left torn is ended first, so that it costs only itself.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from nemesis.history.events import Event, Kind

Clock = Callable[[], int]
"""Returns the event time in nanoseconds."""

Sink = Callable[[bytes], object]
"""Takes one encoded line, newline included, and has written it when it returns."""


class Recorder:
    """Stamps events with the time and the process that saw them, and writes each at once."""

    def __init__(
        self,
        sink: Sink,
        *,
        process: str,
        clock: Clock,
        node: int | None = None,
        incarnation: int | None = None,
    ) -> None:
        self._sink = sink
        self._process = process
        self._clock = clock
        self._node = node
        self._incarnation = incarnation
        self._seq = 0
        self._encoder = msgspec.json.Encoder()

    def record(self, kind: Kind, /, **columns: Any) -> Event:
        """Write one event and return it. ``columns`` are fields of ``Event``; a wrong name is a TypeError."""
        return self.write(kind, columns)

    def write(self, kind: Kind, columns: dict[str, Any]) -> Event:
        """``record`` for whoever has the columns in a dictionary to give away: it is written to."""
        # One dictionary from end to end: an event is written for every step, so a microsecond here is one per step.
        columns["time"] = self._clock()
        columns["kind"] = kind._value_
        columns["seq"] = self._seq
        columns["incarnation"] = self._incarnation
        if "process" not in columns:
            columns["process"] = self._process
        if "node" not in columns:
            columns["node"] = self._node
        event = Event(**columns)
        self._seq += 1
        self.store(event)
        return event

    def store(self, event: Event) -> None:
        """Write an event to the sink; a recorder in memory overrides this."""
        self._sink(self._encoder.encode(event) + b"\n")


class FileSink:
    """An append-only file; each call is one ``write()``. Raises OSError when the file cannot be written."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._fd = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
        size = os.fstat(self._fd).st_size
        if size and os.pread(self._fd, 1, size - 1) != b"\n":
            self(b"\n")

    def __call__(self, line: bytes) -> None:
        written = os.write(self._fd, line)
        while written < len(line):
            written += os.write(self._fd, line[written:])

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
