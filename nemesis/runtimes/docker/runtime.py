"""``DockerRuntime``: a cluster of containers on a network of its own.

One module per part: ``network`` (with ``packets``), ``processes``, ``broker_disks``, ``ensemble``; all of them act on
``nodes``. ``lifecycle`` starts and stops the cluster.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from nemesis.interfaces.clocks import Clocks
from nemesis.interfaces.disks import Disks, LogDirs, LogTails
from nemesis.interfaces.ensemble import Ensemble
from nemesis.interfaces.network import StrayLinks
from nemesis.interfaces.packets import Packets
from nemesis.interfaces.traces import Traces
from nemesis.interfaces.unsupported import Unsupported
from nemesis.runtimes.clock_control.wall_clocks import NodeClocks
from nemesis.runtimes.config import ClusterConfig
from nemesis.runtimes.docker.broker_disks import NO_LOG_TAILS, ONE_DISK, DockerDisks
from nemesis.runtimes.docker.ensemble import DockerEnsemble
from nemesis.runtimes.docker.lifecycle import DockerLifecycle
from nemesis.runtimes.docker.machine import disk_obstacle
from nemesis.runtimes.docker.network import NO_STRAYS, DockerNetwork, DockerPackets
from nemesis.runtimes.docker.nodes import DockerNodes
from nemesis.runtimes.docker.packets import kernel
from nemesis.runtimes.docker.packets.kernel import Feature
from nemesis.runtimes.docker.processes import NO_TRACES, DockerProcesses
from nemesis.runtimes.real_cluster import NO_ZOOKEEPER

UNSUPPORTED: Final[Mapping[type, Unsupported]] = MappingProxyType(
    {LogTails: NO_LOG_TAILS, LogDirs: ONE_DISK, StrayLinks: NO_STRAYS, Traces: NO_TRACES}
)
"""The parts that this runtime has on no machine."""


class DockerRuntime:
    """Implements ``nemesis.interfaces.runtime.Runtime``. Used by one task at a time for each node."""

    name = "docker"

    def __init__(self, config: ClusterConfig, features: frozenset[Feature]) -> None:
        """``features`` are what this machine's kernel can do to packets.

        Raises ``UsageError`` when a count or a broker property is wrong; starts nothing.
        """
        obstacle = disk_obstacle()
        missing = kernel.missing(features)
        self.cluster = DockerNodes(config, has_disks=not obstacle)
        self.lifecycle = DockerLifecycle(self.cluster, features)
        self.network = DockerNetwork(self.cluster, missing)
        self.processes = DockerProcesses(self.cluster)
        self.disks: Disks | Unsupported = (
            Unsupported(obstacle) if obstacle else DockerDisks(self.cluster)
        )
        self.clocks: Clocks | Unsupported = self.cluster.clocks.unsupported or NodeClocks(
            self.cluster.clocks, self.cluster.pid
        )
        self.ensemble: Ensemble | Unsupported = (
            DockerEnsemble(self.cluster) if self.cluster.zookeepers else NO_ZOOKEEPER
        )
        self.packets: Packets | Unsupported = missing.get(Packets) or DockerPackets(self.cluster)
