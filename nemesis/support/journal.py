"""The undo journal: what a run started on this machine, on disk before it can be forgotten.

Each run that starts processes or containers owns one JSON file in a private directory of the user. It names the
harness, the processes, the address lease, and the runs whose containers, networks and volumes are at the Docker
engine, where everything carries its run's id as a label. The file goes when the run has undone everything itself;
when the harness was killed the file stays, and ``nemesis clean`` undoes what it lists.

A pid alone identifies nothing, because the kernel uses pids again. A harness is (pid, start time). A process
of a run is (pid, start time) *and* the journal's name in its environment (``NEMESIS_JOURNAL``). The
environment also finds a child whose harness died between ``fork`` and the next write of the journal.
"""

from __future__ import annotations

import os
import stat
import tempfile
import uuid
from pathlib import Path
from typing import Final

import msgspec
import psutil

from nemesis.support.errors import MissingRequirement

MARKER: Final = "NEMESIS_JOURNAL"
"""The environment variable that every process of a run carries; its value is the journal's name."""

START_TIME_TOLERANCE_S: Final = 1.0
"""Start times are derived from the boot time, which moves when the wall clock is set."""


class ProcessRecord(msgspec.Struct, frozen=True):
    """One process. ``created_s`` is its start time in seconds since 1970, as the kernel tells it."""

    name: str
    pid: int
    created_s: float

    @classmethod
    def of(cls, name: str, pid: int) -> ProcessRecord:
        """Describe a process that exists; raises ``psutil.NoSuchProcess`` when it is gone."""
        return cls(name=name, pid=pid, created_s=psutil.Process(pid).create_time())

    def find(self) -> psutil.Process | None:
        """Return the very same process when it still runs (a zombie does not), else None."""
        try:
            process = psutil.Process(self.pid)
            same = abs(process.create_time() - self.created_s) < START_TIME_TOLERANCE_S
            return process if same and process.status() != psutil.STATUS_ZOMBIE else None
        except psutil.NoSuchProcess:
            return None


class JournalEntry(msgspec.Struct, frozen=True):
    """The content of one journal. ``leases`` are paths of lease files, ``engine_runs`` ids of runs at the engine."""

    name: str
    harness: ProcessRecord
    run_directory: str
    processes: tuple[ProcessRecord, ...] = ()
    leases: tuple[str, ...] = ()
    engine_runs: tuple[str, ...] = ()


class Journal:
    """The journal of a live run; each change is on disk when the method returns. One writer: the harness."""

    def __init__(self, path: Path, entry: JournalEntry) -> None:
        self.path = path
        self._entry = entry
        self._write()

    @classmethod
    def create(cls, run_directory: Path, *, directory: Path | None = None) -> Journal:
        """Start the journal of this process's run; raises ``MissingRequirement`` when it cannot be written."""
        folder = journals_directory(directory)
        name = f"{os.getpid()}-{uuid.uuid4().hex[:12]}"
        harness = ProcessRecord.of("harness", os.getpid())
        return cls(folder / f"{name}.json", JournalEntry(name, harness, str(run_directory)))

    @property
    def name(self) -> str:
        return self._entry.name

    @property
    def environment(self) -> dict[str, str]:
        """The environment of every process of this run: the caller's, with the marker."""
        return {**os.environ, MARKER: self.name}

    def add_process(self, name: str, pid: int) -> None:
        """Record a process just started. One that is already gone needs no undoing and is left out."""
        try:
            record = ProcessRecord.of(name, pid)
        except psutil.NoSuchProcess:
            return
        self._change(processes=(*self._entry.processes, record))

    def remove_process(self, pid: int) -> None:
        """Forget a process that has been reaped."""
        self._change(processes=tuple(p for p in self._entry.processes if p.pid != pid))

    def add_lease(self, path: Path) -> None:
        """Record a lease that is about to be taken."""
        self._change(leases=(*self._entry.leases, str(path)))

    def remove_lease(self, path: Path) -> None:
        """Forget a lease that was given back, or that somebody else has."""
        self._change(leases=tuple(lease for lease in self._entry.leases if lease != str(path)))

    def add_engine_run(self, run_id: str) -> None:
        """Record that things with this run's label are about to be made at the Docker engine."""
        self._change(engine_runs=(*self._entry.engine_runs, run_id))

    def close(self) -> None:
        """Everything is undone: remove the journal. Idempotent."""
        self.path.unlink(missing_ok=True)

    def _change(self, **changes: tuple[ProcessRecord, ...] | tuple[str, ...]) -> None:
        self._entry = msgspec.structs.replace(self._entry, **changes)
        self._write()

    def _write(self) -> None:
        draft = self.path.with_suffix(".draft")
        try:
            draft.write_bytes(msgspec.json.encode(self._entry))
            draft.replace(self.path)
        except OSError as error:
            raise MissingRequirement(
                f"the undo journal {self.path} cannot be written: {error.strerror}"
            ) from None


def runtime_directory(directory: Path | None = None) -> Path:
    """Return this user's private directory for journals and leases, made when missing.

    ``$NEMESIS_RUNTIME_DIR`` or ``<temporary directory>/nemesis-<uid>``: the same for a login session, cron and CI, or
    ``clean`` would not find what another one left. Raises ``MissingRequirement``
    when it cannot be made or belongs to somebody else.
    """
    if directory is None:
        own = Path(tempfile.gettempdir()) / f"nemesis-{os.getuid()}"
        directory = Path(os.environ.get("NEMESIS_RUNTIME_DIR") or own)
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = directory.lstat()
    except OSError as error:
        raise MissingRequirement(
            f"the runtime directory {directory} cannot be made: {error.strerror}"
        ) from None
    if status.st_uid != os.getuid() or not stat.S_ISDIR(status.st_mode):
        raise MissingRequirement(
            f"the runtime directory {directory} is not a directory of this user"
        )
    return directory


def journals_directory(directory: Path | None = None) -> Path:
    """Return the directory that holds one file per run, made when missing."""
    folder = runtime_directory(directory) / "journals"
    folder.mkdir(exist_ok=True)
    return folder


def read_journals(directory: Path | None = None) -> list[tuple[Path, JournalEntry | None]]:
    """Return every journal there is; None for a file that cannot be understood."""
    journals: list[tuple[Path, JournalEntry | None]] = []
    for path in sorted(journals_directory(directory).glob("*.json")):
        try:
            entry = msgspec.json.decode(path.read_bytes(), type=JournalEntry)
        except FileNotFoundError:
            continue
        except (msgspec.MsgspecError, OSError):
            journals.append((path, None))
        else:
            journals.append((path, entry))
    return journals
