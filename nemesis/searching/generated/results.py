"""What is known of each mutant, in a file of JSON lines: the first describes the draw, each further one a mutant.

A line is appended when a mutant's examination ends, so a call that is broken off loses at most the mutants at work, and
the next call goes on. A file belongs to one draw of one state of the code; another one is refused.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from hashlib import sha256
from pathlib import Path
from typing import Final

import msgspec

import nemesis
from nemesis.mutants.generated.sources import ROOT
from nemesis.searching.generated.trial import TrialReport
from nemesis.support.errors import UsageError

SEARCHING: Final = frozenset({"searching", "cli"})
"""Packages that choose runs and do not decide what happens in one."""


class Status(StrEnum):
    """What came out of a mutant's runs."""

    KILLED = "killed"
    """A property has a finding."""
    SURVIVED = "survived"
    """It was effective, and no property has a finding."""
    CRASHED = "crashed"
    """A broker raised an unforeseen exception, and no property has a finding."""
    HUNG = "hung"
    FAILED = "failed"
    """The harness failed, or the process took too much memory."""
    NO_EFFECT = "no-effect"
    """The changed code ran and never did something else than the original."""
    NOT_REACHED = "not-reached"


class TrialRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One run of a mutant."""

    scenario: str
    seed: int
    outcome: Status
    report: TrialReport


class MutantRecord(msgspec.Struct, frozen=True, kw_only=True):
    """Everything about a mutant; one line of the file."""

    name: str
    operator: str
    module: str
    original: str
    mutant: str
    status: Status
    runs: tuple[TrialRecord, ...]

    @property
    def killed_by(self) -> tuple[str, ...]:
        """The properties with a finding in the run that killed it."""
        return next((r.report.properties for r in self.runs if r.outcome is Status.KILLED), ())

    @property
    def cpu_s(self) -> float:
        return sum(run.report.cpu_s for run in self.runs)


class Header(msgspec.Struct, frozen=True, kw_only=True):
    """What a file of results belongs to."""

    format: int = 1
    draw_seed: int
    modules: tuple[str, ...]
    scenarios: tuple[str, ...]
    seeds: int
    first_seed: int
    time_limit_s: float | None
    code: str
    """Digest of the sources: other code has other mutants and other runs."""


@dataclass(frozen=True, slots=True)
class ResultFile:
    """The file of one draw."""

    path: Path
    header: Header

    def read(self) -> dict[str, MutantRecord]:
        """Return what is known already, by name; raises ``UsageError`` when the file belongs to something else."""
        if not self.path.exists():
            return {}
        header, records = read_results(self.path)
        if header != self.header:
            raise UsageError(
                f"{self.path}: expected results of this draw, these options and this state of the code, got others: "
                "choose another file with --results"
            )
        return {record.name: record for record in records}

    def append(self, record: MutantRecord) -> None:
        """Add a mutant; the line is there when this returns."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        lines = [record] if self.path.exists() else [self.header, record]
        with self.path.open("ab") as file:
            file.write(b"".join(msgspec.json.encode(line) + b"\n" for line in lines))


def read_results(path: Path) -> tuple[Header, list[MutantRecord]]:
    """Return the header and the mutants of a file; a last line that was not finished is left out.

    Raises ``UsageError`` for a file that holds something else.
    """
    lines = path.read_bytes().split(b"\n")
    try:
        header = msgspec.json.decode(lines[0], type=Header)
        records = [msgspec.json.decode(line, type=MutantRecord) for line in lines[1:-1]]
    except msgspec.DecodeError as error:
        raise UsageError(f"{path}: expected results of generated mutants, got: {error}") from None
    return header, records


def digest_of_code(folders: Iterable[Path] | None = None) -> str:
    """Return a digest of all sources and scenarios that decide what a run does."""
    package = Path(nemesis.__path__[0])
    if folders is None:
        links = [package / name for name in ("history", "checkers", "workloads")]
        folders = [ROOT, *links, package]
    total = sha256()
    for folder in folders:
        for path in sorted(folder.rglob("*")):
            is_ours = path.suffix in {".py", ".yaml"} and not set(path.parts) & SEARCHING
            if is_ours and path.is_file():
                total.update(path.relative_to(folder).as_posix().encode() + b"\0")
                total.update(path.read_bytes())
    return total.hexdigest()[:16]
