"""One container of a cluster: started, killed, paused, resumed and ended, each of it measured at the kernel.

A container's main process is a process of this machine, so whether it lives is asked of the kernel, not of the
engine: at once, and without a call that could block. Pauses are the cgroup's freezer; its own file says that all
processes of the container are frozen. Starting a container again after its death keeps its file system and gives it a
new process and a new, empty network namespace.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path, PurePath
from typing import Any

import psutil
from docker.models.containers import Container

from nemesis.interfaces.errors import NodeExited, RuntimeFailure
from nemesis.runtimes.docker.engine_calls import EngineRefused, ask
from nemesis.runtimes.last_words import last_words
from nemesis.support.node_names import BROKER, CONTROLLER

POLL_INTERVAL_S = 0.01
SIGNAL_TIMEOUT_S = 15.0
"""The kernel and the engine do it at once; only a starved machine needs longer."""

LOG_TAIL_LINES = 100
"""A JVM ends with a stack trace, which may be long."""
CGROUPS = Path("/sys/fs/cgroup")
KILLED = "SIGKILL"
TERMINATED = "SIGTERM"


class ContainerNode:
    """A named node in a container that can be started again after its death."""

    def __init__(self, name: str, container: Container) -> None:
        """The container exists and was not started."""
        self.name = name
        self._container = container
        self._process: psutil.Process | None = None

    @property
    def container_name(self) -> str:
        return str(self._container.name)

    @property
    def is_kafka(self) -> bool:
        """Whether it is a broker or a KRaft controller."""
        return self.name.startswith((BROKER, CONTROLLER))

    @property
    def pid(self) -> int:
        """The main process of the present life, as this machine numbers it; ``RuntimeFailure`` before the first."""
        if self._process is None:
            raise RuntimeFailure(f"{self.name} was never started")
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        """Whether the main process exists; a paused one does, a zombie does not."""
        return self._process is not None and _exists(self._process)

    @property
    def is_paused(self) -> bool:
        """Whether the kernel says that the container is frozen."""
        return self.is_alive and is_frozen(self.pid)

    async def start(self) -> int:
        """Start a life and return its pid; raises ``NodeExited`` when it is over at once."""
        if self.is_alive:
            raise RuntimeFailure(f"{self.name} is running already as process {self.pid}")
        if self._process is not None:  # a node that ended by itself: the engine may not know yet
            await self._until_exited()
        await ask(f"start {self.container_name}", self._container.start)
        state = await self._state()
        try:
            self._process = psutil.Process(int(state["Pid"]) or -1)
        except (psutil.NoSuchProcess, ValueError):
            self._process = None
            raise NodeExited(await self._obituary(state)) from None
        return self.pid

    async def raise_if_dead(self) -> None:
        """Raise ``NodeExited`` with the end of the log when the main process has exited."""
        if self._process is not None and not self.is_alive:
            raise NodeExited(await self._obituary(await self._state()))

    async def kill(self) -> dict[str, Any]:
        """SIGKILL, then wait until process and container are gone; raises ``RuntimeFailure`` when nothing is there."""
        pid = self._require_alive("killed")
        try:
            await ask(f"kill {self.container_name}", self._container.kill, signal=KILLED)
        except EngineRefused:
            if self.is_alive:
                raise  # otherwise it ended by itself in this very moment
        await self._until(lambda: not self.is_alive, "die of SIGKILL")
        await self._until_exited()
        return self._measured(pid, dead=True)

    async def pause(self) -> dict[str, Any]:
        """Freeze the container, then wait until the kernel shows it frozen."""
        pid = self._require_alive("paused")
        await ask(f"pause {self.container_name}", self._container.pause)
        await self._until(lambda: self.is_paused, "freeze")
        return self._measured(pid, paused=True)

    async def resume(self) -> dict[str, Any]:
        """Thaw the container, then wait until the kernel shows it no longer frozen."""
        pid = self._require_alive("resumed")
        await ask(f"unpause {self.container_name}", self._container.unpause)
        await self._until(lambda: not self.is_paused, "thaw")
        return self._measured(pid, paused=False)

    async def terminate(self, *, grace_s: float) -> dict[str, Any]:
        """SIGTERM, and SIGKILL after the grace; tells which of them ended it. ``RuntimeFailure`` when it is dead."""
        pid = self._require_alive("asked to end")
        await ask(f"signal {self.container_name}", self._container.kill, signal=TERMINATED)
        deadline = asyncio.get_running_loop().time() + grace_s
        while self.is_alive and asyncio.get_running_loop().time() < deadline:
            await asyncio.sleep(POLL_INTERVAL_S)
        if self.is_alive:
            return {**await self.kill(), "ended_by": KILLED}
        await self._until_exited()
        return self._measured(pid, dead=True) | {"ended_by": TERMINATED}

    async def stop(self) -> None:
        """End it from any state: thaw, SIGTERM, SIGKILL after the container's own grace. Idempotent.

        A broker is killed at once: asked, it would look for others to lead its partitions, while all of them go.
        """
        if not self.is_alive:
            return
        if self.is_paused:
            await ask(f"unpause {self.container_name}", self._container.unpause)
        if self.is_kafka:
            await ask(f"kill {self.container_name}", self._container.kill, signal=KILLED)
        else:
            await ask(f"stop {self.container_name}", self._container.stop)
        await self._until(lambda: not self.is_alive, "end")

    def read_file(self, path: PurePath) -> bytes:
        """Return the content of a small file of the living container, past the engine; raises OSError."""
        return Path(f"/proc/{self.pid}/root{path}").read_bytes()

    async def last_words(self) -> str:
        """Return the last line that says something."""
        said: bytes = await ask(
            f"read the log of {self.container_name}", self._container.logs, tail=LOG_TAIL_LINES
        )
        return last_words(said.decode(errors="replace"))

    def _measured(self, pid: int, **effect: bool) -> dict[str, Any]:
        return {"container": self.container_name, "pid": pid, **effect}

    def _require_alive(self, participle: str) -> int:
        if not self.is_alive:
            raise RuntimeFailure(f"{self.name} cannot be {participle}: it is not running")
        return self.pid

    async def _until(self, condition: Callable[[], bool], label: str) -> None:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + SIGNAL_TIMEOUT_S
        while not condition():
            if loop.time() > deadline:
                raise RuntimeFailure(
                    f"{self.container_name} (pid {self.pid}) did not {label} in {SIGNAL_TIMEOUT_S:.0f} s"
                )
            await asyncio.sleep(POLL_INTERVAL_S)

    async def _until_exited(self) -> None:
        """The engine learns of a death a moment after the kernel; before that a start has no effect, or is refused."""
        await ask(
            f"see the end of {self.container_name}", self._container.wait, timeout=SIGNAL_TIMEOUT_S
        )

    async def _state(self) -> dict[str, Any]:
        await ask(f"look at {self.container_name}", self._container.reload)
        state: dict[str, Any] = self._container.attrs["State"]
        return state

    async def _obituary(self, state: dict[str, Any]) -> str:
        cause = " (out of memory)" if state.get("OOMKilled") else ""
        code, words = state.get("ExitCode"), await self.last_words()
        return f"{self.container_name} exited with code {code}{cause}: {words}"


def _exists(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def is_frozen(pid: int) -> bool:
    """Return what the freezer says of the control group of this process; False when it is gone."""
    try:
        groups = Path(f"/proc/{pid}/cgroup").read_text().splitlines()
        for line in groups:
            _, controllers, path = line.split(":", 2)
            if "freezer" in controllers.split(","):  # version 1
                state = (CGROUPS / "freezer" / path.lstrip("/") / "freezer.state").read_text()
                return state.strip() == "FROZEN"
        unified = next(line.split(":", 2)[2] for line in groups if line.startswith("0::"))
        return "frozen 1" in (CGROUPS / unified.lstrip("/") / "cgroup.events").read_text()
    except (OSError, StopIteration):
        return False
