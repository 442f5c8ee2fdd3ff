"""One operating-system process of a cluster: started, killed, paused, resumed and ended, each of it measured.

A process is entered in the journal as soon as it exists. It gets a session of its own, so that Ctrl-C reaches the
harness only, which decides the order. Waits are bounded; a bound that is passed is a ``RuntimeFailure``.
"""

from __future__ import annotations

import asyncio
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, BinaryIO

import psutil

from nemesis.interfaces.errors import NodeExited, RuntimeFailure
from nemesis.runtimes.last_words import last_words
from nemesis.support.journal import Journal

POLL_INTERVAL_S = 0.005
SIGNAL_TIMEOUT_S = 10.0
"""The kernel stops, resumes and kills at once; only a starved machine needs longer."""

TERM_GRACE_S = 3.0
LOG_TAIL_BYTES = 20_000
"""A JVM ends with a stack trace, which may be long."""


class NodeProcess:
    """A named process that can be started again after its death. ``log`` collects what it prints."""

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        *,
        log: Path,
        journal: Journal,
        environment: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """``environment`` is what it has beside the harness's own."""
        self.name = name
        self._environment = environment
        self._command = list(command)
        self._log = log
        self._journal = journal
        self._popen: subprocess.Popen[bytes] | None = None
        self._process: psutil.Process | None = None

    @property
    def pid(self) -> int:
        """The process id of the present life; raises ``RuntimeFailure`` when it was never started."""
        if self._popen is None:
            raise RuntimeFailure(f"{self.name} was never started")
        return self._popen.pid

    @property
    def is_alive(self) -> bool:
        """Whether the process exists; a paused one does, a zombie does not."""
        return self._popen is not None and self._popen.poll() is None

    @property
    def is_paused(self) -> bool:
        """Whether the kernel says that it is stopped."""
        if not self.is_alive or self._process is None:
            return False
        try:
            return self._process.status() == psutil.STATUS_STOPPED
        except psutil.NoSuchProcess:
            return False

    def start(self) -> None:
        """Start a life; raises ``RuntimeFailure`` when one is there or the program cannot be run."""
        if self.is_alive:
            raise RuntimeFailure(f"{self.name} is running already as process {self.pid}")
        try:
            with open_log(self._log) as log:
                self._popen = subprocess.Popen(
                    self._command,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    env={**self._journal.environment, **self._environment},
                    start_new_session=True,
                )
        except OSError as error:
            raise RuntimeFailure(f"{self.name} cannot be started: {error}") from None
        self._journal.add_process(self.name, self._popen.pid)
        try:
            self._process = psutil.Process(self._popen.pid)
        except psutil.NoSuchProcess:
            self._process = None

    def raise_if_dead(self) -> None:
        """Raise ``NodeExited`` with the end of the log when the process has exited."""
        if self._popen is not None and (code := self._popen.poll()) is not None:
            raise NodeExited(f"{self.name} exited with code {code}: {self.last_words()}")

    async def kill(self) -> dict[str, Any]:
        """SIGKILL, then wait until it is reaped; raises ``RuntimeFailure`` when there is nothing to kill."""
        pid = self._require_alive("killed")
        self._signal(signal.SIGKILL)
        await self._until(lambda: not self.is_alive, "die of SIGKILL")
        self._journal.remove_process(pid)
        return {"pid": pid, "dead": True}

    async def pause(self) -> dict[str, Any]:
        """SIGSTOP, then wait until the kernel shows it stopped."""
        pid = self._require_alive("paused")
        self._signal(signal.SIGSTOP)
        await self._until(lambda: self.is_paused, "stop at SIGSTOP")
        return {"pid": pid, "paused": True}

    async def resume(self) -> dict[str, Any]:
        """SIGCONT, then wait until the kernel shows it no longer stopped."""
        pid = self._require_alive("resumed")
        self._signal(signal.SIGCONT)
        await self._until(lambda: not self.is_paused, "go on at SIGCONT")
        return {"pid": pid, "paused": False}

    async def terminate(self, *, grace_s: float) -> dict[str, Any]:
        """SIGTERM, and SIGKILL after the grace; tells which ended it. Raises ``RuntimeFailure`` when it is dead."""
        pid = self._require_alive("asked to end")
        ended_by = await self.stop(grace_s=grace_s)
        return {"pid": pid, "dead": True, "ended_by": ended_by}

    async def stop(self, *, grace_s: float = TERM_GRACE_S) -> str | None:
        """End it from any state: resume, SIGTERM, SIGKILL after the grace (0: at once). Idempotent.

        It is reaped when this returns the signal that ended it; None: it was dead.
        """
        if self._popen is None:
            return None
        ended_by = None
        if self.is_alive and grace_s > 0:
            ended_by = "SIGTERM"
            self._signal(signal.SIGTERM)
            self._signal(signal.SIGCONT)
            deadline = asyncio.get_running_loop().time() + grace_s
            while self.is_alive and asyncio.get_running_loop().time() < deadline:
                await asyncio.sleep(POLL_INTERVAL_S)
        if self.is_alive:
            ended_by = "SIGKILL"
            self._signal(signal.SIGKILL)
            await self._until(lambda: not self.is_alive, "die of SIGKILL")
        self._journal.remove_process(self._popen.pid)
        return ended_by

    def _signal(self, number: signal.Signals) -> None:
        if self._popen is not None:
            self._popen.send_signal(number)

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
                    f"{self.name} (pid {self.pid}) did not {label} in {SIGNAL_TIMEOUT_S:.0f} s"
                )
            await asyncio.sleep(POLL_INTERVAL_S)

    def last_words(self) -> str:
        """Return the last line that says something, and where the rest is."""
        try:
            printed = self._log.read_bytes()[-LOG_TAIL_BYTES:].decode(errors="replace")
        except OSError:
            printed = ""
        return f"{last_words(printed)} (see {self._log})"


def open_log(path: Path) -> BinaryIO:
    """Open a log for appending, its folder made when missing; raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    return path.open("ab")
