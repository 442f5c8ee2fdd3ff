"""The simulated disk answers as the real one does: random operations on both, results, errnos and contents compared.

A kill is a part of it: the real disk is dropped and opened anew, the simulated one is fenced and kept.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from nemesis.reference.adapters.disk import RealDisk
from nemesis.reference.ports import Disk
from nemesis.runtimes.disk_control.commands import DiskCommands
from nemesis.runtimes.disk_control.faulty_disk import FaultyDisk
from nemesis.simulation.disk import SimulatedDisk
from tests.nemesis.simulation.conformance.disk_contents import lasting

paths = st.sampled_from(["a", "a/b", "d", "d/a", "d/b", "d/e", "d/e/a"])
"""Few, so that operations meet."""
unrelated = st.sampled_from(["a", "d/a", "d/b"])
"""None lies in another."""
contents = st.binary(max_size=40)
sizes = st.integers(0, 90)


@dataclass
class Incarnation:
    is_dead: bool = False

    def act(self) -> None:
        """Nobody strikes between two actions here."""


class BothDisks(RuleBasedStateMachine):
    """Every rule is one call of the port, made on both."""

    def __init__(self) -> None:
        super().__init__()
        self.root = mkdtemp()
        self.simulated = SimulatedDisk()
        self.simulated.make_directory(self.root)
        self.incarnation = Incarnation()
        self.start()

    def teardown(self) -> None:
        shutil.rmtree(self.root)

    def start(self) -> None:
        self.real = self.open()
        self.incarnation.is_dead, self.incarnation = True, Incarnation()
        self.fenced = self.simulated.fenced(self.incarnation)

    def open(self) -> Disk:
        return RealDisk(max_handles=2)

    def both(self, call: Callable[[Disk], Any]) -> None:
        assert outcome(call, self.fenced) == outcome(call, self.real)

    def at(self, path: str) -> str:
        return f"{self.root}/{path}"

    @rule(path=paths, data=contents)
    def append(self, path: str, data: bytes) -> None:
        self.both(lambda disk: disk.files.append(self.at(path), data))

    @rule(path=paths, offset=st.integers(-1, 90), size=sizes)
    def look(self, path: str, offset: int, size: int) -> None:
        self.both(lambda disk: disk.files.read(self.at(path), offset, size))
        self.both(lambda disk: disk.files.exists(self.at(path)))
        self.both(lambda disk: list(disk.directories.list(self.at(path))))
        if not Path(self.at(path)).is_dir():  # the size of a directory is the file system's affair
            self.both(lambda disk: disk.files.size(self.at(path)))

    @rule(path=paths, size=st.integers(-1, 90))
    def truncate(self, path: str, size: int) -> None:
        self.both(lambda disk: disk.files.truncate(self.at(path), size))

    @rule(path=paths)
    def fsync(self, path: str) -> None:
        self.both(lambda disk: disk.files.fsync(self.at(path)))

    @rule(path=paths, data=contents)
    def replace(self, path: str, data: bytes) -> None:
        self.both(lambda disk: disk.atomic.replace(self.at(path), data))

    @rule(several=st.dictionaries(unrelated, contents, max_size=3))
    def replace_all(self, several: dict[str, bytes]) -> None:
        files = {self.at(path): data for path, data in several.items()}
        self.both(lambda disk: outcomes(disk.atomic.replace_all(files)))

    @rule(path=paths)
    def make_directory(self, path: str) -> None:
        self.both(lambda disk: disk.directories.make_directory(self.at(path)))

    @rule(source=paths, goal=paths)
    def rename(self, source: str, goal: str) -> None:
        self.both(lambda disk: disk.directories.rename(self.at(source), self.at(goal)))
        self.append(goal, b"on")  # to what now bears the name

    @rule(source=st.sampled_from(["a", "d/a"]), goal=st.sampled_from(["d", "d/b"]))
    def rename_over(self, source: str, goal: str) -> None:
        self.append(source, b"new")
        self.append(goal, b"old")
        self.rename(source, goal)

    @rule(path=paths)
    def measure(self, path: str) -> None:
        """How large the volumes are differs; whether that can be asked does not."""

        def is_plausible(disk: Disk) -> bool:
            total, usable = disk.directories.usage(self.at(path))
            return 0 <= usable <= total

        self.both(is_plausible)

    @rule(path=paths)
    def remove(self, path: str) -> None:
        self.both(lambda disk: disk.directories.remove(self.at(path)))

    @rule(path=paths)
    def close(self, path: str) -> None:
        self.both(lambda disk: disk.files.close(self.at(path)))

    @rule()
    def kill(self) -> None:
        self.start()

    @invariant()
    def hold_the_same(self) -> None:
        directories, files = [], {}
        for directory, _, below in os.walk(self.root):
            directories.append(directory)
            for path in (Path(directory) / name for name in below):
                files[str(path)] = path.read_bytes()
        assert lasting(self.simulated.contents()) == lasting(files)
        for directory in directories:
            assert list(self.simulated.list(directory)) == list(
                self.real.directories.list(directory)
            )


def outcomes(failed: Mapping[str, OSError]) -> dict[str, tuple[str, int | None]]:
    return {path: (type(error).__name__, error.errno) for path, error in failed.items()}


def outcome(call: Callable[[Disk], Any], disk: Disk) -> object:
    try:
        return call(disk)
    except OSError as error:
        return (type(error).__name__, error.errno)


class BothDisksUnderCommands(BothDisks):
    """The real disk is the one that could fail, and is told nothing."""

    def open(self) -> Disk:
        if not hasattr(self, "commands"):
            self.commands = Path(mkdtemp())
            DiskCommands.create(self.commands)
        return FaultyDisk(self.commands, RealDisk(max_handles=2))

    def teardown(self) -> None:
        super().teardown()
        shutil.rmtree(self.commands)


BothDisks.TestCase.settings = settings(max_examples=150, stateful_step_count=40)
TestBothDisks = BothDisks.TestCase
BothDisksUnderCommands.TestCase.settings = settings(max_examples=100, stateful_step_count=40)
TestBothDisksUnderCommands = BothDisksUnderCommands.TestCase
