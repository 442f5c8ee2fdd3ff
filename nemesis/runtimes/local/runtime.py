"""``LocalRuntime``: a cluster of processes on this machine behind one proxy.

One module per part: ``network``, ``processes``, ``disks``, ``ensemble``; all of them act on ``nodes``. ``lifecycle``
starts and stops the cluster.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from nemesis.interfaces.brokers import DiskCommands
from nemesis.interfaces.clocks import Clocks
from nemesis.interfaces.disks import Disks
from nemesis.interfaces.ensemble import Ensemble, EnsembleMembers
from nemesis.interfaces.network import BandwidthLimits, Connections, Delays
from nemesis.interfaces.packets import Packets
from nemesis.interfaces.unsupported import Unsupported
from nemesis.runtimes.clock_control.wall_clocks import NodeClocks
from nemesis.runtimes.config import ClusterConfig
from nemesis.runtimes.local.disks import LocalBrokerDisks
from nemesis.runtimes.local.ensemble import ONE_SERVER, LocalEnsemble
from nemesis.runtimes.local.lifecycle import LocalLifecycle
from nemesis.runtimes.local.network import NO_BANDWIDTH, NO_DELAYS, NO_RESETS, LocalNetwork
from nemesis.runtimes.local.nodes import LocalNodes
from nemesis.runtimes.local.processes import LocalProcesses
from nemesis.runtimes.real_cluster import NO_ZOOKEEPER

NO_PACKETS: Final = Unsupported("its links carry streams of bytes, not packets")
UNSUPPORTED: Final[Mapping[type, Unsupported]] = MappingProxyType(
    {
        Packets: NO_PACKETS,
        BandwidthLimits: NO_BANDWIDTH,
        EnsembleMembers: ONE_SERVER,
        Delays: NO_DELAYS,
        Connections: NO_RESETS,
    }
)
"""The parts that this runtime has on no machine."""


class LocalRuntime:
    """Implements ``nemesis.interfaces.runtime.Runtime``. Used by one task at a time for each node."""

    name = "local"
    packets: Final = NO_PACKETS

    def __init__(self, config: ClusterConfig, nodes: type[LocalNodes] = LocalNodes) -> None:
        """Raises ``UsageError`` when a count or a broker property is wrong; starts nothing."""
        self.cluster = nodes(config)
        self.lifecycle = LocalLifecycle(self.cluster)
        self.network = LocalNetwork(self.cluster)
        self.processes = LocalProcesses(self.cluster)
        missing = config.chosen_target.missing(config.broker_properties)
        self.disks: Disks | Unsupported = missing.get(DiskCommands) or LocalBrokerDisks(
            self.cluster
        )
        self.clocks: Clocks | Unsupported = self.cluster.clocks.unsupported or NodeClocks(
            self.cluster.clocks, self.cluster.pid
        )
        self.ensemble: Ensemble | Unsupported = (
            LocalEnsemble(self.cluster) if self.cluster.zookeepers else NO_ZOOKEEPER
        )
