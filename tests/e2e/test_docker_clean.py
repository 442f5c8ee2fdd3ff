"""A harness that dies in the middle of faults: ``nemesis clean`` removes what it left, and nothing else."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from nemesis.running.clean import clean
from nemesis.runtimes.docker import labels
from nemesis.runtimes.docker.bridge import device
from nemesis.runtimes.docker.disks import loop
from nemesis.runtimes.docker.disks.disk import Disk
from nemesis.runtimes.docker.machine import disk_obstacle
from nemesis.support.journal import Journal, read_journals
from tests.e2e.command import processes_of
from tests.e2e.docker_machine import build_image, engine, needs_docker, things

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(180, func_only=True), needs_docker]

HARNESS = textwrap.dedent(
    """
    import asyncio, sys
    from pathlib import Path
    from nemesis.interfaces.links import Link
    from nemesis.runtimes.config import ClusterConfig
    from nemesis.runtimes.docker.machine import packet_features
    from nemesis.runtimes.docker.runtime import DockerRuntime
    from nemesis.interfaces.impairment import Impairment
    from nemesis.interfaces.unsupported import Unsupported

    async def main(features) -> None:
        run = Path(sys.argv[1])
        run.mkdir()
        runtime = DockerRuntime(
            ClusterConfig(broker_count=1, client_count=1, run_directory=run), features
        )
        await runtime.lifecycle.start()
        await runtime.network.cut(frozenset({Link("client-1", "broker-1"), Link("zookeeper-2", "broker-1")}))
        await runtime.packets.impair(frozenset({Link("client-1", "zookeeper-1")}), Impairment(delay_ms=10))
        await runtime.network.bandwidth.limit("zookeeper-1", rate_kbit_s=8_000)
        await runtime.processes.pause("zookeeper-3")
        if not isinstance(runtime.disks, Unsupported):
            await runtime.disks.fill("broker-1")
            await runtime.disks.fail("broker-1")
        print("up", flush=True)
        await asyncio.Event().wait()

    asyncio.run(main(packet_features()))
    """
)


NODES = 4
"""Three members of the ensemble, and a broker."""

ALWAYS_THERE = ("devices", "processes", "rules", "mounts")
"""Helpers end by themselves when their harness is gone; disks are where the machine can have them."""


@pytest.fixture(scope="module", autouse=True)
def _image() -> None:
    build_image()


@pytest.fixture(autouse=True)
def _surroundings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("NEMESIS_RUNTIME_DIR", str(tmp_path / "runtime"))
    yield
    clean()  # when a test failed


@pytest.fixture
def bystanders() -> Iterator[list[str]]:
    """A live run's network, one that a person brought up, and one that is not ours at all."""
    own = {labels.RUN: "live", **labels.harness_labels(Path("/nowhere"))}
    made = []
    with engine() as client:
        try:
            for name, marks in (
                ("nemesis-test-live", own),
                ("nemesis-test-by-hand", {labels.RUN: "by-hand"}),
                ("nemesis-test-foreign", {}),
            ):
                made.append(client.volumes.create(name, labels=marks))
            yield [str(volume.name) for volume in made]
        finally:
            for volume in made:
                volume.remove()


@pytest.fixture
def somebodys_disk(tmp_path: Path) -> Iterator[str]:
    """A disk of a run that lives; none where the machine cannot have any."""
    if disk_obstacle():
        yield ""
        return
    disk = Disk.make(tmp_path, "live", "broker-1", size_bytes=32 * 2**20)
    yield disk.device
    disk.close()
    loop.detach(disk.device)


def killed_harness(run: Path) -> str:
    """Let a harness bring a cluster up and die; return its run's id."""
    harness = subprocess.Popen(
        [sys.executable, "-c", HARNESS, str(run)], stdout=subprocess.PIPE, env=os.environ
    )
    assert harness.stdout is not None
    with harness, harness.stdout:
        try:
            assert harness.stdout.readline() == b"up\n"
            [(_, entry)] = read_journals()
            assert entry is not None
            (run_id,) = entry.engine_runs
            before = things(run_id)
            assert clean().live_runs == 1
            assert things(run_id) == before, "a live run is left alone"
        finally:
            harness.kill()
    return run_id


