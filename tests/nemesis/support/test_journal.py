"""A journal names what a run started; ``clean`` ends that of dead harnesses and nothing else. Real processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import psutil
import pytest

from nemesis.running.clean import clean
from nemesis.support.errors import MissingRequirement
from nemesis.support.journal import (
    MARKER,
    Journal,
    JournalEntry,
    ProcessRecord,
    read_journals,
    runtime_directory,
)

SLEEPER = [sys.executable, "-c", "import time; time.sleep(300)"]


@pytest.fixture(autouse=True)
def no_engine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """What dead harnesses have left at this machine's Docker engine is not these tests' business."""
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/no-engine.sock")


@pytest.fixture
def sleepers() -> Iterator[list[subprocess.Popen[bytes]]]:
    started: list[subprocess.Popen[bytes]] = []
    yield started
    for process in started:
        process.kill()
        process.wait()


def start(sleepers: list[subprocess.Popen[bytes]], journal_name: str | None) -> int:
    environment = {**os.environ} | ({MARKER: journal_name} if journal_name else {})
    process = subprocess.Popen(SLEEPER, env=environment)
    sleepers.append(process)
    return process.pid


def die(journal: Journal) -> None:
    """Make it look as if the harness of this journal had died: its pid now has another start time."""
    entry = msgspec.json.decode(journal.path.read_bytes(), type=JournalEntry)
    dead = ProcessRecord("harness", os.getpid(), entry.harness.created_s - 3600)
    journal.path.write_bytes(msgspec.json.encode(msgspec.structs.replace(entry, harness=dead)))


def test_a_journal_lists_what_is_left_to_undo(
    tmp_path: Path, sleepers: list[subprocess.Popen[bytes]]
) -> None:
    journal = Journal.create(tmp_path / "run", directory=tmp_path)
    first, second = start(sleepers, journal.name), start(sleepers, journal.name)
    journal.add_process("broker-1", first)
    journal.add_process("broker-2", second)
    journal.add_lease(tmp_path / "127.9.9")
    journal.remove_process(first)
    journal.add_engine_run("0a1b")
    [(path, entry)] = read_journals(tmp_path)
    assert path == journal.path
    assert entry is not None
    assert entry.run_directory == str(tmp_path / "run")
    assert [(p.name, p.pid) for p in entry.processes] == [("broker-2", second)]
    assert entry.leases == (str(tmp_path / "127.9.9"),)
    assert entry.engine_runs == ("0a1b",)
    journal.close()
    assert read_journals(tmp_path) == []


def test_clean_ends_what_a_dead_harness_left(
    tmp_path: Path, sleepers: list[subprocess.Popen[bytes]]
) -> None:
    journal = Journal.create(tmp_path / "run", directory=tmp_path)
    listed, unlisted = start(sleepers, journal.name), start(sleepers, journal.name)
    journal.add_process("broker-1", listed)
    sleepers[0].send_signal(signal.SIGSTOP)
    lease = tmp_path / "127.9.9"
    lease.write_text(journal.name)
    journal.add_lease(lease)
    die(journal)
    report = clean(tmp_path)
    assert report.runs == (str(tmp_path / "run"),)
    assert len(report.processes) == 2
    assert report.leases == (str(lease),)
    assert report.is_clean
    assert not lease.exists()
    assert not any(map(psutil.pid_exists, (listed, unlisted)))
    assert clean(tmp_path).runs == ()


def test_clean_leaves_a_live_harness_alone(
    tmp_path: Path, sleepers: list[subprocess.Popen[bytes]]
) -> None:
    journal = Journal.create(tmp_path / "run", directory=tmp_path)
    journal.add_process("broker-1", start(sleepers, journal.name))
    report = clean(tmp_path)
    assert (report.runs, report.processes, report.live_runs) == ((), (), 1)
    assert sleepers[0].poll() is None
    assert journal.path.exists()


@pytest.mark.parametrize("marker", [None, "another-journal"])
def test_clean_spares_a_stranger_with_a_listed_pid(
    marker: str | None, tmp_path: Path, sleepers: list[subprocess.Popen[bytes]]
) -> None:
    journal = Journal.create(tmp_path / "run", directory=tmp_path)
    journal.add_process("broker-1", start(sleepers, marker))
    die(journal)
    assert clean(tmp_path).processes == ()
    assert sleepers[0].poll() is None


def test_a_reused_pid_is_another_process(sleepers: list[subprocess.Popen[bytes]]) -> None:
    pid = start(sleepers, None)
    now = ProcessRecord.of("broker-1", pid)
    before = ProcessRecord("broker-1", pid, now.created_s - 3600)
    assert now.find() == psutil.Process(pid)
    assert before.find() is None


def test_a_damaged_journal_still_finds_its_processes(
    tmp_path: Path, sleepers: list[subprocess.Popen[bytes]]
) -> None:
    gone = subprocess.Popen(["true"])
    gone.wait()
    journal = Journal.create(tmp_path / "run", directory=tmp_path)
    damaged = journal.path.with_name(f"{gone.pid}-0123456789ab.json")
    damaged.write_bytes(b'{"name": "12')
    start(sleepers, damaged.stem)
    assert len(clean(tmp_path).processes) == 1
    assert not damaged.exists()
    assert sleepers[0].poll() is not None
    assert journal.path.exists()


def test_a_runtime_directory_that_cannot_be_made_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(MissingRequirement, match=r"the runtime directory .*/file cannot be made"):
        runtime_directory(tmp_path / "file")
