"""What ext4 keeps when it is shut down without flushing is one of the things that the simulated disk may keep.

The file system lies in an image of its own and is ended by its ``shutdown`` ioctl, so that nothing goes to the medium
that had not gone there before. Needs root, loop devices and ``mkfs.ext4``; skipped without them. Not compared, because
the ioctl cannot bring it about: a write that reached the medium in part.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import struct
import subprocess
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from random import Random

import pytest

from nemesis.reference.adapters.disk import RealDisk
from nemesis.reference.ports import Disk
from nemesis.simulation.disk import SimulatedDisk
from tests.nemesis.simulation.conformance.disk_contents import lasting

EXT4_IOC_SHUTDOWN = 0x8004587D
NO_LOG_FLUSH = 2
IMAGE_BYTES = 16 << 20
PATHS = ("a", "b", "d/a", "d/b", "d/e/a")
DIRECTORIES = ("d", "d/e")
WIDE = 40
"""More than any history has steps: then it is a number of bytes."""

Step = Callable[[Disk, str], object]


def steps(rng: Random) -> list[Step]:
    """A random history of one disk, short enough for all that it may leave to be listed."""
    return [_step(rng) for _ in range(rng.randint(3, 12))]


def _step(rng: Random) -> Step:
    path, other = rng.choice(PATHS), rng.choice(PATHS)
    data, size = bytes([rng.randrange(256)]) * rng.randint(1, 9000), rng.randint(0, 9000)
    directory = rng.choice(DIRECTORIES)
    choices: list[Step] = [
        lambda disk, root: disk.files.append(f"{root}/{path}", data),
        lambda disk, root: disk.files.append(f"{root}/{path}", data),
        lambda disk, root: disk.files.append(f"{root}/{path}", data),
        lambda disk, root: disk.files.fsync(f"{root}/{path}"),
        lambda disk, root: disk.files.fsync(f"{root}/{path}"),
        lambda disk, root: disk.files.truncate(f"{root}/{path}", size),
        lambda disk, root: disk.atomic.replace(f"{root}/{path}", data),
        lambda disk, root: disk.directories.rename(f"{root}/{path}", f"{root}/{other}"),
        lambda disk, root: disk.directories.remove(f"{root}/{path}"),
        lambda disk, root: disk.directories.remove(f"{root}/{directory}"),
        lambda disk, root: disk.directories.make_directory(f"{root}/{directory}"),
        lambda disk, root: disk.directories.make_directory(f"{root}/{directory}"),
    ]
    return rng.choice(choices)


def run(history: list[Step], disk: Disk, root: str) -> None:
    for step in history:
        with contextlib.suppress(OSError):  # both disks refuse the same: another test sees to that
            step(disk, root)


class Enumerator(Random):
    """Instead of drawing, goes through all that could be drawn; of a wide range only through its ends."""

    def __init__(self) -> None:
        super().__init__(0)
        self.path: list[list[float]] = []
        """What can still be taken at each draw; the first is taken now."""
        self.depth = 0

    def randint(self, a: int, b: int) -> int:
        return int(self._take([a, b] if b - a > WIDE else range(a, b + 1)))

    def random(self) -> float:
        return self._take([0.99, 0.0])

    def _take(self, options: Iterable[float]) -> float:
        if self.depth == len(self.path):
            self.path.append(list(options))
        self.depth += 1
        return self.path[self.depth - 1][0]

    def advance(self) -> bool:
        """Go to the next combination; False after the last."""
        while self.path:
            self.path[-1].pop(0)
            if self.path[-1]:
                break
            self.path.pop()
        self.depth = 0
        return bool(self.path)


def outcomes(history: list[Step]) -> Iterator[dict[str, bytes]]:
    """What the simulated disk may hold after this history and a power cut."""
    choices = Enumerator()
    while True:
        disk = SimulatedDisk()
        run(history, disk, "")
        disk.power_cut(choices)
        yield disk.contents()
        if not choices.advance():
            return


class Ext4:
    """A small file system in an image, mounted."""

    def __init__(self, directory: Path) -> None:
        self.image = directory / "image"
        self.root = directory / "mounted"
        self.root.mkdir()
        with self.image.open("wb") as image:
            image.truncate(IMAGE_BYTES)
        subprocess.run(["mkfs.ext4", "-q", str(self.image)], check=True)

    def mount(self) -> bool:
        done = subprocess.run(
            ["mount", "-o", "loop", str(self.image), str(self.root)],
            check=False,
            capture_output=True,
        )
        return done.returncode == 0

    def unmount(self) -> None:
        subprocess.run(["umount", str(self.root)], check=True)

    def cut_power(self) -> None:
        handle = os.open(self.root, os.O_RDONLY)
        try:
            fcntl.ioctl(handle, EXT4_IOC_SHUTDOWN, struct.pack("I", NO_LOG_FLUSH))
        finally:
            os.close(handle)

    def contents(self) -> dict[str, bytes]:
        return {
            f"/{path.relative_to(self.root)}": path.read_bytes()
            for path in sorted(self.root.rglob("*"))
            if path.is_file()
        }


@pytest.fixture
def ext4(tmp_path: Path) -> Ext4:
    if os.geteuid() != 0 or shutil.which("mkfs.ext4") is None:
        pytest.skip("needs root and mkfs.ext4")
    file_system = Ext4(tmp_path)
    if not file_system.mount():
        pytest.skip("loop devices cannot be mounted here")
    file_system.unmount()
    return file_system


@pytest.mark.parametrize("seed", range(60))
def test_what_ext4_keeps_the_simulated_disk_may_keep(ext4: Ext4, seed: int) -> None:
    history = steps(Random(seed))
    assert ext4.mount()
    try:
        disk = RealDisk()
        run(history, disk, str(ext4.root))
        ext4.cut_power()
        disk.files.close(str(ext4.root))
    finally:
        ext4.unmount()
    assert ext4.mount()
    try:
        kept = lasting(ext4.contents())
    finally:
        ext4.unmount()
    assert any(kept == lasting(outcome) for outcome in outcomes(history))


def test_without_a_power_cut_there_is_one_outcome_for_what_is_synced() -> None:
    """The list of outcomes is no list of everything: it would allow anything then."""
    synced: list[Step] = [
        lambda disk, root: disk.files.append(f"{root}/a", b"one"),
        lambda disk, root: disk.files.fsync(f"{root}/a"),
    ]
    assert list(outcomes(synced)) == [{"/a": b"one"}]
    unsynced: list[Step] = [lambda disk, root: disk.files.append(f"{root}/a", b"two")]
    collected = {outcome["/a"] for outcome in outcomes(synced + unsynced)}
    assert collected == {
        b"one",
        b"one\0\0\0",
        b"onet",
        b"onet\0\0",
        b"onetw",
        b"onetw\0",
        b"onetwo",
    }
