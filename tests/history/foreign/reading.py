"""Histories from elsewhere as tests write them: a few lines of text, and the events that they become."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from nemesis.history.events import Event
from nemesis.history.foreign.importing import ForeignFile, events_and_lines, read_file
from nemesis.history.foreign.names import Names


def read(text: str) -> ForeignFile:
    """Return what a file of this text says."""
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "history.edn"
        file.write_text(text, encoding="utf-8")
        return read_file(file)


def events_of(file: ForeignFile, workload: str, names: Names) -> Iterator[Event]:
    """Yield the events of a file's operations; adds to the file's problems."""
    for event, _ in events_and_lines(file, workload, names):
        yield event


def events(text: str, workload: str, names: Names | None = None) -> list[Event]:
    """Return the events of a history, in order of time."""
    result = events_of(read(text), workload, Names() if names is None else names)
    return sorted(result, key=lambda event: (event.time, event.seq))


def problems(text: str, workload: str = "register") -> list[str]:
    """Return what is wrong with a history."""
    file = read(text)
    list(events_of(file, workload, Names()))
    return file.problems.sentences()


def notes(text: str, workload: str = "register") -> list[str]:
    """Return the notes on how a history was read."""
    file = read(text)
    list(events_of(file, workload, Names()))
    return file.problems.notes()


def columns(event: Event, *left_out: str) -> dict[str, Any]:
    """Return what an event says, unset columns and these left out."""
    said: dict[str, Any] = msgspec.to_builtins(event)
    return {name: value for name, value in said.items() if name not in left_out}


def rows(text: str, workload: str) -> list[tuple[Any, ...]]:
    """Return (kind, f, key, value or values) of each event, in order of time."""
    return [(event.kind, event.f, event.key, _said(event)) for event in events(text, workload)]


def _said(event: Event) -> object:
    """Return the value of an operation, however its function has it."""
    if event.micro_operations is not None:
        return event.micro_operations
    return event.value if event.values is None else event.values
