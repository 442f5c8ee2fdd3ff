"""The part ``clocks`` of the simulation: a drift is read back exactly."""

from __future__ import annotations

from typing import Any

from nemesis.runtimes.simulation.machines import Machines


class SimulationClocks:
    """Implements ``nemesis.interfaces.clocks.Clocks``."""

    def __init__(self, machines: Machines) -> None:
        self._machines = machines

    async def skew(self, node: str, *, offset_ms: int, drift: float) -> dict[str, Any]:
        clock = self._machines.clocks[node]
        clock.skew(offset_ms)
        clock.drift(drift)
        return {"offset_ms": clock.offset_ms, "drift": clock.rate}

    async def correct(self, node: str) -> dict[str, Any]:
        return await self.skew(node, offset_ms=0, drift=0.0)
