"""A disk as one incarnation of a node sees it: when that incarnation is over, nothing that is left of it reaches the
disk.

A killed process does nothing more, but its coroutines must be closed some time, and their ``finally`` blocks run
then. Whatever they do to this view has no effect and answers as an empty disk would.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from nemesis.reference.ports import AtomicFiles, Directories, Disk, DiskUsage, Files


class Mortal(Protocol):
    """One incarnation of a node, as far as its disk cares."""

    @property
    def is_dead(self) -> bool: ...
    def act(self) -> None:
        """It is about to change something; it may be struck right before."""


class FencedDisk:
    """Implements ``nemesis.reference.ports.Disk`` on top of another disk, for as long as the incarnation lasts.

    The view is itself the three parts of the port.
    """

    def __init__(self, disk: Disk, incarnation: Mortal) -> None:
        self._files = disk.files
        self._directories = disk.directories
        self._atomic = disk.atomic
        self._incarnation = incarnation

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
        self._incarnation.act()
        if not self._incarnation.is_dead:
            self._files.append(path, data)

    def read(self, path: str, offset: int, size: int) -> bytes:
        return b"" if self._incarnation.is_dead else self._files.read(path, offset, size)

    def size(self, path: str) -> int:
        return 0 if self._incarnation.is_dead else self._files.size(path)

    def truncate(self, path: str, size: int) -> None:
        self._incarnation.act()
        if not self._incarnation.is_dead:
            self._files.truncate(path, size)

    def fsync(self, path: str) -> None:
        self._incarnation.act()
        if not self._incarnation.is_dead:
            self._files.fsync(path)

    def replace(self, path: str, data: bytes) -> None:
        self._incarnation.act()
        if not self._incarnation.is_dead:
            self._atomic.replace(path, data)

    def replace_all(self, files: Mapping[str, bytes]) -> Mapping[str, OSError]:
        return one_by_one(self.replace, files)

    def exists(self, path: str) -> bool:
        return not self._incarnation.is_dead and self._files.exists(path)

    def list(self, path: str) -> Sequence[str]:
        return [] if self._incarnation.is_dead else self._directories.list(path)

    def make_directory(self, path: str) -> None:
        self._incarnation.act()
        if not self._incarnation.is_dead:
            self._directories.make_directory(path)

    def rename(self, source: str, target: str) -> None:
        self._incarnation.act()
        if not self._incarnation.is_dead:
            self._directories.rename(source, target)

    def remove(self, path: str) -> None:
        self._incarnation.act()
        if not self._incarnation.is_dead:
            self._directories.remove(path)

    def usage(self, path: str) -> DiskUsage:
        return DiskUsage(0, 0) if self._incarnation.is_dead else self._directories.usage(path)

    def close(self, path: str) -> None:
        if not self._incarnation.is_dead:
            self._files.close(path)


def one_by_one(
    replace: Callable[[str, bytes], None], files: Mapping[str, bytes]
) -> Mapping[str, OSError]:
    """``Disk.replace_all`` where waiting costs nothing: in the order given, so that a run can be repeated."""
    failed: dict[str, OSError] = {}
    for path, data in files.items():
        try:
            replace(path, data)
        except OSError as error:
            failed[path] = error
    return failed
