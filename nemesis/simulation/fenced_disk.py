"""A disk as one life of a node sees it: when that life is over, nothing that is left of it reaches the disk.

A killed process does nothing more, but its coroutines must be closed some time, and their ``finally`` blocks run
then. Whatever they do to this view has no effect and answers as an empty disk would.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from nemesis.reference.ports import Disk, DiskUsage


class Mortal(Protocol):
    """One life of a node, as far as its disk cares."""

    @property
    def is_dead(self) -> bool: ...
    def act(self) -> None:
        """It is about to change something; it may be struck right before."""


class FencedDisk:
    """Implements ``nemesis.reference.ports.Disk`` on top of another disk, for as long as the life lasts."""

    def __init__(self, disk: Disk, life: Mortal) -> None:
        self._disk = disk
        self._life = life

    def append(self, path: str, data: bytes) -> None:
        self._life.act()
        if not self._life.is_dead:
            self._disk.append(path, data)

    def read(self, path: str, offset: int, size: int) -> bytes:
        return b"" if self._life.is_dead else self._disk.read(path, offset, size)

    def size(self, path: str) -> int:
        return 0 if self._life.is_dead else self._disk.size(path)

    def truncate(self, path: str, size: int) -> None:
        self._life.act()
        if not self._life.is_dead:
            self._disk.truncate(path, size)

    def fsync(self, path: str) -> None:
        self._life.act()
        if not self._life.is_dead:
            self._disk.fsync(path)

    def replace(self, path: str, data: bytes) -> None:
        self._life.act()
        if not self._life.is_dead:
            self._disk.replace(path, data)

    def replace_all(self, files: Mapping[str, bytes]) -> Mapping[str, OSError]:
        return one_by_one(self.replace, files)

    def exists(self, path: str) -> bool:
        return not self._life.is_dead and self._disk.exists(path)

    def list(self, path: str) -> Sequence[str]:
        return [] if self._life.is_dead else self._disk.list(path)

    def make_directory(self, path: str) -> None:
        self._life.act()
        if not self._life.is_dead:
            self._disk.make_directory(path)

    def rename(self, source: str, target: str) -> None:
        self._life.act()
        if not self._life.is_dead:
            self._disk.rename(source, target)

    def remove(self, path: str) -> None:
        self._life.act()
        if not self._life.is_dead:
            self._disk.remove(path)

    def usage(self, path: str) -> DiskUsage:
        return DiskUsage(0, 0) if self._life.is_dead else self._disk.usage(path)

    def close(self, path: str) -> None:
        if not self._life.is_dead:
            self._disk.close(path)


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
