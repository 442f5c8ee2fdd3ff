"""``SimulationRuntime``: one simulated cluster, as a run and its faults see it.

One module per part: ``network``, ``processes``, ``disks``, ``clocks``, ``ensemble``; all of them act on ``machines``.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from nemesis.interfaces.network import BandwidthLimits
from nemesis.interfaces.packets import Packets
from nemesis.interfaces.unsupported import Unsupported
from nemesis.runtimes.simulation.clocks import SimulationClocks
from nemesis.runtimes.simulation.config import SimulationRuntimeConfig
from nemesis.runtimes.simulation.disks import SimulationDisks
from nemesis.runtimes.simulation.ensemble import SimulationEnsemble
from nemesis.runtimes.simulation.lifecycle import SimulationLifecycle
from nemesis.runtimes.simulation.machines import Machines
from nemesis.runtimes.simulation.network import NO_BANDWIDTH, SimulationNetwork
from nemesis.runtimes.simulation.processes import SimulationProcesses
from nemesis.simulation.loop import SimulationLoop
from nemesis.simulation.memory_record import MemoryRecord

NO_PACKETS: Final = Unsupported("its links carry streams of bytes, not packets")
UNSUPPORTED: Final[Mapping[type, Unsupported]] = MappingProxyType(
    {Packets: NO_PACKETS, BandwidthLimits: NO_BANDWIDTH}
)
"""The parts that this runtime has on no machine."""


class SimulationRuntime:
    """Implements ``nemesis.interfaces.runtime.Runtime`` on a simulation's loop."""

    name = "simulation"
    packets: Final = NO_PACKETS

    def __init__(
        self, config: SimulationRuntimeConfig, loop: SimulationLoop, record: MemoryRecord
    ) -> None:
        """Make the cluster; starts nothing."""
        self.machines = self.cluster = Machines(config, loop, record)
        self.lifecycle = SimulationLifecycle(self.machines)
        self.network = SimulationNetwork(self.machines)
        self.processes = SimulationProcesses(self.machines)
        self.disks = SimulationDisks(self.machines, self.processes)
        self.clocks = SimulationClocks(self.machines)
        self.ensemble = SimulationEnsemble(self.machines)
