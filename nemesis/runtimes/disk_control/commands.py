"""How the harness makes a disk in another process fail: a file with the command, and a page that both map into memory.

The first byte of the page counts commands. A disk reads it before each call, without a system call, and reads the
command file again when the count has changed. A command is complete before its count. Behind that byte the disk counts
the calls that it has refused. One process writes each of the two parts.

The files are as old as their node: a new life of a broker finds its disk as it was.
"""

from __future__ import annotations

import errno
import mmap
import os
import struct
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import msgspec

COMMAND: Final = "command.json"
PAGE: Final = "page"
TURNS: Final = 256
_COUNTS: Final = struct.Struct("=QQ")
_COUNTS_AT: Final = 8
_PAGE_BYTES: Final = _COUNTS_AT + _COUNTS.size
COUNTED: Final = (errno.ENOSPC, errno.EIO)


class DiskCommand(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a disk is to do from now on."""

    error: int = 0
    """The errno that calls meet: ENOSPC by those that need room, EIO by all; 0 for none."""
    below: tuple[str, ...] = ()
    """The directories that fail; without any the whole disk."""

    def concerns(self, path: str) -> bool:
        """Whether a call for this path is met by the error, if it is of the kind that is."""
        if not self.below:
            return True
        return any(path == below or path.startswith(f"{below}/") for below in self.below)


HEALTHY: Final = DiskCommand()


class DiskCommands:
    """The files of one node's disk, as either side sees them. All methods raise OSError."""

    def __init__(self, directory: Path) -> None:
        """Open what ``create`` has made."""
        self._command = directory / COMMAND
        handle = os.open(directory / PAGE, os.O_RDWR | os.O_CLOEXEC)
        try:
            self._page = mmap.mmap(handle, _PAGE_BYTES)
        finally:
            os.close(handle)

    @classmethod
    def create(cls, directory: Path) -> DiskCommands:
        """Make them, for a disk that works."""
        directory.mkdir(parents=True, exist_ok=True)
        (directory / PAGE).write_bytes(bytes(_PAGE_BYTES))
        (directory / COMMAND).write_bytes(msgspec.json.encode(HEALTHY))
        return cls(directory)

    @property
    def turn(self) -> int:
        """Another one when there is another command."""
        return self._page[0]

    def read(self) -> DiskCommand:
        """Return the command."""
        return msgspec.json.decode(self._command.read_bytes(), type=DiskCommand)

    def give(self, command: DiskCommand) -> None:
        """Let the disk do this from its next call on."""
        draft = self._command.with_suffix(".draft")
        draft.write_bytes(msgspec.json.encode(command))
        draft.replace(self._command)
        self._page[0] = (self._page[0] + 1) % TURNS

    def count(self, errors: Iterable[int]) -> None:
        """Note that calls were refused with these; those of the disk's own process only."""
        counts = dict(zip(COUNTED, _COUNTS.unpack_from(self._page, _COUNTS_AT), strict=True))
        for error in errors:
            counts[error] += 1
        _COUNTS.pack_into(self._page, _COUNTS_AT, *counts.values())

    def counted(self) -> Counter[str]:
        """Return how many calls were refused since the disk was made, by the name of the errno."""
        counts = _COUNTS.unpack_from(self._page, _COUNTS_AT)
        return Counter({errno.errorcode[e]: n for e, n in zip(COUNTED, counts, strict=True) if n})
