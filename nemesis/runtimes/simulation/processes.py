"""The part ``processes`` of the simulation: nodes are struck in the middle of what they do.

Without that every signal would meet a process that waits, because whatever sends it runs in between.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from nemesis.runtimes.simulation.machines import POLL_INTERVAL_S, Machines
from nemesis.runtimes.simulation.traces import SimulationTraces
from nemesis.simulation.randomness import stream

STRIKE_PATIENCE_S = 0.1
"""How long a process may do nothing before it is struck while it waits."""


class SimulationProcesses:
    """Implements ``nemesis.interfaces.processes.Processes``. A pid counts the incarnations of a node."""

    def __init__(self, machines: Machines) -> None:
        self._machines = machines
        self._rng = stream(machines.config.seed, "moments")
        self.membership = SimulationMembership(machines, self)
        self.traces = SimulationTraces(machines.record)

    async def kill(self, node: str) -> dict[str, Any]:
        return await self.end(node, self._machines.nodes[node].kill)

    async def terminate(self, node: str, *, grace_s: float) -> dict[str, Any]:
        incarnation = self._machines.nodes[node].incarnation
        self._machines.nodes[node].terminate()
        loop = asyncio.get_running_loop()
        deadline = loop.time() + grace_s
        while self.is_alive(node) and loop.time() < deadline:
            await asyncio.sleep(POLL_INTERVAL_S)
        ended_by = "SIGKILL" if self.is_alive(node) else "SIGTERM"
        self._machines.nodes[node].kill()
        pid = 0 if incarnation is None else incarnation.number
        return {"pid": pid, "dead": not self.is_alive(node), "ended_by": ended_by}

    async def restart(self, node: str) -> dict[str, Any]:
        self._machines.start(node)
        incarnation = self._machines.nodes[node].incarnation
        assert incarnation is not None
        return {"pid": incarnation.number, "answered": await self._machines.until_it_answers(node)}

    async def pause(self, node: str) -> dict[str, Any]:
        await self._in_the_middle(node, self._machines.nodes[node].pause)
        self._machines.nodes[node].pause()
        return {"paused": True}

    async def resume(self, node: str) -> dict[str, Any]:
        self._machines.nodes[node].resume()
        return {"paused": False}

    def is_alive(self, node: str) -> bool:
        return self._machines.nodes[node].is_alive

    async def end(self, node: str, strike: Callable[[], None]) -> dict[str, Any]:
        """End a process by ``strike``; returns what ``kill`` returns."""
        incarnation = self._machines.nodes[node].incarnation
        await self._in_the_middle(node, strike)
        strike()
        return {
            "pid": 0 if incarnation is None else incarnation.number,
            "dead": not self.is_alive(node),
        }

    async def _in_the_middle(self, node: str, strike: Callable[[], None]) -> None:
        """Strike a process between two of its next few actions; return when that has happened, or it does nothing."""
        incarnation = self._machines.nodes[node].incarnation
        actions = self._rng.randint(0, self._machines.config.strike_within_actions)
        if incarnation is None or incarnation.is_stopped or not actions:
            return
        struck = asyncio.Event()

        def strike_now() -> None:
            strike()
            struck.set()

        incarnation.strike_after(actions, strike_now)
        try:
            async with asyncio.timeout(STRIKE_PATIENCE_S):
                await struck.wait()
        except TimeoutError:
            incarnation.actions_left = None


class SimulationMembership:
    """Implements ``nemesis.interfaces.processes.BrokerMembership``."""

    def __init__(self, machines: Machines, processes: SimulationProcesses) -> None:
        self._machines = machines
        self._processes = processes

    @property
    def next_broker(self) -> str | None:
        return self._machines.membership.next

    async def add_broker(self, node: str) -> dict[str, Any]:
        self._machines.membership.admit(node)
        self._machines.make_broker(node)
        return await self._processes.restart(node)

    def retire(self, node: str) -> None:
        self._machines.membership.retire(node, is_alive=self._processes.is_alive(node))
