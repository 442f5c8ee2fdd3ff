"""``FaultyDisk``: a real disk that fails when it is told to, and writes down what is not synced.

Full, it writes what still fits into the last block of a file, and refuses the rest with ENOSPC; what is removed makes
no room. Failing, it refuses every call with EIO, all of them or those for some directories. Told nothing it answers as
``RealDisk`` does; the same conformance test compares both with the simulated one.

Limits: directories, removals and truncations count as synced at once; a sync that was refused has synced nothing.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from nemesis.reference.adapters.disk import RealDisk
from nemesis.reference.ports import AtomicFiles, Directories, DiskUsage, Files
from nemesis.runtimes.disk_control.commands import HEALTHY, DiskCommands
from nemesis.runtimes.disk_control.unsynced import Unsynced

BLOCK_BYTES: Final = 4096


class FaultyDisk:
    """Implements ``nemesis.reference.ports.Disk`` and is itself its three parts.

    Errors are OSErrors with the errno of what was ordered.
    """

    def __init__(self, directory: Path, disk: RealDisk | None = None) -> None:
        """``directory`` is that of the commands; raises OSError when it is not there."""
        self._disk = disk if disk is not None else RealDisk()
        self._commands = DiskCommands(directory)
        self._turn = -1
        self._command = HEALTHY
        self._unsynced = Unsynced(directory)

    @property
    def files(self) -> Files:
        """This disk as ``Files``."""
        return self

    @property
    def directories(self) -> Directories:
        """This disk as ``Directories``."""
        return self

    @property
    def atomic(self) -> AtomicFiles:
        """This disk as ``AtomicFiles``."""
        return self

    def append(self, path: str, data: bytes) -> None:
        if self._is_ordered():
            self._require(path)
            data = self._room_for(path, data)
        if path not in self._unsynced.safe:
            self._unsynced.begin(path, _size(path))
        self._disk.append(path, data)

    def read(self, path: str, offset: int, size: int) -> bytes:
        if self._is_ordered():
            self._require(path)
        return self._disk.read(path, offset, size)

    def size(self, path: str) -> int:
        if self._is_ordered():
            self._require(path)
        return self._disk.size(path)

    def truncate(self, path: str, size: int) -> None:
        if self._is_ordered():
            self._require(path)
        before = _size(path)
        if path not in self._unsynced.safe and size > before:
            self._unsynced.begin(path, before)
        self._disk.truncate(path, size)
        self._unsynced.cut(path, size)

    def fsync(self, path: str) -> None:
        if self._is_ordered():
            self._require(path)
        self._disk.fsync(path)
        self._unsynced.end(path)

    def replace(self, path: str, data: bytes) -> None:
        if self._is_ordered():
            self._require(path)
            self._require_room(path)
        self._disk.replace(path, data)
        self._unsynced.end(path)

    def replace_all(self, files: Mapping[str, bytes]) -> Mapping[str, OSError]:
        if not self._is_ordered():
            failed = self._disk.replace_all(files)
            for path in files.keys() - failed.keys():
                self._unsynced.end(path)
            return failed
        refused: dict[str, OSError] = {}
        for path, data in files.items():
            try:
                self.replace(path, data)
            except OSError as error:
                refused[path] = error
        return refused

    def exists(self, path: str) -> bool:
        if self._is_ordered():
            self._require(path)
        return self._disk.exists(path)

    def list(self, path: str) -> Sequence[str]:
        if self._is_ordered():
            self._require(path)
        return self._disk.list(path)

    def make_directory(self, path: str) -> None:
        if self._is_ordered():
            self._require(path)
        self._disk.make_directory(path)

    def usage(self, path: str) -> DiskUsage:
        if self._is_ordered():
            self._require(path)
        return self._disk.usage(path)

    def rename(self, source: str, target: str) -> None:
        if self._is_ordered():
            self._require(source)
            self._require(target)
        self._disk.rename(source, target)
        if source != target:
            self._unsynced.move(source, target)

    def remove(self, path: str) -> None:
        if self._is_ordered():
            self._require(path)
        self._disk.remove(path)
        self._unsynced.end_below(path)

    def close(self, path: str) -> None:
        self._disk.close(path)

    def _is_ordered(self) -> bool:
        """Whether there is a command to fail."""
        turn = self._commands.turn
        if turn != self._turn:
            self._command = self._commands.read()
            self._turn = turn
        return self._command.error != 0

    def _require(self, path: str) -> None:
        if self._command.error == errno.EIO and self._command.concerns(path):
            raise self._refusal(errno.EIO, path)

    def _require_room(self, path: str) -> None:
        if self._command.error == errno.ENOSPC and self._command.concerns(path):
            raise self._refusal(errno.ENOSPC, path)

    def _room_for(self, path: str, data: bytes) -> bytes:
        """Return the data if it fits; else write what does, and raise ENOSPC."""
        if self._command.error != errno.ENOSPC or not self._command.concerns(path):
            return data
        room = -_size(path) % BLOCK_BYTES
        if len(data) <= room:
            return data
        if room:
            if path not in self._unsynced.safe:
                self._unsynced.begin(path, _size(path))
            self._disk.append(path, data[:room])
        raise self._refusal(errno.ENOSPC, path)

    def _refusal(self, error: int, path: str) -> OSError:
        self._commands.count([error])
        return OSError(error, os.strerror(error), path)


def _size(path: str) -> int:
    """Return the bytes of a file; 0 of one that is not there yet, or is none."""
    try:
        return Path(path).stat().st_size
    except OSError:
        return 0
