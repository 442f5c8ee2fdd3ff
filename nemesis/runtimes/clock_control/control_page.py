"""The control page: the file that tells the preloaded library how a node's wall clock goes.

One byte says which of two settings is in turn; each is three 64-bit integers in this machine's order: since when, how
far ahead of true time then, and what is gained from then on. The idle setting is written whole before its turn comes,
so that no reader sees half of one (``wall_clock.c`` is the reader). Each write is a system call of its own, which keeps
the two in order on every machine. One writer at a time.

The file is as old as its node: a new life of a node has the clock of the one before.
"""

from __future__ import annotations

import os
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Final

DIRECTORY: Final = "clocks"
"""In the directory of a run: a page for each node, called as the node."""

SETTING: Final = struct.Struct("=qqq")
SETTINGS_AT: Final = 8
SIZE_BYTES: Final = SETTINGS_AT + 2 * SETTING.size
TURNS: Final = 256
NS_PER_MS: Final = 1_000_000
PPB: Final = 1_000_000_000


@dataclass(frozen=True, slots=True)
class ClockSetting:
    """How a clock goes: at ``since_ns`` of true time, since 1970, it is so far ahead; from then on it drifts."""

    since_ns: int
    offset_ms: int
    drift: float


def create(path: Path) -> None:
    """Make the page of a clock that is right; raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(bytes(SIZE_BYTES))


def write(path: Path, setting: ClockSetting) -> None:
    """Let the clock go by this setting from now on; raises OSError."""
    packed = SETTING.pack(
        setting.since_ns, setting.offset_ms * NS_PER_MS, round(setting.drift * PPB)
    )
    page = os.open(path, os.O_RDWR)
    try:
        turn = (os.pread(page, 1, 0)[0] + 1) % TURNS
        os.pwrite(page, packed, SETTINGS_AT + (turn & 1) * SETTING.size)
        os.pwrite(page, bytes([turn]), 0)
    finally:
        os.close(page)


def is_mapped(path: Path, pid: int) -> bool:
    """Whether the kernel says that this process has this very page in its memory; False when the process is gone."""
    try:
        inode = str(path.stat().st_ino)
        maps = Path(f"/proc/{pid}/maps").read_text().splitlines()
    except OSError:
        return False
    return any(fields[1].endswith("s") and fields[4] == inode for fields in map(str.split, maps))