@dataclass(frozen=True)
class InTheKernel:
    """What the kernel has of a run, containers or not, by kind: each a list of words that say what it is."""

    bridge: str
    pids: list[int]
    words: list[str]
    """That the lines of its mounts have in them."""
    journals: set[str]

    @classmethod
    def of(cls, run_id: str, run: Path) -> InTheKernel:
        only: dict[str, str | list[str] | bool] = {"label": f"{labels.RUN}={run_id}"}
        with engine() as client:
            (bridge,) = client.networks.list(filters=only)
            attributes = [
                c.attrs for c in client.containers.list(all=True, ignore_removed=True, filters=only)
            ]
        layers = [attribute["GraphDriver"]["Data"]["MergedDir"] for attribute in attributes]
        namespaces = [
            Path(attribute["NetworkSettings"]["SandboxKey"]).name for attribute in attributes
        ]
        return cls(
            bridge=device(bridge),
            pids=[int(attribute["State"]["Pid"]) for attribute in attributes],
            words=[*layers, *namespaces, run_id, f"{run}/"],
            journals={path.stem for path, _ in read_journals()},
        )

    def found(self) -> dict[str, list[str]]:
        """Return what of it is there."""
        rules = subprocess.run(["iptables-save"], capture_output=True, text=True, check=True).stdout
        mounts = Path("/proc/self/mountinfo").read_text()
        backing = [path.read_text() for path in Path("/sys/block").glob("loop*/loop/backing_file")]
        helpers = [str(process.pid) for process in processes_of(self.journals)]
        return {
            "devices": [name for name in psutil.net_if_addrs() if name == self.bridge],
            "processes": [str(pid) for pid in self.pids if psutil.pid_exists(pid)],
            "helpers": helpers,
            "disks": [file for file in backing if self._is_named_in(file)],
            "rules": [line for line in rules.splitlines() if self.bridge in line],
            "mounts": [line for line in mounts.splitlines() if self._is_named_in(line)],
        }

    def _is_named_in(self, line: str) -> bool:
        return any(word in line for word in self.words)


def test_clean_removes_everything_of_a_dead_harness_and_nothing_else(
    tmp_path: Path, bystanders: list[str], somebodys_disk: str
) -> None:
    run = tmp_path / "run"
    run_id = killed_harness(run)
    kernel = InTheKernel.of(run_id, run)
    objects = kernel.found()
    assert all(objects[kind] for kind in ALWAYS_THERE), objects
    assert len(objects["processes"]) == NODES
    expected = things(run_id)

    report = clean()

    assert report.is_clean
    assert report.lost == ()
    assert str(run) in report.runs
    assert set(expected) <= set(report.engine)
    assert things(run_id) == []
    assert loop.devices_of("live") == [somebodys_disk] * bool(somebodys_disk)
    assert not any(kernel.found().values()), kernel.found()
    assert read_journals() == []
    with engine() as client:
        assert {volume.name for volume in client.volumes.list()} >= set(bystanders)
    # What the dead harness's cluster recorded is worth having: it can be judged.
    assert (run / "raw" / "broker-1.jsonl").stat().st_size > 0
    assert list((run / "raw" / "zookeeper" / "zookeeper-3" / "version-2").glob("log.*"))
    assert str(run) not in clean().runs


def test_clean_finds_a_dead_harness_without_its_journal(tmp_path: Path) -> None:
    run_id = killed_harness(tmp_path / "run")
    [(journal, _)] = read_journals()
    journal.unlink()
    assert run_id in clean().runs
    assert things(run_id) == []


def test_without_an_engine_a_journal_that_needs_one_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = Journal.create(tmp_path / "run")
    journal.add_engine_run("0a1b")
    dead = subprocess.Popen(["true"])
    dead.wait()
    orphaned = journal.path.with_name(f"{dead.pid}-0123456789ab.json")
    text = journal.path.read_text().replace(f'"pid":{os.getpid()}', f'"pid":{dead.pid}')
    orphaned.write_text(text)
    journal.close()
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/nobody.sock")
    report = clean()
    assert not report.is_clean
    assert "0a1b" in report.survivors[0]
    assert orphaned.exists()
    monkeypatch.delenv("DOCKER_HOST")
    assert clean().is_clean
    assert not orphaned.exists()
