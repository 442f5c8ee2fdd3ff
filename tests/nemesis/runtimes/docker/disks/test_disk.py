"""Disks of images, with a real ext4 on each. Needs root, loop devices and ``mkfs.ext4``; skipped without them."""

from __future__ import annotations

import errno
import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from nemesis.runtimes.docker.disks import disk as disks
from nemesis.runtimes.docker.disks import ext4, loop, obstacle
from nemesis.runtimes.docker.disks.disk import Disk
from nemesis.runtimes.docker.disks.errors import DiskError

needs_disks = pytest.mark.skipif(
    bool(why_not := obstacle.find_obstacle({})), reason=why_not or "there are disks"
)

SIZE_BYTES = 32 * 2**20
WORKS = {"read": None, "write": None, "fsync": None}


@pytest.fixture
def run_id() -> Iterator[str]:
    name = f"test-{uuid.uuid4().hex[:12]}"
    yield name
    for device in loop.devices_of(name):
        loop.detach(device)


@pytest.fixture
def disk(tmp_path: Path, run_id: str) -> Iterator[Disk]:
    made = Disk.make(tmp_path, run_id, "broker-1", size_bytes=SIZE_BYTES)
    yield made
    made.close()


@contextmanager
def files(disk: Disk) -> Iterator[Path]:
    """The files as a broker sees them: through a mount of its own, which goes when it dies."""
    root = ext4.mount(disk.device)
    try:
        yield Path(f"/proc/self/fd/{root}")
    finally:
        os.close(root)


def synced(path: Path, data: bytes) -> None:
    with path.open("wb") as file:
        file.write(data)
        os.fsync(file.fileno())


@needs_disks
def test_a_new_disk_is_empty_works_and_has_no_name(disk: Disk, tmp_path: Path, run_id: str) -> None:
    with files(disk) as root:
        assert list(root.iterdir()) == []
        assert disk.probe() == WORKS
        assert list(root.iterdir()) == []
        assert disk.holds(root)
    assert not disk.holds(tmp_path)
    assert list(tmp_path.iterdir()) == []
    assert loop.devices_of(run_id) == [disk.device]


@needs_disks
def test_a_power_cut_loses_what_was_not_synced(disk: Disk) -> None:
    with files(disk) as root:
        synced(root / "kept", b"k" * 5000)
        (root / "lost").write_bytes(b"l" * 7000)
        with (root / "kept").open("ab") as more:
            more.write(b"k" * 300)
    lost = disk.cut_power()
    assert lost == {"lost_bytes": 7300, "lost_names": 1}
    assert disk.probe() == WORKS
    with files(disk) as root:
        assert {path.name: path.stat().st_size for path in root.iterdir()} == {"kept": 5000}


@needs_disks
def test_a_full_disk_takes_nothing_more_until_it_is_healed(disk: Disk) -> None:
    with files(disk) as root:
        synced(root / "old", b"o" * 100)
        assert disk.fill() == {"read": None, "write": "ENOSPC", "fsync": None}
        with pytest.raises(OSError, match="No space left") as refused:
            (root / "new").write_bytes(bytes(4096))
        assert refused.value.errno == errno.ENOSPC
        assert disk.heal() == WORKS
        (root / "new").write_bytes(bytes(2**20))
        assert {path.name for path in root.iterdir()} == {"old", "new"}
        assert (root / "old").read_bytes() == b"o" * 100


@needs_disks
def test_a_failed_disk_refuses_everything_and_has_lost_nothing(disk: Disk) -> None:
    with files(disk) as root:
        (root / "unsynced").write_bytes(b"u" * 9000)
        assert disk.fail() == dict.fromkeys(WORKS, "EIO")
        for use in (Path.read_bytes, lambda path: path.write_bytes(b"x")):
            with pytest.raises(OSError, match="Input/output error"):
                use(root / "unsynced")
    assert disk.heal() == WORKS
    with files(disk) as root:
        assert (root / "unsynced").read_bytes() == b"u" * 9000


@needs_disks
def test_a_disk_that_somebody_keeps_open_does_not_come_back(
    disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(disks, "REMOUNT_TIMEOUT_S", 0.05)
    disk.fail()
    with files(disk), pytest.raises(DiskError, match=f"{disk.device} does not come back"):
        disk.heal()
    assert disk.heal() == WORKS


@needs_disks
def test_only_the_devices_of_one_run_are_its_own(tmp_path: Path, run_id: str, disk: Disk) -> None:
    other = f"{run_id}x"
    others = Disk.make(tmp_path, other, "broker-1", size_bytes=SIZE_BYTES)
    try:
        disk.close()
        loop.detach(disk.device)
        assert loop.devices_of(run_id) == []
        assert loop.devices_of(other) == [others.device]
        assert others.probe() == WORKS
    finally:
        others.close()
        loop.detach(others.device)


@needs_disks
def test_a_device_in_use_is_said_to_be(
    disk: Disk, run_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loop, "DETACH_TIMEOUT_S", 0.05)
    with files(disk):
        disk.close()
        with pytest.raises(DiskError, match=f"{disk.device} is in use"):
            loop.detach(disk.device)
    assert loop.devices_of(run_id) == []


@needs_disks
def test_looking_for_obstacles_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    name = uuid.uuid4()
    monkeypatch.setattr(uuid, "uuid4", lambda: name)
    assert obstacle.find_obstacle({"SecurityOptions": ["name=seccomp,profile=default"]}) == ""
    assert loop.devices_of(name.hex[:12]) == []


def test_what_is_missing_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert "only with root's rights" in obstacle.find_obstacle({})
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert "users of their own" in obstacle.find_obstacle({"SecurityOptions": ["name=userns"]})
    monkeypatch.setenv("PATH", str(tmp_path))
    assert obstacle.find_obstacle({}).endswith("mkfs.ext4 cannot be run: No such file or directory")


def test_a_command_that_fails_is_quoted() -> None:
    with pytest.raises(DiskError, match=r"ls /nowhere failed: .*No such file"):
        loop.run("ls", "/nowhere")
