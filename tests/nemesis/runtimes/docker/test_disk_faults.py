"""Where brokers cannot have disks of their own, their faults are refused with the reason; the rest goes on."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from nemesis.interfaces.runtime import Capability, FaultUnsupported
from nemesis.runtimes.config import ClusterConfig
from nemesis.runtimes.docker import runtime as docker_runtime
from nemesis.runtimes.docker.packets.kernel import Feature
from nemesis.runtimes.docker.runtime import DockerRuntime

WHY = "this host has no loop devices"
DISK_FAULTS = {Capability.POWER_CUT, Capability.DISK}


def runtime_on(directory: Path, monkeypatch: pytest.MonkeyPatch, *, obstacle: str) -> DockerRuntime:
    monkeypatch.setattr(docker_runtime, "disk_obstacle", lambda: obstacle)
    config = ClusterConfig(broker_count=3, client_count=1, run_directory=directory)
    return DockerRuntime(config, frozenset(Feature))


def test_with_disks_it_can_break_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert runtime_on(tmp_path, monkeypatch, obstacle="").capabilities >= DISK_FAULTS


def test_without_disks_it_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runtime = runtime_on(tmp_path, monkeypatch, obstacle=WHY)
    assert not runtime.capabilities & DISK_FAULTS
    assert {runtime.lacks[capability] for capability in DISK_FAULTS} == {WHY}
    for act in (runtime.power_cut, runtime.fill_disk, runtime.fail_disk, runtime.heal_disk):
        with pytest.raises(FaultUnsupported, match=f"cannot touch the disk of broker-1: {WHY}"):
            asyncio.run(act("broker-1"))
