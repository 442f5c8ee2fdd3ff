"""The real disk: files of the operating system behind the ``Disk`` port.

Handles are kept open, least recently used first out, so a broker with thousands of partitions stays within its
limit of open files and an append costs one ``write()``. A disk that is dropped closes what it kept. Appends go to
the page cache: they survive the end of the process, not a power cut; ``fsync`` and ``replace`` do survive one.

Limits: one writer per file. A write that the medium cuts short (a full disk) raises and leaves the part that
fitted: the caller knows the length it had and truncates back to it.
"""

from __future__ import annotations

import ctypes
import os
import resource
import shutil
import weakref
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from nemesis.reference.ports import TEMPORARY, AtomicFiles, Directories, DiskUsage, Files

_MODE = 0o644
_MAX_HANDLES = 4096
_MAX_WRITERS = 16
_AT_FDCWD = -100
_RENAME_EXCHANGE = 2
_renameat2 = getattr(ctypes.CDLL(None), "renameat2", None)
"""Of Linux; Python has no name for it."""


def default_max_handles() -> int:
    """Half of what this process may open (sockets need the rest), at most 4096."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return _MAX_HANDLES
    return max(8, min(_MAX_HANDLES, soft // 2))


class RealDisk:
    """Implements ``nemesis.reference.ports.Disk`` and is itself its three parts.

    Errors are the operating system's OSErrors.
    """

    def __init__(self, *, max_handles: int | None = None) -> None:
        self._max_handles = max_handles if max_handles is not None else default_max_handles()
        self._handles: OrderedDict[str, int] = OrderedDict()
        weakref.finalize(self, _close_all, self._handles)
        self._created: set[str] = set()
        """Files whose directory entry has not been synced yet."""

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
        handle = self._handle(path, create=True)
        written = os.write(handle, data)
        if written < len(data):
            rest = memoryview(data)[written:]
            while rest:
                rest = rest[os.write(handle, rest) :]

    def read(self, path: str, offset: int, size: int) -> bytes:
        """Return up to ``size`` bytes: fewer only at the end of the file."""
        handle = self._handle(path, create=False)
        data = os.pread(handle, size, offset)
        if len(data) == size or not data:
            return data
        parts = [data]
        got = len(data)
        while got < size and (data := os.pread(handle, size - got, offset + got)):
            parts.append(data)
            got += len(data)
        return b"".join(parts)

    def size(self, path: str) -> int:
        return Path(path).stat().st_size

    def truncate(self, path: str, size: int) -> None:
        os.ftruncate(self._handle(path, create=False), size)

    def fsync(self, path: str) -> None:
        os.fsync(self._handle(path, create=False))
        if path in self._created:
            _fsync_parent(path)
            self._created.discard(path)

    def replace(self, path: str, data: bytes) -> None:
        self._forget(path)
        _replace(path, data)

    def replace_all(self, files: Mapping[str, bytes]) -> Mapping[str, OSError]:
        """Several threads wait for the medium: a journalling file system commits together what is due together."""
        for path in files:
            self._forget(path)
        failed: dict[str, OSError] = {}

        def replace_one(path: str) -> None:
            try:
                _replace(path, files[path])
            except OSError as error:
                failed[path] = error

        with ThreadPoolExecutor(min(_MAX_WRITERS, len(files)) or 1) as writers:
            list(writers.map(replace_one, files))
        return failed

    def exists(self, path: str) -> bool:
        return Path(path).exists()

    def list(self, path: str) -> Sequence[str]:
        try:
            names = [entry.name for entry in Path(path).iterdir()]
        except FileNotFoundError:
            return []
        return sorted(name for name in names if not name.endswith(TEMPORARY))

    def make_directory(self, path: str) -> None:
        Path(path).mkdir(parents=True, exist_ok=True)

    def rename(self, source: str, target: str) -> None:
        self.close(source)
        self.close(target)  # a handle kept for it would go on writing to what the rename replaces
        Path(source).rename(target)
        _fsync_parent(target)

    def remove(self, path: str) -> None:
        self.close(path)
        if Path(path).is_dir() and not Path(path).is_symlink():
            shutil.rmtree(path)
        else:
            Path(path).unlink(missing_ok=True)

    def usage(self, path: str) -> DiskUsage:
        volume = os.statvfs(path)
        return DiskUsage(volume.f_blocks * volume.f_frsize, volume.f_bavail * volume.f_frsize)

    def close(self, path: str) -> None:
        self._forget(path)
        below = f"{path}/"
        for kept in [name for name in self._handles if name.startswith(below)]:
            self._forget(kept)
        self._created = {name for name in self._created if not name.startswith(below)}

    def _forget(self, path: str) -> None:
        handle = self._handles.pop(path, None)
        if handle is not None:
            os.close(handle)
        self._created.discard(path)

    def _handle(self, path: str, *, create: bool) -> int:
        handle = self._handles.get(path)
        if handle is not None:
            self._handles.move_to_end(path)
            return handle
        flags = os.O_RDWR | os.O_APPEND | os.O_CLOEXEC
        try:
            handle = os.open(path, flags)
        except FileNotFoundError:
            if not create:
                raise
            handle = os.open(path, flags | os.O_CREAT, _MODE)
            self._created.add(path)
        while len(self._handles) >= self._max_handles:
            _, oldest = self._handles.popitem(last=False)
            os.close(oldest)
        self._handles[path] = handle
        return handle


def _replace(path: str, data: bytes) -> None:
    """Where the system can, old and new change places: to free the old file's blocks took a millisecond where the
    file system discards them at once, and the next replacement writes over it."""
    temporary = path + TEMPORARY
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, _MODE)
    try:
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(handle, rest) :]
        os.ftruncate(handle, len(data))
        os.fsync(handle)
    finally:
        os.close(handle)
    if not _exchange(temporary, path):
        Path(temporary).replace(path)
    _fsync_parent(path)


def _exchange(first: str, second: str) -> bool:
    """Let two files change names, at once or not at all; False where there is no second file or no such call."""
    if _renameat2 is None or Path(second).is_dir():
        return False
    arguments = (_AT_FDCWD, os.fsencode(first), _AT_FDCWD, os.fsencode(second), _RENAME_EXCHANGE)
    return bool(_renameat2(*arguments) == 0)


def _close_all(handles: OrderedDict[str, int]) -> None:
    while handles:
        _, handle = handles.popitem()
        os.close(handle)


def _fsync_parent(path: str) -> None:
    """Make the name last, not only the bytes."""
    handle = os.open(Path(path).parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
