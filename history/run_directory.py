"""The directory of one run, and what ``run.json`` says about it.

::

    store/latest -> SCENARIO/TIME          the newest run
    store/SCENARIO/TIME/
        run.json                           RunInfo: everything needed to repeat and to judge the run
        raw/*.jsonl                        one file per process, as written during the run
        raw/zookeeper/zookeeper-N/version-2/log.*    ZooKeeper's own transaction logs
        raw/quorum/broker-N/*.log    the metadata logs of a KRaft quorum, and its snapshots (*.checkpoint)
        mutant.py                          the planted bug, if it is from a file
        history/                           the same, ingested: ordered Parquet
        logs/                              what the processes printed
        results.json  report.html  junit.xml

A directory is ours if its ``run.json`` says so; nothing is ever written into one that is not. Files
that are replaced (``run.json``, results) are written beside and renamed, so a killed harness leaves
the old one or the new one, never half of one.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import msgspec

from nemesis.history.errors import DamagedHistoryError, ForeignHistoryError, MissingHistoryError
from nemesis.history.events import FORMAT_VERSION
from nemesis.history.sources import ALL_SOURCES, EventSource

FORMAT: Final = "nemesis-run"
VERSION: Final = 1


class RunInfo(msgspec.Struct, kw_only=True, omit_defaults=False):
    """What was run and how to run it again. Unknown keys of a file are ignored when it is read."""

    format: str = FORMAT
    version: int = VERSION
    events_format: int = 3
    """The format of the raw files' events; runs of format 3 and older do not say it."""
    scenario: str
    seed: int
    target: str = "reference"
    observes: tuple[EventSource, ...] = ALL_SOURCES
    """The sources that the target has. Runs of older versions do not state them: they have all."""
    runtime: str = "local"
    mutant: str | None = None
    """The name of the planted bug."""
    mutant_file: dict[str, str] = {}
    """Of a planted bug from a file: ``path``, as the user wrote it, and ``sha256``. ``mutant.py`` is a copy."""
    brokers: int = 3
    zookeepers: int = 1
    controllers: int = 0
    """KRaft controllers that are not brokers; they alone are the voters of the quorum then."""
    time_limit_s: float = 0.0
    started_at: str = ""
    """UTC, ISO 8601."""
    command_line: list[str] = []
    replay: str = ""
    """The command that repeats the run."""
    plan: list[Any] | None = None
    """The fault plan as it is written in a plan file. None: it is not told; an empty one is no fault."""
    left_out: dict[str, list[str]] = {}
    """By the reason, the scenario's kinds of faults and recipes that this run could not have."""
    undetectable: list[str] = []
    """Faults of the plan that are shorter than the time-out which would reveal them, a phrase each."""
    checkers: list[str] = []
    versions: dict[str, str] = {}
    """Versions of nemesis, Python, Kafka, ZooKeeper, Java, the kernel, ..."""
    config: dict[str, Any] = {}
    """The scenario as it was run: time-outs, topics, rates."""
    simulation: dict[str, Any] = {}
    """Of a simulated run: its schedule, which operations it issued, and the hash of its trace."""
    shrunk: dict[str, Any] = {}
    """Of a shrunk run: which run it was, what it keeps broken, and its size before and after."""
    foreign: dict[str, Any] = {}
    """Of a history from elsewhere: its workload, the file with its size and SHA-256, and what is wrong with it."""
    origin: str = ""
    """The URI that the run was fetched from, if it was."""
    phases: list[str] = []
    """The phases that the run got through; a run without ``end`` was interrupted."""
    durations_s: dict[str, float] = {}
    """How long each took, in seconds of real time, and after the phases ``stop``, ``ingest`` and ``check``."""


