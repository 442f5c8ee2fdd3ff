"""The corpus of a guided exploration: a directory with one file for each run worth varying.

A file is JSON: the scenario, the seed, the plan in the form of a plan file, and the features that the run was the
first to reach. Seed and plan repeat the run (``swarm.vary`` draws the rest from the seed), and the features of all
files are what is no longer new, so the next exploration resumes where this one ended. A file is written in one step
and never changed. Its name is a digest of seed and plan: corpora of several machines can be copied together.

Limits: features are those of the code that ran then. After a change of the reference the files remain valid, but a
feature that can no longer be reached stays known; delete the directory to begin again.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Annotated, Any, Final, Self

import msgspec
from msgspec import Meta

from nemesis.faults import plan as plans
from nemesis.faults.plan import Plan
from nemesis.history.run_directory import write_atomically
from nemesis.scenarios.scenario import MAX_SEED, Scenario
from nemesis.support.errors import HarnessError, UsageError

SUFFIX: Final = ".json"


@dataclass(frozen=True, slots=True)
class Entry:
    """A run that was kept."""

    seed: int
    plan: Plan
    new: tuple[str, ...]
    """The features that it was the first to reach."""


class _StoredEntry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The form of a file."""

    scenario: str
    seed: Annotated[int, Meta(ge=0, le=MAX_SEED)]
    plan: list[dict[str, Any]]
    new: tuple[str, ...]


@dataclass(slots=True)
class Corpus:
    """The entries of a directory. The directory is created with its first entry."""

    folder: Path
    scenario: Scenario
    entries: list[Entry] = field(default_factory=list)

    @classmethod
    def read(cls, folder: Path, scenario: Scenario) -> Self:
        """Read the files, in the order of their names; raises ``UsageError`` for the first bad one."""
        if folder.exists() and not folder.is_dir():
            raise UsageError(f"--corpus is {folder}: expected a directory, got a file")
        files = sorted(path for path in folder.glob(f"*{SUFFIX}") if not path.name.startswith("."))
        return cls(folder, scenario, [_read(path, scenario) for path in files])

    def add(self, entry: Entry) -> None:
        """Keep an entry; raises ``HarnessError`` when it cannot be written."""
        stored = _StoredEntry(
            scenario=self.scenario.name,
            seed=entry.seed,
            plan=plans.encode(entry.plan),
            new=entry.new,
        )
        text = msgspec.json.format(msgspec.json.encode(stored), indent=2)
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            write_atomically(self.folder / file_name(entry.seed, entry.plan), text + b"\n")
        except OSError as error:
            reason = error.strerror
            raise HarnessError(f"the corpus {self.folder} cannot be written: {reason}") from None
        self.entries.append(entry)


def file_name(seed: int, plan: Plan) -> str:
    """Return the name of the file of an entry: equal for equal runs."""
    content = msgspec.json.encode([seed, plans.encode(plan)])
    return f"{blake2b(content, digest_size=8).hexdigest()}{SUFFIX}"


def _read(path: Path, scenario: Scenario) -> Entry:
    try:
        stored = msgspec.json.decode(path.read_bytes(), type=_StoredEntry)
        plan = plans.decode(stored.plan)
        plans.check(plan, nodes=scenario.nodes, end_s=scenario.faults_end_s)
    except OSError as error:
        raise UsageError(f"the corpus file {path} cannot be read: {error.strerror}") from None
    except (msgspec.DecodeError, UsageError) as error:
        raise UsageError(f"the corpus file {path} is wrong: {error}; delete the file") from None
    if stored.scenario != scenario.name:
        raise UsageError(
            f"the corpus file {path} is of another scenario: expected {scenario.name}, got {stored.scenario}; "
            "give each scenario a corpus of its own"
        )
    return Entry(stored.seed, plan, stored.new)
