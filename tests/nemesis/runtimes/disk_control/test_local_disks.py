"""The disks of brokers on one machine: what a probe meets is measured under the broker's own commands."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from nemesis.interfaces.errors import RuntimeFailure
from nemesis.runtimes.disk_control.faulty_disk import FaultyDisk
from nemesis.runtimes.disk_control.local_disks import LocalDisks

NODE = "broker-1"
NOTHING = {"read": None, "write": None, "fsync": None}
EIO = dict.fromkeys(NOTHING, "EIO")


@pytest.fixture
def log_dirs(tmp_path: Path) -> list[Path]:
    collected = [tmp_path / "data" / name for name in ("a", "b")]
    for log_dir in collected:
        log_dir.mkdir(parents=True)
    return collected


@pytest.fixture
def disks(tmp_path: Path) -> LocalDisks:
    disks = LocalDisks(tmp_path, seed=1)
    disks.create(NODE)
    return disks


def test_what_a_broken_disk_meets_is_measured_and_its_refusals_are_counted(
    disks: LocalDisks, log_dirs: list[Path]
) -> None:
    broker = FaultyDisk(disks.directory(NODE))  # this process has the page
    file = str(log_dirs[0] / "f")
    assert disks.fill(NODE, os.getpid(), log_dirs) == {**NOTHING, "write": "ENOSPC"}
    with pytest.raises(OSError, match="No space left"):
        broker.append(file, b"x")
    assert disks.heal(NODE, log_dirs) == {**NOTHING, "refused": {"ENOSPC": 1}}
    broker.append(file, b"x")
    assert disks.fail(NODE, os.getpid(), log_dirs) == EIO
    assert disks.heal(NODE, log_dirs) == {**NOTHING, "refused": {}}
    assert sorted(path.name for log_dir in log_dirs for path in log_dir.iterdir()) == ["f"]


def test_one_directory_fails_alone(disks: LocalDisks, log_dirs: list[Path]) -> None:
    broker = FaultyDisk(disks.directory(NODE))
    met = disks.fail_log_dir(NODE, os.getpid(), log_dirs, 3)
    assert met == {**EIO, "log_dir": str(log_dirs[1]), "others": NOTHING}
    broker.append(str(log_dirs[0] / "f"), b"x")
    with pytest.raises(OSError, match="Input/output error"):
        broker.append(str(log_dirs[1] / "f"), b"x")


def test_of_a_process_that_does_not_have_the_orders_nothing_is_said(
    disks: LocalDisks, log_dirs: list[Path]
) -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as stranger:
        assert disks.fill(NODE, stranger.pid, log_dirs) == {"obeyed": False}
        stranger.communicate(b"\n")


def test_a_disk_that_is_not_there_is_named(disks: LocalDisks, log_dirs: list[Path]) -> None:
    with pytest.raises(RuntimeFailure, match="there is no disk of 'broker-9'"):
        disks.fill("broker-9", os.getpid(), log_dirs)