@dataclass(frozen=True, slots=True)
class RunDirectory:
    """The paths of a run. ``create`` makes a new one, ``open`` checks that an old one is ours."""

    path: Path

    @property
    def info_file(self) -> Path:
        return self.path / "run.json"

    @property
    def raw(self) -> Path:
        """Event files as the processes wrote them."""
        return self.path / "raw"

    @property
    def zookeeper(self) -> Path:
        """Transaction logs: one directory per member, ``zookeeper-1`` and so on."""
        return self.raw / "zookeeper"

    @property
    def quorum(self) -> Path:
        """Metadata logs of a KRaft quorum: one directory per voter."""
        return self.raw / "quorum"

    @property
    def history(self) -> Path:
        return self.path / "history"

    @property
    def logs(self) -> Path:
        return self.path / "logs"

    @property
    def mutant_file(self) -> Path:
        """The copy of the file that planted a bug; exists only if ``RunInfo.mutant_file`` is set."""
        return self.path / "mutant.py"

    @property
    def results_file(self) -> Path:
        return self.path / "results.json"

    @property
    def report_file(self) -> Path:
        return self.path / "report.html"

    @property
    def junit_file(self) -> Path:
        return self.path / "junit.xml"

    def raw_file(self, process: str) -> Path:
        """The event file of a process, e.g. ``raw/broker-2.jsonl``."""
        return self.raw / f"{process}.jsonl"

    def raw_table(self, process: str) -> Path:
        """The Arrow file of the events of an external history, e.g. ``raw/clients.arrow``."""
        return self.raw / f"{process}.arrow"

    @classmethod
    def create(cls, store: Path, info: RunInfo) -> RunDirectory:
        """Make ``store/SCENARIO/TIME/``, write ``run.json`` and point ``store/latest`` to it.

        Raises OSError when the store cannot be written; nothing is left behind then but empty
        directories.
        """
        now = datetime.now(UTC)
        info = msgspec.structs.replace(info, events_format=FORMAT_VERSION)
        if not info.started_at:
            info = msgspec.structs.replace(info, started_at=now.isoformat(timespec="seconds"))
        parent = store / info.scenario
        parent.mkdir(parents=True, exist_ok=True)
        path = _claim(parent, now.strftime("%Y%m%dT%H%M%SZ"))
        run = cls(path.absolute())
        for directory in (run.raw, run.logs):
            directory.mkdir()
        run.write_info(info)
        _point_latest(store, Path(info.scenario) / path.name)
        return run

    def discard(self) -> None:
        """Remove the directory of a run that did not begin; ``latest`` points to the newest of the others.

        Directories that this leaves empty go, too. Raises OSError.
        """
        shutil.rmtree(self.path)
        scenario, store = self.path.parent, self.path.parent.parent
        latest = store / "latest"
        if latest.is_symlink() and not latest.exists():
            runs = [info.parent for info in store.glob(f"*/*/{self.info_file.name}")]
            newest = max(runs, key=lambda run: run.name, default=None)
            if newest is None:
                latest.unlink()
            else:
                _point_latest(store, newest.relative_to(store))
        for directory in (scenario, store):
            with suppress(OSError):  # it holds other runs
                directory.rmdir()

    @classmethod
    def open(cls, path: Path) -> RunDirectory:
        """Return the run at this path (``store/latest`` works), having checked that it is one of
        ours.

        Raises HistoryError with one sentence when it is missing, foreign or damaged.
        """
        if not path.exists():
            raise MissingHistoryError(f"there is no run at {path}")
        if not path.is_dir():
            raise ForeignHistoryError(f"{path} is a file, not the directory of a run")
        run = cls(path.resolve())
        _require_utf_8(run.path)
        run.read_info()
        return run

    def read_info(self) -> RunInfo:
        """Return what ``run.json`` says. Raises HistoryError when it is missing, foreign or
        damaged.
        """
        try:
            text = self.info_file.read_bytes()
        except FileNotFoundError:
            raise MissingHistoryError(
                f"{self.path} is not the directory of a run: it has no run.json"
            ) from None
        except OSError as error:
            reason = error.strerror
            raise DamagedHistoryError(f"{self.info_file} cannot be read: {reason}") from None
        return decode_info(text, self.info_file)

    def write_info(self, info: RunInfo) -> None:
        """Replace ``run.json``."""
        write_atomically(self.info_file, msgspec.json.format(msgspec.json.encode(info)) + b"\n")


def _require_utf_8(path: Path) -> None:
    """Raise ``ForeignHistoryError`` for a path that Arrow and a JVM cannot name; a link in UTF-8 may lead to one."""
    name = os.fsencode(path)
    try:
        name.decode()
    except UnicodeDecodeError:
        raise ForeignHistoryError(
            f"the directory of the run: expected a path in UTF-8, got {name!r}: rename it"
        ) from None


def decode_info(text: bytes, file: object) -> RunInfo:
    """Return what a ``run.json`` says; ``file`` is its name for people. Raises HistoryError."""
    try:
        marks = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise DamagedHistoryError(f"{file} is not valid JSON: {error}") from None
    if not isinstance(marks, dict) or marks.get("format") != FORMAT:
        raise ForeignHistoryError(f"{file} was not written by nemesis")
    if marks.get("version") != VERSION:
        raise ForeignHistoryError(
            f"{file} has format version {marks.get('version')!r}; "
            f"this nemesis reads version {VERSION}"
        )
    try:
        return msgspec.convert(marks, RunInfo)
    except msgspec.ValidationError as error:
        raise DamagedHistoryError(f"{file} is damaged: {error}") from None


def write_atomically(path: Path, content: bytes) -> None:
    """Replace a file in one step: readers see the old content or the new. Raises OSError."""
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    temporary = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        temporary.chmod(0o644)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _claim(parent: Path, name: str) -> Path:
    """Make a directory that did not exist: two runs may start in the same second."""
    for attempt in range(1, 1000):
        path = parent / (name if attempt == 1 else f"{name}-{attempt}")
        try:
            path.mkdir()
        except FileExistsError:
            continue
        return path
    raise FileExistsError(f"{parent / name} and its successors exist already")


def _point_latest(store: Path, target: Path) -> None:
    """Make ``store/latest`` a link to the newest run; anything of that name that is no link stays."""
    latest = store / "latest"
    if latest.exists() and not latest.is_symlink():
        return
    temporary = store / f".latest-{os.getpid()}"
    temporary.unlink(missing_ok=True)
    temporary.symlink_to(target)
    temporary.replace(latest)
