"""Where brokers cannot have disks of their own, their faults are refused with the reason; the rest goes on."""

from __future__ import annotations

from pathlib import Path

import pytest

from nemesis.interfaces.disks import Disks, PowerSupply
from nemesis.interfaces.errors import FaultUnsupported
from nemesis.interfaces.runtime import missing_of
from nemesis.interfaces.unsupported import supported
from nemesis.runtimes.config import ClusterConfig
from nemesis.runtimes.docker import runtime as docker_runtime
from nemesis.runtimes.docker.packets.kernel import Feature
from nemesis.runtimes.docker.runtime import DockerRuntime

WHY = "this host has no loop devices"
DISK_PARTS = {Disks, PowerSupply}


def runtime_on(directory: Path, monkeypatch: pytest.MonkeyPatch, *, obstacle: str) -> DockerRuntime:
    monkeypatch.setattr(docker_runtime, "disk_obstacle", lambda: obstacle)
    config = ClusterConfig(broker_count=3, client_count=1, run_directory=directory)
    return DockerRuntime(config, frozenset(Feature))


def test_with_disks_it_can_break_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not missing_of(runtime_on(tmp_path, monkeypatch, obstacle="")).keys() & DISK_PARTS


def test_without_disks_it_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runtime = runtime_on(tmp_path, monkeypatch, obstacle=WHY)
    missing = missing_of(runtime)
    assert {missing[part].reason for part in DISK_PARTS} == {WHY}
    with pytest.raises(FaultUnsupported, match=WHY):
        supported(runtime.disks)
