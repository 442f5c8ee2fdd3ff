"""Real processes: each step is measured, in the order in which faults use them."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import psutil
import pytest

from nemesis.interfaces.errors import RuntimeFailure
from nemesis.runtimes.local.node_process import NodeProcess
from nemesis.support.journal import Journal, read_journals

BOUND_S = 10.0
SLEEP = [sys.executable, "-c", "import time; print('up', flush=True); time.sleep(300)"]
STUBBORN = [
    sys.executable,
    "-c",
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('deaf', flush=True); time.sleep(300)",
]


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    return Journal.create(tmp_path, directory=tmp_path)


def journaled(tmp_path: Path) -> list[str]:
    [(_, entry)] = read_journals(tmp_path)
    assert entry is not None
    return [process.name for process in entry.processes]


def node(tmp_path: Path, journal: Journal, command: list[str] = SLEEP) -> NodeProcess:
    return NodeProcess("broker-1", command, log=tmp_path / "logs" / "x.log", journal=journal)


def test_kill_and_start_again(tmp_path: Path, journal: Journal) -> None:
    async def scene() -> None:
        process = node(tmp_path, journal)
        process.start()
        first = process.pid
        assert journaled(tmp_path) == ["broker-1"]
        assert await process.kill() == {"pid": first, "dead": True}
        assert not psutil.pid_exists(first)
        assert not process.is_alive
        assert journaled(tmp_path) == []
        with pytest.raises(RuntimeFailure, match="broker-1 cannot be killed: it is not running"):
            await process.kill()
        process.start()
        assert process.pid != first
        assert psutil.pid_exists(process.pid)
        with pytest.raises(RuntimeFailure, match="broker-1 is running already"):
            process.start()
        await process.stop()
        assert not process.is_alive

    asyncio.run(scene())


def test_a_process_that_is_asked_ends_or_is_killed_after_the_grace(
    tmp_path: Path, journal: Journal
) -> None:
    async def scene() -> None:
        for command, grace_s, signal in ((SLEEP, 20.0, "SIGTERM"), (STUBBORN, 0.01, "SIGKILL")):
            process = node(tmp_path, journal, command)
            process.start()
            if command is STUBBORN:
                async with asyncio.timeout(BOUND_S):
                    while "deaf" not in (tmp_path / "logs" / "x.log").read_text():
                        await asyncio.sleep(0.01)
            pid = process.pid
            ended = await process.terminate(grace_s=grace_s)
            assert ended == {"pid": pid, "dead": True, "ended_by": signal}
            assert not psutil.pid_exists(pid)
            assert journaled(tmp_path) == []
            with pytest.raises(RuntimeFailure, match="broker-1 cannot be asked to end"):
                await process.terminate(grace_s=grace_s)

    asyncio.run(scene())


def test_a_paused_process_exists_and_can_be_resumed(tmp_path: Path, journal: Journal) -> None:
    async def scene() -> None:
        process = node(tmp_path, journal)
        process.start()
        assert await process.pause() == {"pid": process.pid, "paused": True}
        assert process.is_alive
        assert psutil.Process(process.pid).status() == psutil.STATUS_STOPPED
        assert await process.resume() == {"pid": process.pid, "paused": False}
        assert psutil.Process(process.pid).status() != psutil.STATUS_STOPPED
        await process.kill()

    asyncio.run(scene())


def test_a_paused_process_can_be_killed_and_stopped(tmp_path: Path, journal: Journal) -> None:
    async def scene() -> None:
        process = node(tmp_path, journal)
        process.start()
        await process.pause()
        await process.kill()
        process.start()
        await process.pause()
        await process.stop()
        assert not process.is_alive
        await process.stop()
        assert journaled(tmp_path) == []

    asyncio.run(scene())


def test_one_that_ignores_sigterm_is_killed(
    tmp_path: Path, journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scene() -> None:
        process = node(tmp_path, journal, STUBBORN)
        process.start()
        await process.stop()
        assert not process.is_alive

    monkeypatch.setattr("nemesis.runtimes.local.node_process.TERM_GRACE_S", 0.2)
    asyncio.run(scene())


def test_an_exit_is_told_with_the_last_words(tmp_path: Path, journal: Journal) -> None:
    async def scene() -> None:
        process = node(tmp_path, journal, [sys.executable, "-c", "raise SystemExit('no znode')"])
        process.start()
        async with asyncio.timeout(BOUND_S):
            while process.is_alive:
                await asyncio.sleep(0.01)
        with pytest.raises(RuntimeFailure, match=r"broker-1 exited with code 1: no znode \(see "):
            process.raise_if_dead()

    asyncio.run(scene())


def test_a_program_that_does_not_exist_is_a_runtime_failure(
    tmp_path: Path, journal: Journal
) -> None:
    with pytest.raises(RuntimeFailure, match="broker-1 cannot be started"):
        node(tmp_path, journal, ["/nonexistent/program"]).start()
