"""Labels on everything that a run makes at the engine: whose it is, and whether its harness still lives.

A cluster that a person brings up from a run's compose file carries the run's label but no harness's, and is theirs to
end.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

import psutil

from nemesis.support.journal import ProcessRecord

RUN: Final = "nemesis.running.run"
NODE: Final = "nemesis.node"
TRACE: Final = "nemesis.trace"
"""The file in a broker's container that it writes its trace to; a broker without it writes none."""
HARNESS: Final = "nemesis.harness"
"""``PID START-TIME PID-NAMESPACE`` of the process that made it."""
DIRECTORY: Final = "nemesis.directory"
"""Of the run."""

PID_NAMESPACE: Final = Path("/proc/self/ns/pid")


def harness_labels(run_directory: Path) -> dict[str, str]:
    """Return what this process puts on everything that it makes."""
    own = ProcessRecord.of("harness", os.getpid())
    return {
        HARNESS: f"{own.pid} {own.created_s} {_pid_namespace()}",
        DIRECTORY: str(run_directory),
    }


def is_orphan(labels: Mapping[str, str]) -> bool:
    """Whether a harness made it that is known to be dead; what one of another pid namespace made is not known."""
    parts = labels.get(HARNESS, "").split()
    if RUN not in labels or len(parts) != 3 or parts[2] != _pid_namespace():
        return False
    with suppress(ValueError, psutil.AccessDenied):
        return ProcessRecord("harness", int(parts[0]), float(parts[1])).find() is None
    return False


def _pid_namespace() -> str:
    return str(PID_NAMESPACE.readlink())
