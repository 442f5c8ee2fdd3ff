"""``LocalDisks``: those of the brokers of one run that share a machine, each broken by itself and looked at.

What a disk meets is measured by a probe: a ``FaultyDisk`` of the harness's own, under the same commands, writes, syncs
and reads a block where the broker has its logs. That says something about the broker only while the kernel has the page
of these commands in the broker's memory, so of a broker that has not nothing is said.
"""

from __future__ import annotations

import errno
import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any, Final

from nemesis.interfaces.errors import RuntimeFailure
from nemesis.runtimes.clock_control.control_page import is_mapped
from nemesis.runtimes.disk_control import unsynced
from nemesis.runtimes.disk_control.commands import COMMAND, HEALTHY, PAGE, DiskCommand, DiskCommands
from nemesis.runtimes.disk_control.faulty_disk import BLOCK_BYTES, FaultyDisk
from nemesis.support import log_damage as damage
from nemesis.support.log_damage import Damage

DIRECTORY: Final = "disks"
"""In the directory of a run: for each broker the directory of its commands, called as the broker."""

PROBE: Final = ".nemesis-probe"
Probe = dict[str, str | None]
"""By operation (``read``, ``write``, ``fsync``) the name of the errno that it meets; None for success."""


class LocalDisks:
    """All methods raise ``RuntimeFailure``."""

    def __init__(self, run_directory: Path, *, seed: int) -> None:
        self._run_directory = run_directory
        self._rng = Random(f"{seed}/power")
        self._commands: dict[str, DiskCommands] = {}
        self._refused: dict[str, Counter[str]] = {}

    def directory(self, node: str) -> Path:
        """Where the commands of this broker's disk are: what its launcher is told."""
        return self._run_directory / DIRECTORY / node

    def create(self, node: str) -> None:
        """Give a broker a disk that works."""
        try:
            self._commands[node] = DiskCommands.create(self.directory(node))
        except OSError as error:
            raise RuntimeFailure(f"the disk of {node} cannot be made: {error}") from None

    def fill(self, node: str, pid: int, log_dirs: Sequence[Path]) -> dict[str, Any]:
        """Let the disk take no more; returns what a probe of it meets."""
        return self._give(node, pid, DiskCommand(error=errno.ENOSPC), log_dirs)

    def fail(self, node: str, pid: int, log_dirs: Sequence[Path]) -> dict[str, Any]:
        """Let every call fail with EIO; returns what a probe of the disk meets."""
        return self._give(node, pid, DiskCommand(error=errno.EIO), log_dirs)

    def fail_log_dir(
        self, node: str, pid: int, log_dirs: Sequence[Path], number: int
    ) -> dict[str, Any]:
        """Let one directory fail with EIO; returns what probes of it and of the others meet."""
        failing = log_dirs[number % len(log_dirs)]
        command = DiskCommand(error=errno.EIO, below=(str(failing),))
        met = self._give(node, pid, command, [failing])
        others = [log_dir for log_dir in log_dirs if log_dir != failing]
        return {**met, "log_dir": str(failing), "others": self._look(node, others)}

    def heal(self, node: str, log_dirs: Sequence[Path]) -> dict[str, Any]:
        """End both; returns what a probe meets now, and ``refused``: the calls that had failed, by errno."""
        counted = self._of(node).counted()
        refused = counted - self._refused.get(node, Counter())
        self._refused[node] = counted
        try:
            self._of(node).give(HEALTHY)
        except OSError as error:
            raise RuntimeFailure(f"the disk of {node} cannot be mended: {error}") from None
        return {**self._look(node, log_dirs), "refused": dict(sorted(refused.items()))}

    def unsynced_bytes(self, node: str) -> int:
        """Return how many bytes of the last segments of the broker's logs are not synced."""
        synced = dict(unsynced.read(self.directory(node)))
        segments = damage.last_segments(filter(os.path.exists, synced))
        return sum(max(0, Path(path).stat().st_size - synced[path]) for path in segments)

    def corrupt_tail(self, node: str) -> dict[str, Any]:
        """Damage the ends of a dead broker's logs behind what was synced; returns what was done."""
        synced = dict(unsynced.read(self.directory(node)))
        done: list[Damage] = []
        try:
            for path in damage.last_segments(filter(os.path.exists, synced)):
                data = bytearray(Path(path).read_bytes())
                drawn = damage.draw(path, data, synced[path], self._rng)
                if drawn is not None:
                    damage.inflict(data, drawn)
                    Path(path).write_bytes(data)
                    done.append(drawn)
        except OSError as error:
            raise RuntimeFailure(f"the disk of {node} cannot be damaged: {error}") from None
        return damage.damage_report(done)

    def cut_power(self, node: str) -> dict[str, Any]:
        """Take from the files of a dead broker what was not synced; returns how much that was."""
        try:
            return asdict(unsynced.lose(self.directory(node), self._rng))
        except OSError as error:
            raise RuntimeFailure(f"the disk of {node} cannot lose its power: {error}") from None

    def _give(
        self, node: str, pid: int, command: DiskCommand, log_dirs: Sequence[Path]
    ) -> dict[str, Any]:
        try:
            self._of(node).give(command)
            if not is_mapped(self.directory(node) / PAGE, pid):
                return {"obeyed": False}
        except OSError as error:
            raise RuntimeFailure(f"the disk of {node} cannot be broken: {error}") from None
        return {**self._look(node, log_dirs)}

    def _look(self, node: str, log_dirs: Sequence[Path]) -> Probe:
        try:
            return self._probe(node, log_dirs)
        except OSError as error:
            raise RuntimeFailure(f"the disk of {node} cannot be probed: {error}") from None

    def _probe(self, node: str, log_dirs: Sequence[Path]) -> Probe:
        """Return what a disk under the commands of this one meets; the first error of each operation counts.

        The probe has a page and a record of its own, so that what it does is not taken for the broker's doing.
        """
        answers: Probe = dict.fromkeys(("read", "write", "fsync"))
        with TemporaryDirectory(prefix="nemesis-probe-") as own:
            DiskCommands.create(Path(own))
            (Path(own) / COMMAND).write_bytes((self.directory(node) / COMMAND).read_bytes())
            for log_dir in log_dirs:
                _try(FaultyDisk(Path(own)), log_dir / PROBE, answers)
        return answers

    def _of(self, node: str) -> DiskCommands:
        if node not in self._commands:
            raise RuntimeFailure(f"there is no disk of {node!r}")
        return self._commands[node]


def _try(disk: FaultyDisk, path: Path, answers: Probe) -> None:
    """Write, sync and read a block, and leave no trace of it."""
    file = str(path)
    try:
        path.touch()
        for operation, call in (
            ("write", lambda: disk.append(file, bytes(BLOCK_BYTES))),
            ("fsync", lambda: disk.fsync(file)),
            ("read", lambda: disk.read(file, 0, BLOCK_BYTES)),
        ):
            try:
                call()
            except OSError as error:
                answers[operation] = answers[operation] or errno.errorcode[error.errno or 0]
    finally:
        disk.close(file)
        path.unlink(missing_ok=True)
