"""The part ``ensemble`` of the simulation."""

from __future__ import annotations

from nemesis.interfaces.ensemble import ZooKeeperMember
from nemesis.runtimes.simulation.addresses import HARNESS_HOST
from nemesis.runtimes.simulation.machines import Machines
from nemesis.simulation.randomness import stream
from nemesis.simulation.zookeeper.admin import SimulatedZooKeeperAdmin


class SimulationEnsemble:
    """Implements ``nemesis.interfaces.ensemble.Ensemble`` and ``EnsembleMembers``."""

    def __init__(self, machines: Machines) -> None:
        self._machines = machines

    @property
    def members(self) -> SimulationEnsemble:
        return self

    def admin(self) -> SimulatedZooKeeperAdmin:
        return SimulatedZooKeeperAdmin(
            self._machines.ensemble,
            rng=stream(self._machines.config.seed, "zookeeper-admin"),
            source_host=HARNESS_HOST,
        )

    async def states(self) -> dict[str, ZooKeeperMember]:
        """Return the states of the members that serve clients and are neither dead nor paused."""
        return {
            node: member
            for node, member in self._machines.ensemble.members().items()
            if (incarnation := self._machines.nodes[node].incarnation) is not None
            and not incarnation.is_stopped
        }
