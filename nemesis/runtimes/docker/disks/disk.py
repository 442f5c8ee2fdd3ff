"""``Disk``: what can happen to the disk of one broker, measured from outside by a probe of its own.

* A power cut (the broker has been killed) shuts the file system down without a flush, and mounts it again: the journal
  is replayed, and what had not been synced is gone.
* Full: a ballast file takes all the blocks that are free.
* Failed: the file system writes what it has in memory, and is shut down: every further call fails with EIO. Nothing
  that was written before is lost, for that would be a power cut.

Blocking; not for use by two threads at a time. Limits: a write that goes into the rest of a block which its file has
already succeeds on a full disk, as on any file system.
"""

from __future__ import annotations

import errno
import os
import time
from contextlib import suppress
from pathlib import Path

from nemesis.runtimes.docker.disks import ext4, loop
from nemesis.runtimes.docker.disks.errors import DiskError
from nemesis.runtimes.docker.disks.ext4 import Shutdown

SIZE_BYTES = 4 * 2**30
"""More than a run writes. The image is sparse: it takes of the host's disk what has been written."""

BALLAST = ".nemesis-ballast"
PROBE = ".nemesis-probe"
PROBE_BYTES = 4096
LOST_AND_FOUND = "lost+found"
FIRST_BALLAST_BYTES = 2**30
BLOCK_BYTES = 4096

REMOUNT_TIMEOUT_S = 15.0
"""Until the engine has let go of a dead container's mounts."""
POLL_INTERVAL_S = 0.02
EIO = errno.errorcode[errno.EIO]

Probe = dict[str, str | None]
"""By operation (``read``, ``write``, ``fsync``) the name of the errno that it meets; None for success."""


class Disk:
    """One disk, from its making to its end. Raises ``DiskError`` and OSError."""

    def __init__(self, device: str) -> None:
        """``device`` holds a file system; ``close`` when it is used no more."""
        self.device = device
        self._root = ext4.mount(device)
        self._is_shut_down = False

    @classmethod
    def make(cls, folder: Path, run_id: str, node: str, *, size_bytes: int = SIZE_BYTES) -> Disk:
        """Make the disk of a node, its bytes on the host's file system that has ``folder``."""
        image = folder / loop.image_name(run_id, node)
        try:
            ext4.make_file_system(image, size_bytes=size_bytes)
        except BaseException:
            image.unlink(missing_ok=True)
            raise
        disk = cls(loop.attach(image))
        os.rmdir(LOST_AND_FOUND, dir_fd=disk._root)  # Kafka takes no directory that is no log's
        return disk

    @property
    def is_shut_down(self) -> bool:
        """Whether it fails, or lost its power and did not come back."""
        return self._is_shut_down

    def holds(self, path: Path) -> bool:
        """Whether a file of any mount namespace is on this disk; raises OSError when there is none."""
        return path.stat().st_dev == os.fstat(self._root).st_dev

    def close(self) -> None:
        """Let the file system go. Idempotent."""
        if self._root >= 0:
            os.close(self._root)
            self._root = -1

    def probe(self) -> Probe:
        """Write, sync and read a block, and leave no trace of it."""
        answers: Probe = dict.fromkeys(("read", "write", "fsync"))
        try:
            file = os.open(PROBE, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, dir_fd=self._root)
        except OSError as error:
            return dict.fromkeys(answers, _name_of(error))
        try:
            for operation, call in (
                ("write", lambda: os.write(file, bytes(PROBE_BYTES))),
                ("fsync", lambda: os.fsync(file)),
                ("read", lambda: os.pread(file, PROBE_BYTES, 0)),
            ):
                try:
                    call()
                except OSError as error:
                    answers[operation] = _name_of(error)
        finally:
            os.close(file)
            with suppress(OSError):  # it has failed meanwhile: then the next probe removes it
                os.unlink(PROBE, dir_fd=self._root)
        return answers

    def fill(self) -> Probe:
        """Let it take no more; returns what a probe then meets."""
        ballast = os.open(BALLAST, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, dir_fd=self._root)
        try:
            size_bytes, more_bytes = 0, FIRST_BALLAST_BYTES
            while more_bytes >= BLOCK_BYTES:
                try:
                    os.posix_fallocate(ballast, size_bytes, more_bytes)
                except OSError as error:
                    if error.errno != errno.ENOSPC:
                        raise
                    more_bytes //= 2
                # What did not fit as a whole may have been allocated in part.
                size_bytes = os.fstat(ballast).st_size
        finally:
            os.close(ballast)
        return self.probe()

    def fail(self) -> Probe:
        """Let every call fail with EIO; returns what a probe then meets."""
        self._shut_down(Shutdown.SYNC_FIRST)
        return self.probe()

    def heal(self) -> Probe:
        """End both; returns what a probe then meets. Of a failed disk nobody else may have an open file."""
        if self._is_shut_down:
            self._remount()
        with suppress(FileNotFoundError):
            os.unlink(BALLAST, dir_fd=self._root)
        return self.probe()

    def cut_power(self) -> dict[str, int]:
        """Lose what was not synced; returns the ``lost_bytes`` and ``lost_names``. Nobody may have an open file."""
        before = self._sizes()
        self._shut_down(Shutdown.LOSE_UNSYNCED)
        self._remount()
        after = self._sizes()
        return {
            "lost_bytes": sum(
                max(0, size_bytes - after.get(path, 0)) for path, size_bytes in before.items()
            ),
            "lost_names": len(before.keys() - after.keys()),
        }

    def _shut_down(self, how: Shutdown) -> None:
        ext4.shut_down(self._root, how)
        self._is_shut_down = True
        if set(self.probe().values()) != {EIO}:
            raise DiskError(f"{self.device} still works after its shutdown")

    def _remount(self) -> None:
        """Mount it anew, which needs that all mounts of before are gone."""
        deadline = time.monotonic() + REMOUNT_TIMEOUT_S
        while True:
            self.close()
            self._root = ext4.mount(self.device)
            if EIO not in self.probe().values():
                self._is_shut_down = False
                return
            if time.monotonic() > deadline:
                raise DiskError(f"{self.device} does not come back: its file system is in use")
            time.sleep(POLL_INTERVAL_S)

    def _sizes(self) -> dict[str, int]:
        """Return the size of every file, by its path."""
        return {
            f"{folder}/{name}": os.stat(name, dir_fd=opened).st_size
            for folder, _, names, opened in os.fwalk(".", dir_fd=self._root)
            for name in names
        }


def _name_of(error: OSError) -> str:
    return errno.errorcode.get(error.errno or 0, str(error.errno))
