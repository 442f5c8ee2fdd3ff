"""The part ``disks`` of the simulation."""

from __future__ import annotations

from dataclasses import asdict
from random import Random
from typing import Any

from nemesis.runtimes.simulation.machines import Machines
from nemesis.runtimes.simulation.processes import SimulationProcesses
from nemesis.simulation.disk import Operation
from nemesis.simulation.randomness import stream
from nemesis.support import log_damage as damage


class SimulationDisks:
    """Implements ``nemesis.interfaces.disks.Disks``."""

    def __init__(self, machines: Machines, processes: SimulationProcesses) -> None:
        rng = stream(machines.config.seed, "power")
        self._machines = machines
        self.log_dirs = SimulationLogDirs(machines)
        self.power = SimulationPower(machines, processes, rng)
        self.log_tails = SimulationLogTails(machines, rng)

    async def fill(self, node: str) -> dict[str, Any]:
        self._machines.disks[node].fill()
        return self._machines.disks[node].probe()

    async def fail(self, node: str) -> dict[str, Any]:
        self._machines.disks[node].fail()
        return self._machines.disks[node].probe()

    async def heal(self, node: str) -> dict[str, Any]:
        refused = self._machines.disks[node].heal()
        return self._machines.disks[node].probe() | {"refused": dict(sorted(refused.items()))}


class SimulationLogDirs:
    """Implements ``nemesis.interfaces.disks.LogDirs``."""

    def __init__(self, machines: Machines) -> None:
        self._machines = machines

    async def fail(self, node: str, number: int) -> dict[str, Any]:
        disk, log_dirs = self._machines.disks[node], self._machines.config.log_dirs_of(node)
        failing = log_dirs[number % len(log_dirs)]
        disk.fail(below=failing)
        others = [disk.probe(log_dir) for log_dir in log_dirs if log_dir != failing]
        return {
            **disk.probe(failing),
            "log_dir": failing,
            "others": {
                operation: next((other[operation] for other in others if other[operation]), None)
                for operation in Operation
            },
        }


class SimulationPower:
    """Implements ``nemesis.interfaces.disks.PowerSupply``."""

    def __init__(self, machines: Machines, processes: SimulationProcesses, rng: Random) -> None:
        self._machines = machines
        self._processes = processes
        self._rng = rng

    async def cut(self, node: str) -> dict[str, Any]:
        """Unlike a kill this informs no peer: connections fall silent, and calls are not answered until a restart."""

        def strike() -> None:
            self._machines.network.power_off(node)
            self._machines.nodes[node].kill()

        ended = await self._processes.end(node, strike)
        return ended | asdict(self._machines.disks[node].power_cut(self._rng))

    async def cut_stopped(self, node: str) -> dict[str, Any]:
        self._machines.network.power_off(node)
        return asdict(self._machines.disks[node].power_cut(self._rng))


class SimulationLogTails:
    """Implements ``nemesis.interfaces.disks.LogTails``."""

    def __init__(self, machines: Machines, rng: Random) -> None:
        self._machines = machines
        self._rng = rng

    async def unsynced_bytes(self, node: str) -> int:
        return self._machines.disks[node].unsynced_log_bytes()

    async def corrupt(self, node: str) -> dict[str, Any]:
        return damage.damage_report(self._machines.disks[node].corrupt_tail(self._rng))
