"""Which bytes of which files have not been synced: written down while they are written, taken when the power is cut.

A process that is killed leaves all it wrote in the kernel's memory, so a power cut on a machine that stays up must be
made: the harness kills the process, and then cuts each file to what had been synced. To know that it needs a record as
old as the files, which outlives the process: a line when a file gets its first unsynced byte, before that byte, and a
line when it is synced, after that. A file in between has the length noted, and what lies beyond it is at risk.

What is taken is one of the outcomes that a file system with ordered metadata allows (``nemesis.simulation.files`` draws
from all of them): names and truncations have reached the medium, of each file's unsynced bytes a random part has, and
where the rest was there are zeros, or nothing.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Final, NamedTuple

import msgspec

RECORD: Final = "unsynced.jsonl"


class _Line(NamedTuple):
    """``synced`` bytes of the file are safe; None: all that it has."""

    path: str
    synced: int | None


_decode_line = msgspec.json.Decoder(_Line).decode


@dataclass(frozen=True, slots=True)
class Loss:
    """What a power cut took, as ``Runtime.power_cut`` tells it."""

    unsynced_bytes: int
    lost_bytes: int
    torn_files: list[str]


class Unsynced:
    """The record of one disk, kept by the process that has the disk; raises OSError."""

    def __init__(self, directory: Path) -> None:
        """Go on where the process before has ended: its bytes are in the kernel's memory, and not synced."""
        self.safe = dict(read(directory))
        """By path, how many bytes of a file are synced, where that is not the whole file."""
        draft = directory / f"{RECORD}.draft"
        draft.write_bytes(b"".join(_encoded(_Line(*known)) for known in self.safe.items()))
        draft.replace(directory / RECORD)
        self._record = os.open(directory / RECORD, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)

    def begin(self, path: str, size: int) -> None:
        """What will be written beyond this size is not synced."""
        self.safe[path] = size
        self._write(_Line(path, size))

    def cut(self, path: str, size: int) -> None:
        """The file has become this short."""
        if self.safe.get(path, 0) > size:
            self.begin(path, size)

    def end(self, path: str) -> None:
        """The file is synced, or no more."""
        if self.safe.pop(path, None) is not None:
            self._write(_Line(path, None))

    def end_below(self, path: str) -> None:
        """The same for a file or all files of a directory."""
        for file in self._with(path):
            self.end(file)

    def move(self, source: str, target: str) -> None:
        """A file or a directory has another name."""
        self.end_below(target)
        for file in self._with(source):
            size = self.safe[file]
            self.begin(target + file.removeprefix(source), size)
            self.end(file)

    def _with(self, path: str) -> list[str]:
        return [file for file in self.safe if file == path or file.startswith(f"{path}/")]

    def _write(self, line: _Line) -> None:
        os.write(self._record, _encoded(line))


def _encoded(line: _Line) -> bytes:
    return msgspec.json.encode(line) + b"\n"


def read(directory: Path) -> Iterator[tuple[str, int]]:
    """Yield each file that is not synced, and how many of its bytes are; nothing where there is no record."""
    safe: dict[str, int] = {}
    try:
        lines = (directory / RECORD).read_bytes().splitlines(keepends=True)
    except FileNotFoundError:
        return
    for line in lines:
        if not line.endswith(b"\n"):
            break  # its writer was killed before it wrote what the line announces
        path, synced = _decode_line(line)
        if synced is None:
            safe.pop(path, None)
        else:
            safe[path] = synced
    yield from safe.items()


def lose(directory: Path, rng: Random) -> Loss:
    """Take what is not synced, and begin a new record; nobody may be using the disk. Raises OSError."""
    unsynced, lost, torn = 0, 0, []
    for name, safe in sorted(read(directory)):
        path = Path(name)
        if not path.exists():
            continue
        size = path.stat().st_size
        kept = rng.randint(min(safe, size), size)
        if rng.random() < 0.5:
            kept = min(safe, size)
        with path.open("r+b") as file:
            file.truncate(kept)
            if rng.random() < 0.25:  # the length had reached the medium, the bytes had not
                file.truncate(size)
        unsynced += max(0, size - safe)
        lost += size - kept
        if safe < kept < size:
            torn.append(name)
    (directory / RECORD).unlink(missing_ok=True)
    return Loss(unsynced, lost, torn)
