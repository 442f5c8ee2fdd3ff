"""``SimulatedDisk``: the ``Disk`` port in memory, with a page cache, a medium, and faults of both.

A disk belongs to a node and outlives its lives. A kill does nothing to it: what was written is in the page cache.
A power cut (``power_cut``) loses what was not synced, as ``nemesis.simulation.files`` describes. Not synced are
``append``, ``truncate``, ``remove`` and ``make_directory``; ``fsync``, ``replace`` and ``rename`` sync. A full disk
(``fill``) takes what still fits of a write and raises ENOSPC; a failing one (``fail``) raises EIO. Each incarnation
gets a view of its own (``fenced``), which does nothing once that incarnation is over.

Results and errors are those of ``nemesis.reference.adapters.disk.RealDisk`` on a local file system; a conformance test
compares them. Limits: a path has no ``..`` and no links; directories and empty files take no space; a full disk is
noticed by the write, not by a later sync; what a failed sync did not write may still be synced by a later one.
"""

from __future__ import annotations

import errno
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from random import Random

from nemesis.reference.ports import TEMPORARY, AtomicFiles, Directories, DiskUsage, Files
from nemesis.simulation.fenced_disk import FencedDisk, Mortal, one_by_one
from nemesis.simulation.files import Directory, File, Journal, Node
from nemesis.support import log_damage as damage
from nemesis.support.log_damage import Damage

_DIRECTORY_BYTES = 4096
VOLUME_BYTES = 1 << 40
"""Of a disk that is not full; more than any run writes."""


class Operation(StrEnum):
    """What a failing disk may fail at. Whatever changes a file or a name is a write."""

    READ = "read"
    WRITE = "write"
    FSYNC = "fsync"


ALL_OPERATIONS = frozenset(Operation)


@dataclass(frozen=True, slots=True)
class PowerLoss:
    """What a power cut took. ``unsynced_bytes`` were at risk, ``lost_bytes`` of written data are gone or zero."""

    unsynced_bytes: int
    lost_bytes: int
    lost_writes: int
    lost_names: int
    """Creations, removals and renames that were undone."""
    torn_files: tuple[str, ...]
    """Files that lost a tail besides, perhaps in the middle of a write."""


