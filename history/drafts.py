"""Files and directories of an ingestion under temporary names: each gets its name when it is complete.

A Spark cluster may run a task twice, even at the same time, and a process may be killed at any time. So a task writes
under a name that contains its machine and process, and an ingestion works in a directory named after its process.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from socket import gethostname
from typing import Final

from nemesis.history.errors import MissingHistoryError
from nemesis.history.run_directory import RunDirectory

_PREFIX: Final = ".history-"
"""Followed by the number of the process that ingests."""


def draft_directory(run: RunDirectory) -> Path:
    """Return the directory in which this process ingests a run; the directory may not exist yet."""
    return run.path / f"{_PREFIX}{os.getpid()}"


def _is_running(owner: str) -> bool:
    import psutil  # takes longer than a small check, which has no drafts of other processes

    return owner.isdigit() and bool(psutil.pid_exists(int(owner)))


def remove_drafts(run: RunDirectory) -> None:
    """Remove the directories of processes that were killed while they ingested; keep those of running processes."""
    for draft in run.path.glob(f"{_PREFIX}*"):
        owner = draft.name.removeprefix(_PREFIX)
        if owner == str(os.getpid()) or not _is_running(owner):
            shutil.rmtree(draft, ignore_errors=True)


@contextmanager
def complete_file(path: Path) -> Iterator[Path]:
    """Yield a name that only this task writes to; the file gets its own name when the context ends without an error."""
    if not path.parent.is_dir():
        raise MissingHistoryError(
            f"{path.parent} is missing on {gethostname()}: all machines of a Spark cluster must see a run "
            "under the same path"
        )
    draft = path.with_name(f"{path.name}.{gethostname()}-{os.getpid()}")
    yield draft
    draft.replace(path)
