"""``nemesis clean``: end what dead harnesses left behind, and nothing else.

For each journal whose harness no longer exists: its processes get SIGKILL (a paused one dies of it too) and are seen
to be gone, its leases are removed, what its containers recorded is brought home, its containers, networks, volumes and
disks are removed, then the journal. Things at the Docker engine tell by their labels whose they are, so they are found
without a journal, too; so is what a build of the nodes' image has left that was broken off. What belongs to a live
harness is left alone. Idempotent: it can be interrupted and run again.
Limits: processes of another user are not seen.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil

from nemesis.running.engine_cleaning import EngineCleaning, engine_cleaning
from nemesis.support.journal import MARKER, JournalEntry, read_journals

GONE_TIMEOUT_S = 10.0
"""SIGKILL needs no cooperation; only a process stuck inside the kernel takes longer."""


@dataclass(frozen=True, slots=True)
class CleanReport:
    """What was done. ``processes`` are ``name (pid N)``; ``engine`` are containers, networks, volumes and
    unfinished images.

    ``survivors`` could not be ended or removed, and keep their journal; ``lost`` is what could not be brought home.
    """

    runs: tuple[str, ...]
    processes: tuple[str, ...]
    leases: tuple[str, ...]
    engine: tuple[str, ...]
    lost: tuple[str, ...]
    survivors: tuple[str, ...]
    live_runs: int

    @property
    def is_clean(self) -> bool:
        """Whether nothing of a dead harness is left."""
        return not self.survivors


def clean(directory: Path | None = None) -> CleanReport:
    """Undo every run whose harness is dead; ``directory`` is the runtime directory (the user's by default)."""
    with engine_cleaning() as engine:
        return _clean(directory, engine)


def _clean(directory: Path | None, engine: EngineCleaning) -> CleanReport:
    runs: list[str] = []
    processes: list[str] = []
    leases: list[str] = []
    survivors: list[str] = []
    live_runs = 0
    for path, entry in read_journals(directory):
        if _harness_is_alive(path, entry):
            live_runs += 1
            continue
        victims = _processes_of(entry) if entry else list(_marked(path.stem))
        labels = {process.pid: _label(process) for process in victims}
        left = {process.pid for process in _kill(victims)}
        processes += [label for pid, label in labels.items() if pid not in left]
        survivors += [label for pid, label in labels.items() if pid in left]
        runs.append(entry.run_directory if entry else str(path))
        is_removed = engine.remove(entry.engine_runs if entry else ())
        if left or not is_removed:
            continue
        for lease in map(Path, entry.leases if entry else ()):
            if lease.exists():
                leases.append(str(lease))
                lease.unlink(missing_ok=True)
        path.unlink(missing_ok=True)
    runs += engine.remove_orphans()
    engine.remove_fragments()
    return CleanReport(
        runs=tuple(runs),
        processes=tuple(processes),
        leases=tuple(leases),
        engine=tuple(engine.removed),
        lost=tuple(engine.lost),
        survivors=(*survivors, *engine.left),
        live_runs=live_runs,
    )


def _harness_is_alive(path: Path, entry: JournalEntry | None) -> bool:
    """Of a journal that cannot be understood only the name is left: it begins with the harness's pid."""
    if entry is not None:
        return entry.harness.find() is not None
    pid = path.stem.partition("-")[0]
    return pid.isdigit() and psutil.pid_exists(int(pid))


def _processes_of(entry: JournalEntry) -> list[psutil.Process]:
    """The processes that carry this journal's marker, listed or not. A listed pid without it is a stranger."""
    listed = {p.pid: p for record in entry.processes if (p := record.find()) is not None}
    marked = {p.pid: p for p in _marked(entry.name)}
    listed_and_marked = [p for pid, p in listed.items() if pid in marked or _carries(p, entry.name)]
    return listed_and_marked + [p for pid, p in marked.items() if pid not in listed]


def _marked(name: str) -> Iterator[psutil.Process]:
    for process in psutil.process_iter():
        if _carries(process, name):
            yield process


def _carries(process: psutil.Process, name: str) -> bool:
    try:
        return process.environ().get(MARKER) == name
    except (psutil.Error, OSError):
        return False


def _kill(victims: list[psutil.Process]) -> list[psutil.Process]:
    """Kill and wait; return those that are still there."""
    for process in victims:
        try:
            process.kill()
        except psutil.Error:
            continue  # gone already, or the wait below says that it survived
    _, alive = psutil.wait_procs(victims, timeout=GONE_TIMEOUT_S)
    return [p for p in alive if not _is_zombie(p)]


def _is_zombie(process: psutil.Process) -> bool:
    try:
        return process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def _label(process: psutil.Process) -> str:
    try:
        return f"{process.name()} (pid {process.pid})"
    except psutil.Error:
        return f"pid {process.pid}"