class SimulatedDisk:
    """Implements ``nemesis.reference.ports.Disk`` and is itself its three parts.

    Errors are OSErrors with the real disk's errno.
    """

    def __init__(self) -> None:
        self._root = Directory()
        self._journal = Journal()
        self._files_by_path: dict[str, File] = {}
        """Files by path, as long as no name was taken away: paths are looked up for every write."""
        self._capacity_bytes: int | None = None
        self._failing: tuple[list[str], frozenset[Operation]] | None = None
        self.refused: Counter[str] = Counter()
        """How many calls failed because of a fault, by the name of the errno, since the last ``heal``."""

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
        if self._failing is not None:
            self._require(Operation.WRITE, path)
        self._write(self._files_by_path.get(path) or self._open(path), data, path)

    def read(self, path: str, offset: int, size: int) -> bytes:
        if self._failing is not None:
            self._require(Operation.READ, path)
        file = self._files_by_path.get(path) or self._file(path)
        if offset < 0 or size < 0:
            raise _error(errno.EINVAL, path)
        with memoryview(file.data) as view:
            return bytes(view[offset : offset + size])

    def size(self, path: str) -> int:
        self._require(Operation.READ, path)
        node = self._existing(path)
        return len(node.data) if isinstance(node, File) else _DIRECTORY_BYTES

    def truncate(self, path: str, size: int) -> None:
        self._require(Operation.WRITE, path)
        file = self._file(path)
        if size < 0:
            raise _error(errno.EINVAL, path)
        if size != len(file.data):
            file.truncate(size, self._journal)

    def fsync(self, path: str) -> None:
        self._require(Operation.FSYNC, path)
        file = self._file(path)
        file.sync()
        self._journal.commit(file.changed_in)

    def replace(self, path: str, data: bytes) -> None:
        """Write a temporary file beside it, sync it, and rename it: the steps of the real disk."""
        self._require(Operation.WRITE, path)
        temporary = path + TEMPORARY
        file = self._open(temporary)
        if file.data:
            file.truncate(0, self._journal)
        self._write(file, data, temporary)
        self.fsync(temporary)
        self.rename(temporary, path)

    def replace_all(self, files: Mapping[str, bytes]) -> Mapping[str, OSError]:
        return one_by_one(self.replace, files)

    def exists(self, path: str) -> bool:
        self._require(Operation.READ, path)
        try:
            return self._node(path) is not None
        except NotADirectoryError:
            return False

    def list(self, path: str) -> Sequence[str]:
        self._require(Operation.READ, path)
        node = self._node(path)
        if isinstance(node, File):
            raise _error(errno.ENOTDIR, path)
        names = [] if node is None else node.entries
        return sorted(name for name in names if not name.endswith(TEMPORARY))

    def make_directory(self, path: str) -> None:
        self._require(Operation.WRITE, path)
        directory, names = self._root, _split(path)
        for depth, name in enumerate(names, 1):
            node = directory.entries.get(name)
            if node is None:
                node = Directory()
                self._journal.change((directory, name, node))
            elif isinstance(node, File):
                raise _error(errno.EEXIST if depth == len(names) else errno.ENOTDIR, path)
            directory = node

    def rename(self, source: str, target: str) -> None:
        self._require(Operation.WRITE, source)
        self._require(Operation.WRITE, target)
        origin, origin_name = self._parent_of(source)
        goal, goal_name = self._parent_of(target)
        node = self._existing(source)
        there = goal.entries.get(goal_name)
        if there is not node:
            number = _obstacle(node, _split(source), there, _split(target))
            if number:
                raise _error(number, target)
            self._journal.change((origin, origin_name, None), (goal, goal_name, node))
            self._files_by_path.clear()
        self._require(Operation.FSYNC, target)
        self._journal.commit(self._journal.position)

    def remove(self, path: str) -> None:
        self._require(Operation.WRITE, path)
        node = self._node(path)
        if node is not None:
            self._unlink(*self._parent_of(path), node)
            self._files_by_path.clear()

    def usage(self, path: str) -> DiskUsage:
        self._require(Operation.READ, path)
        self._existing(path)
        used = self._used_bytes()
        total = VOLUME_BYTES if self._capacity_bytes is None else self._capacity_bytes
        return DiskUsage(total, max(0, total - used))

    def close(self, path: str) -> None:
        """Nothing is kept open."""

    def power_cut(self, rng: Random) -> PowerLoss:
        """Lose what was not synced, as much of it as ``rng`` says. Nobody may be using the disk."""
        unsynced = sum(file.unsynced_bytes() for _, file in self._files())
        journalled, lost_names = self._journal.cut_power(rng)
        self._files_by_path.clear()
        lost_bytes, lost_writes, torn = 0, 0, []
        for path, file in self._files():
            remains = file.cut_power(rng, journalled)
            lost_bytes += remains.lost_bytes
            lost_writes += remains.lost_changes
            if remains.is_torn:
                torn.append(path)
        return PowerLoss(unsynced, lost_bytes, lost_writes, lost_names, tuple(torn))

    def unsynced_log_bytes(self) -> int:
        """Return how many bytes of the last segments of logs are not synced."""
        files = dict(self._files())
        return sum(files[path].unsynced_bytes() for path in damage.last_segments(files))

    def corrupt_tail(self, rng: Random) -> tuple[Damage, ...]:
        """Damage the last segments of logs behind what was synced; returns how. Nobody may be using the disk."""
        files = dict(self._files())
        done = []
        for path in damage.last_segments(files):
            file = files[path]
            synced = len(file.data) - file.unsynced_bytes()
            drawn = damage.draw(path, file.data, synced, rng)
            if drawn is not None:
                damage.inflict(file.data, drawn)
                done.append(drawn)
        return tuple(done)

    def fill(self, *, free_bytes: int = 0) -> None:
        """Let only that many bytes more be written; what is removed makes room again."""
        self._capacity_bytes = self._used_bytes() + free_bytes

    def fail(self, *, below: str = "", operations: frozenset[Operation] = ALL_OPERATIONS) -> None:
        """Let these operations raise EIO, for a path and all below it; without one for every path."""
        self._failing = (_split(below), operations)

    def heal(self) -> Counter[str]:
        """End ``fill`` and ``fail``; returns how many calls they made fail, by the name of the errno."""
        self._capacity_bytes = self._failing = None
        refused, self.refused = self.refused, Counter()
        return refused

    def probe(self, path: str = "") -> dict[str, str | None]:
        """Return for each operation the name of the errno that a file there would meet now; None for success.

        Changes nothing: neither the files nor what ``refused`` counts.
        """
        answers: dict[str, str | None] = {}
        for operation in Operation:
            is_failing = self._is_failing(operation, path)
            answers[operation.value] = errno.errorcode[errno.EIO] if is_failing else None
        if answers[Operation.WRITE] is None and self._free_bytes() == 0:
            answers[Operation.WRITE.value] = errno.errorcode[errno.ENOSPC]
        return answers

    def contents(self) -> dict[str, bytes]:
        """Return every file by its path, for comparisons."""
        return {path: bytes(file.data) for path, file in self._files()}

    def fenced(self, incarnation: Mortal) -> FencedDisk:
        """Return this disk as one incarnation sees it."""
        return FencedDisk(self, incarnation)

    def _write(self, file: File, data: bytes, path: str) -> None:
        fits = len(data)
        if self._capacity_bytes is not None:
            fits = min(fits, self._free_bytes() or 0)
        if fits:
            file.append(bytes(data[:fits]), self._journal)
        if fits < len(data):
            raise self._refusal(errno.ENOSPC, path)

    def _open(self, path: str) -> File:
        """Return the file, created if there is none."""
        directory, name = self._parent_of(path)
        node = directory.entries.get(name)
        if node is None:
            node = File(changed_in=self._journal.position + 1)
            self._journal.change((directory, name, node))
        elif isinstance(node, Directory):
            raise _error(errno.EISDIR, path)
        self._files_by_path[path] = node
        return node

    def _file(self, path: str) -> File:
        file = self._files_by_path.get(path)
        if file is None:
            node = self._existing(path)
            if isinstance(node, Directory):
                raise _error(errno.EISDIR, path)
            file = self._files_by_path[path] = node
        return file

    def _existing(self, path: str) -> Node:
        node = self._node(path)
        if node is None:
            raise _error(errno.ENOENT, path)
        return node

    def _node(self, path: str) -> Node | None:
        node: Node | None = self._root
        for name in _split(path):
            if isinstance(node, File):
                raise _error(errno.ENOTDIR, path)
            if node is None:
                return None
            node = node.entries.get(name)
        return node

    def _parent_of(self, path: str) -> tuple[Directory, str]:
        """Return the directory that holds the name, which need not be there yet."""
        *above, name = _split(path) or [""]
        parent = self._node("/".join(above))
        if parent is None:
            raise _error(errno.ENOENT, path)
        if isinstance(parent, File):
            raise _error(errno.ENOTDIR, path)
        return parent, name

    def _unlink(self, directory: Directory, name: str, node: Node) -> None:
        """Remove name by name, what is inside first: a power cut may come in between."""
        if isinstance(node, Directory):
            for below in sorted(node.entries):
                self._unlink(node, below, node.entries[below])
        self._journal.change((directory, name, None))

    def _files(self) -> Iterator[tuple[str, File]]:
        """Yield every file with its path, in order of the paths' names."""
        waiting: list[tuple[str, Node]] = [("", self._root)]
        while waiting:
            path, node = waiting.pop()
            if isinstance(node, File):
                yield path, node
            else:
                names = sorted(node.entries, reverse=True)
                waiting += [(f"{path}/{name}", node.entries[name]) for name in names]

    def _used_bytes(self) -> int:
        return sum(len(file.data) for _, file in self._files())

    def _free_bytes(self) -> int | None:
        if self._capacity_bytes is None:
            return None
        return max(0, self._capacity_bytes - self._used_bytes())

    def _require(self, operation: Operation, path: str) -> None:
        if self._failing is not None and self._is_failing(operation, path):
            raise self._refusal(errno.EIO, path)

    def _is_failing(self, operation: Operation, path: str) -> bool:
        if self._failing is None:
            return False
        below, operations = self._failing
        return operation in operations and _split(path)[: len(below)] == below

    def _refusal(self, number: int, path: str) -> OSError:
        self.refused[errno.errorcode[number]] += 1
        return _error(number, path)


def _obstacle(node: Node, source: list[str], there: Node | None, target: list[str]) -> int:
    """Return the errno of what is in the way of a rename; 0 when nothing is."""
    if target[: len(source)] == source:
        return errno.EINVAL
    if source[: len(target)] == target:
        return errno.ENOTEMPTY
    if isinstance(node, File):
        return errno.EISDIR if isinstance(there, Directory) else 0
    if isinstance(there, File):
        return errno.ENOTDIR
    return errno.ENOTEMPTY if there is not None and there.entries else 0


def _split(path: str) -> list[str]:
    return [name for name in path.split("/") if name not in ("", ".")]


def _error(number: int, path: str) -> OSError:
    return OSError(number, os.strerror(number), path)
