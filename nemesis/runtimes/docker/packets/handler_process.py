"""The harness's handle on the packet handler: started when it is first needed, commanded, watched, ended.

While it runs it is asked for a sign of life several times a second. A handler that died, or did not answer in time, has
turned every fault in its hands into a partition: ``FaultLost`` says so whenever it is asked for anything again, which
makes the run ``unknown``. It is not started a second time.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from nemesis.interfaces.errors import FaultLost, RuntimeFailure
from nemesis.runtimes.docker.packets.shaping import Shape, Tally
from nemesis.support.journal import Journal

BEAT_INTERVAL_S = 0.25
REPLY_TIMEOUT_S = 5.0
EXIT_TIMEOUT_S = 3.0
MODULE = "nemesis.runtimes.docker.packets.handler"


class HandlerProcess:
    """One packet handler for all containers of a run."""

    def __init__(self, *, journal: Journal, log: Path, seed: int) -> None:
        self._journal = journal
        self._log = log
        self._seed = seed
        self._process: asyncio.subprocess.Process | None = None
        self._watch: asyncio.Task[None] | None = None
        self._turn = asyncio.Lock()
        self._lost: str | None = None
        self._tallies: dict[tuple[str, int], Tally] = {}

    @property
    def is_lost(self) -> bool:
        """Whether it was there and no longer does its work."""
        return self._lost is not None

    @property
    def pid(self) -> int | None:
        return None if self._process is None else self._process.pid

    async def confirm(self) -> None:
        """Return when it has given a sign of life, or was never needed; raises ``FaultLost``."""
        if self._process is not None:
            await self._command({"op": "beat"})

    async def start(self) -> None:
        """Start it unless it runs; raises ``FaultLost`` when it has been lost."""
        self._check()
        async with self._turn:
            if self._process is None:
                self._process = await self._start()
                self._journal.add_process("packet handler", self._process.pid)
                self._watch = asyncio.get_running_loop().create_task(self._beat())

    async def open(self, node: str, namespace: str) -> None:
        """Serve the node's namespace at this path, in place of the one it had before."""
        await self._command({"op": "open", "node": node, "namespace": namespace})

    async def shape(self, node: str, queues: Mapping[int, Shape]) -> None:
        """Treat the packets of these queues so from now on."""
        shapes = {str(queue): asdict(shape) for queue, shape in queues.items()}
        await self._command({"op": "shape", "node": node, "queues": shapes})

    async def tallies(self) -> dict[tuple[str, int], Tally]:
        """Return what happened to the packets of each node's queues, as far as it is known."""
        if self._process is not None:
            with suppress(FaultLost):
                nodes = (await self._command({"op": "tallies"}))["tallies"]
                self._tallies = {
                    (node, int(queue)): _tally(tally)
                    for node, queues in nodes.items()
                    for queue, tally in queues.items()
                }
        return self._tallies

    async def stop(self) -> None:
        """End it. Idempotent."""
        watch, self._watch = self._watch, None
        if watch is not None:
            watch.cancel()
            with suppress(asyncio.CancelledError):
                await watch
        process, self._process = self._process, None
        if process is None:
            return
        assert process.stdin is not None
        process.stdin.close()
        try:
            await asyncio.wait_for(process.wait(), EXIT_TIMEOUT_S)
        except TimeoutError:
            process.kill()
            await process.wait()
        self._journal.remove_process(process.pid)

    async def _start(self) -> asyncio.subprocess.Process:
        try:
            self._log.parent.mkdir(parents=True, exist_ok=True)
            with self._log.open("ab") as log:
                return await asyncio.create_subprocess_exec(
                    *(sys.executable, "-m", MODULE, str(self._seed)),
                    stdin=asyncio.subprocess.PIPE,
                    stdout=asyncio.subprocess.PIPE,
                    stderr=log,
                    env=self._journal.environment,
                    start_new_session=True,
                )
        except OSError as error:
            raise RuntimeFailure(f"the packet handler cannot be started: {error}") from None

    async def _beat(self) -> None:
        """Ask for a sign of life until it is lost."""
        while not self.is_lost:
            with suppress(FaultLost):
                await self.confirm()
            await asyncio.sleep(BEAT_INTERVAL_S)

    def _check(self) -> None:
        if self._lost is not None:
            raise FaultLost(self._lost)

    async def _command(self, command: Mapping[str, Any]) -> dict[str, Any]:
        process = self._process
        assert process is not None
        assert process.stdin is not None
        assert process.stdout is not None
        async with self._turn:
            self._check()
            line = b""
            with suppress(OSError, TimeoutError):
                async with asyncio.timeout(REPLY_TIMEOUT_S):
                    process.stdin.write(json.dumps(command).encode() + b"\n")
                    await process.stdin.drain()
                    line = await process.stdout.readline()
            if not line.endswith(b"\n"):
                how = "died" if process.stdout.at_eof() else "no longer answers"
                self._lost = (
                    f"the packet handler {how}, so packets in its hands were lost (see {self._log})"
                )
            self._check()
        reply: dict[str, Any] = json.loads(line)
        if "error" in reply:
            raise RuntimeFailure(f"the packet handler refused {command['op']}: {reply['error']}")
        return reply


def _tally(data: dict[str, Any]) -> Tally:
    """JSON has no numbers as keys."""
    for name in ("passed_bytes", "dropped_bytes"):
        data[name] = {int(key): size for key, size in data[name].items()}
    return Tally(**data)
