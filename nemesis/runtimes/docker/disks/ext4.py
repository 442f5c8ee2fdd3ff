"""An ext4 file system: made, mounted without a place, shut down.

A mount of ``fsmount`` is in no mount namespace; it ends with the last file that is open on it. No command offers that,
so the system calls are made directly; glibc has names for them since 2.36 only. Source: fsopen(2), fsmount(2).

``shut_down`` is the call that file systems have for tests of power loss. From then on everything that would touch the
medium fails with EIO, until the last mount has gone and a new one replays the journal. Source: ``EXT4_IOC_SHUTDOWN``
in the kernel's ``fs/ext4/ioctl.c``.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import struct
from enum import IntEnum
from pathlib import Path

from nemesis.runtimes.docker.disks.loop import run

FSOPEN, FSCONFIG, FSMOUNT = 430, 431, 432
"""The same numbers on every architecture, as all system calls since Linux 5.1 have."""
CLOSE_ON_EXEC = 1
SET_FLAG, SET_STRING, CREATE = 0, 1, 6
"""What ``fsconfig`` is to do."""

EXT4_IOC_SHUTDOWN = 0x8004587D

_libc = ctypes.CDLL(None, use_errno=True)


class Shutdown(IntEnum):
    """What becomes of that which is in memory only."""

    SYNC_FIRST = 0
    LOSE_UNSYNCED = 2


def make_file_system(image: Path, *, size_bytes: int) -> None:
    """Make a sparse image of this size; all of it is for everybody, nothing is reserved for root.

    Raises ``DiskError`` and OSError.
    """
    with image.open("xb") as file:
        file.truncate(size_bytes)
    # The image is new, so what would be set to zero is zero.
    fresh = "lazy_itable_init=1,lazy_journal_init=1,nodiscard"
    run("mkfs.ext4", "-q", "-F", "-m", "0", "-E", fresh, str(image))


def mount(device: str) -> int:
    """Return an open directory: the root of the file system on a device. Raises OSError."""
    context = _call(FSOPEN, b"ext4", CLOSE_ON_EXEC)
    try:
        _call(FSCONFIG, context, SET_STRING, b"source", device.encode(), 0)
        _call(FSCONFIG, context, SET_FLAG, b"noinit_itable", None, 0)  # they are zero already
        _call(FSCONFIG, context, CREATE, None, None, 0)
        mounted = _call(FSMOUNT, context, CLOSE_ON_EXEC, 0)
    finally:
        os.close(context)
    try:
        return os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=mounted)
    finally:
        os.close(mounted)


def shut_down(root: int, how: Shutdown) -> None:
    """Shut the file system down for everybody who has it mounted; raises OSError."""
    fcntl.ioctl(root, EXT4_IOC_SHUTDOWN, struct.pack("I", how))


def _call(number: int, *arguments: bytes | int | None) -> int:
    wide = (ctypes.c_long(a) if isinstance(a, int) else ctypes.c_char_p(a) for a in arguments)
    result = int(_libc.syscall(ctypes.c_long(number), *wide))
    if result < 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
    return result
