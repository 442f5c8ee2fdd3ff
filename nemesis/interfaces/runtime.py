"""A runtime is composed of a cluster, its lifecycle and six parts, each an implementation or ``Unsupported``.

A fault declares by type which parts it needs (``nemesis.faults.base.Fault.needs``): one of the six, or a smaller part
below one of them. ``part_of`` finds a part by its type, so a fault is refused before the run, with the reason.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Final, Protocol

from nemesis.interfaces.brokers import AlterPartitionRequests, BrokerEpochs, BrokerSessions
from nemesis.interfaces.clients import ClientProcesses
from nemesis.interfaces.clocks import Clocks
from nemesis.interfaces.cluster import Cluster
from nemesis.interfaces.disks import Disks, LogDirs, LogTails, PowerSupply
from nemesis.interfaces.ensemble import Ensemble, EnsembleMembers
from nemesis.interfaces.lifecycle import Lifecycle
from nemesis.interfaces.network import (
    BandwidthLimits,
    Connections,
    Delays,
    Network,
    RequestLinks,
    StrayLinks,
)
from nemesis.interfaces.packets import Packets
from nemesis.interfaces.processes import BrokerMembership, Processes
from nemesis.interfaces.traces import Traces
from nemesis.interfaces.unsupported import Unsupported


class Runtime(Protocol):
    """Where a cluster runs, and what can be done to it there."""

    name: str

    @property
    def cluster(self) -> Cluster: ...
    @property
    def lifecycle(self) -> Lifecycle: ...
    @property
    def network(self) -> Network | Unsupported: ...
    @property
    def processes(self) -> Processes | Unsupported: ...
    @property
    def disks(self) -> Disks | Unsupported: ...
    @property
    def clocks(self) -> Clocks | Unsupported: ...
    @property
    def ensemble(self) -> Ensemble | Unsupported: ...
    @property
    def packets(self) -> Packets | Unsupported: ...


_FIND: Final[Mapping[type, Callable[[Runtime], object]]] = MappingProxyType(
    {
        Network: lambda runtime: runtime.network,
        RequestLinks: lambda runtime: _below(runtime.network, "requests"),
        StrayLinks: lambda runtime: _below(_below(runtime.network, "requests"), "strays"),
        Delays: lambda runtime: _below(runtime.network, "delays"),
        Connections: lambda runtime: _below(runtime.network, "connections"),
        BandwidthLimits: lambda runtime: _below(runtime.network, "bandwidth"),
        Traces: lambda runtime: _below(runtime.processes, "traces"),
        Packets: lambda runtime: runtime.packets,
        Processes: lambda runtime: runtime.processes,
        BrokerMembership: lambda runtime: _below(runtime.processes, "membership"),
        LogDirs: lambda runtime: _below(runtime.disks, "log_dirs"),
        LogTails: lambda runtime: _below(runtime.disks, "log_tails"),
        PowerSupply: lambda runtime: _below(runtime.disks, "power"),
        Disks: lambda runtime: runtime.disks,
        BrokerSessions: lambda runtime: _ends_sessions(runtime.ensemble, runtime),
        EnsembleMembers: lambda runtime: _below(runtime.ensemble, "members"),
        Ensemble: lambda runtime: runtime.ensemble,
        Clocks: lambda runtime: runtime.clocks,
    }
)

NEEDED: Final = (*_FIND, AlterPartitionRequests, BrokerEpochs, ClientProcesses)
"""Everything that a fault may need, the special before the general: the first one that is missing is the reason."""

EVERYWHERE: Final[frozenset[type]] = frozenset(
    {
        Network,
        RequestLinks,
        Processes,
        BrokerMembership,
        Ensemble,
        AlterPartitionRequests,
        BrokerEpochs,
        BrokerSessions,
    }
)
"""What every runtime of ours has on every machine. The rest needs disks, clocks or links of a kind, or an ensemble."""

Missing = Mapping[type, Unsupported]
"""The parts that are not there, by their types, and why."""


def part_of(runtime: Runtime, kind: type) -> object:
    """Return the runtime's part of this type, or ``Unsupported``; raises KeyError for what is no part of a runtime."""
    return _FIND[kind](runtime)


def missing_of(runtime: Runtime) -> Missing:
    """Return the parts that the runtime does not have."""
    collected = {kind: part_of(runtime, kind) for kind in _FIND}
    return {kind: part for kind, part in collected.items() if isinstance(part, Unsupported)}


def first_missing(needs: Iterable[type], missing: Missing) -> Unsupported | None:
    """Return why these needs cannot be met; None when all of them are."""
    wanted = frozenset(needs)
    return next((missing[kind] for kind in NEEDED if kind in wanted and kind in missing), None)


def _ends_sessions(ensemble: object, runtime: Runtime) -> object:
    """Return what ends sessions: the ensemble, or, in a KRaft cluster, the links that hold heartbeats."""
    if isinstance(ensemble, Unsupported) and not runtime.cluster.zookeepers:
        return _below(runtime.network, "requests")
    return ensemble


def _below(part: object, name: str) -> object:
    """Return the smaller part of this name; what lacks the part lacks the smaller one for the same reason."""
    return part if isinstance(part, Unsupported) else getattr(part, name)
