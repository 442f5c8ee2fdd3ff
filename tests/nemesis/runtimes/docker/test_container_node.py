"""A node's life is told by the kernel, whatever the engine makes of it."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Iterator
from typing import Any, cast

import pytest
from docker.errors import APIError

from nemesis.runtimes.docker.container_node import ContainerNode
from nemesis.runtimes.docker.engine_calls import EngineRefused


class RefusingContainer:
    """Its main process is a real one. Signals are refused, as the engine does for one that has ended."""

    name = "nemesis-0a1b-broker-1"

    def __init__(self, process: subprocess.Popen[bytes], *, ends_by_itself: bool) -> None:
        self.attrs = {"State": {"Pid": process.pid}}
        self._process = process
        self._ends_by_itself = ends_by_itself

    def start(self) -> None: ...

    def reload(self) -> None: ...

    def wait(self, timeout: float) -> None: ...

    def kill(self, signal: str) -> None:
        if self._ends_by_itself:
            self._process.kill()
            self._process.wait()
        raise APIError(f"cannot send {signal}: the container is not running")


class LateEngine:
    """It believes that the main process runs until its end is waited for; a start has no effect before that."""

    name = "nemesis-0a1b-broker-1"

    def __init__(self) -> None:
        self.attrs: dict[str, Any] = {"State": {"Pid": 0}}
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        if self._process is None:
            self._process = subprocess.Popen(["sleep", "60"])
            self.attrs = {"State": {"Pid": self._process.pid, "ExitCode": 0}}

    def end(self) -> None:
        """The main process ends by itself."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def wait(self, timeout: float) -> None:
        self._process = None

    def reload(self) -> None: ...

    def logs(self, tail: int) -> bytes:
        return b"all log directories have failed"


@pytest.fixture
def process() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(["sleep", "60"]) as sleeper:
        yield sleeper
        sleeper.kill()


async def killed(container: RefusingContainer) -> dict[str, Any]:
    node = ContainerNode("broker-1", cast("Any", container))
    await node.start()
    return await node.kill()


def test_a_node_that_ends_by_itself_just_before_it_is_killed_is_dead(
    process: subprocess.Popen[bytes],
) -> None:
    measured = asyncio.run(killed(RefusingContainer(process, ends_by_itself=True)))
    assert measured == {
        "container": RefusingContainer.name,
        "pid": process.pid,
        "dead": True,
    }


def test_a_kill_that_is_refused_while_the_node_lives_is_a_failure(
    process: subprocess.Popen[bytes],
) -> None:
    with pytest.raises(EngineRefused, match="cannot kill nemesis-0a1b-broker-1"):
        asyncio.run(killed(RefusingContainer(process, ends_by_itself=False)))


def test_a_node_that_ended_by_itself_starts_again_before_the_engine_knows_of_its_end() -> None:
    engine = LateEngine()
    node = ContainerNode("broker-1", cast("Any", engine))

    async def restarted() -> list[int]:
        first = await node.start()
        engine.end()
        return [first, await node.start()]

    try:
        first, second = asyncio.run(restarted())
        assert first != second
        assert node.is_alive
    finally:
        engine.end()
