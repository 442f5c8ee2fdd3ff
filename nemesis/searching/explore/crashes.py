"""Crashed seeds: what is known of each goes into a file of its own in the store."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from nemesis.history.run_directory import write_atomically


@dataclass(frozen=True, slots=True)
class Crash:
    """How a seed took its worker down, or why it was ended."""

    reason: str
    """One line."""
    trace: str = ""
    """The stack trace, when an exception ended it."""
    output: str = ""
    """The end of the worker's standard error."""
    run: str = ""
    """Seed and plan, when the command that repeats the run does not state them."""
    file: str | None = None
    """Where the harness wrote all this; empty when it could not."""


def stored(crash: Crash, name: str, command: str, folder: Path) -> Crash:
    """Write the crash into ``folder`` and return it with its file, without one when it cannot be written."""
    parts = [crash.reason, f"repeat it: {command}"]
    parts += [part for part in (crash.run, crash.trace, crash.output) if part]
    file = folder / f"crashed-{name}.txt"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_atomically(file, ("\n\n".join(parts).rstrip() + "\n").encode())
    except OSError:
        return crash  # the reason is told anyway
    return replace(crash, file=str(file))
