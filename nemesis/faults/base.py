"""What a fault is, what it may touch, and what it must report.

A fault says what, whom and how long. It is carried out in four steps, driven by ``conductor``:

1. ``aim``: resolve the selector now, and await the trigger ``when`` if the fault has one; ``SelectorUnresolved`` when
   no node matches or the trigger does not fire.
2. ``apply``: do it and *measure* that it had an effect (a process dead, a session gone, a probe held).
3. ``undo``: take it back.
4. ``verify``: see that it is taken back; asked again until it says yes, or until the
   undo time-out after the end of the faults' time has passed (``Conductor.conduct``).

Overlapping faults do not undo one another: ``link_rules`` composes what they do to links, and nodes that a fault has
touched are not chosen by another fault unless it declares so (``shares_victim``).
"""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from random import Random
from typing import Annotated, Any, ClassVar, Final, Protocol, Self

import msgspec
from msgspec import Meta

from nemesis.faults.administrator import Administrator
from nemesis.faults.cluster_view import ClusterView
from nemesis.faults.link_rules import LinkRules
from nemesis.faults.zookeeper_view import ZooKeeperView
from nemesis.history.recorder import Recorder
from nemesis.interfaces.clients import ClientProcesses
from nemesis.interfaces.clocks import Clocks
from nemesis.interfaces.cluster import Cluster
from nemesis.interfaces.disks import Disks
from nemesis.interfaces.ensemble import ZooKeeperMember
from nemesis.interfaces.errors import FaultUnsupported
from nemesis.interfaces.network import Network
from nemesis.interfaces.packets import Packets
from nemesis.interfaces.processes import Processes
from nemesis.interfaces.runtime import Missing, Runtime, missing_of
from nemesis.interfaces.traces import Traces
from nemesis.interfaces.unsupported import Unsupported, supported
from nemesis.interfaces.zookeeper_admin import ZooKeeperAdmin

MAX_DURATION_S = 3600.0
RESTART_S = 3.0
"""A broker's start until it answers and has its session, on a busy machine."""

Duration = Annotated[
    float,
    Meta(
        ge=0.0,
        le=MAX_DURATION_S,
        description="seconds in force; 0 for a fault that has ended at once",
    ),
]
"""Seconds that a fault stays in force; 0 for a fault that has ended at once."""
Selector = Annotated[str, Meta(description="the victims")]
"""The name of victims, resolved when the fault strikes (``selectors``, ``members``)."""


NO_CLIENTS: Final = Unsupported("no workload runs")


class SelectorUnresolved(Exception):
    """No node matches the selector now. Ask again for a few seconds, then skip the fault."""


@dataclass(frozen=True, slots=True)
class Measured:
    """What was seen after a step. ``is_effective``: the effect is there (after ``verify``: it is undone)."""

    is_effective: bool
    detail: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class DrawRange:
    """From where durations are drawn, in seconds."""

    low_s: float
    high_s: float

    def draw(self, rng: Random) -> float:
        return round(rng.uniform(self.low_s, self.high_s), 2)


@dataclass(slots=True)
class FaultContext:
    """What faults act on: the parts of a runtime, the workload's clients, the cluster as the harness sees it, and the
    nodes in use by a fault.

    The parts are those that the fault needs; asking for one that the runtime lacks raises ``FaultUnsupported``.
    """

    runtime: Runtime
    view: ClusterView
    links: LinkRules
    """The link rules that the faults of the run have in force."""
    administrator: Administrator
    touched: Counter[str] = field(default_factory=Counter)
    """How many faults in force have chosen a node."""
    struck: Counter[str] = field(default_factory=Counter)
    """How many of them have struck it and been measured: another fault before that would spoil the measurement."""
    tracer: str | None = None
    """The broker that traced the event at which the fault strikes."""
    stopped: set[str] = field(default_factory=set)
    """Nodes that a fault in force has killed or paused: they answer no probe."""
    client_processes: ClientProcesses | Unsupported = NO_CLIENTS
    """The processes of the workload."""

    @classmethod
    def of(
        cls,
        runtime: Runtime,
        view: ClusterView,
        recorder: Recorder | None = None,
        *,
        client_processes: ClientProcesses | Unsupported = NO_CLIENTS,
    ) -> Self:
        """Return the context of a run; ``recorder`` is for what faults ask of the controller."""
        return cls(
            runtime=runtime,
            view=view,
            links=LinkRules(runtime),
            administrator=Administrator(runtime.cluster, recorder),
            client_processes=client_processes,
        )

    @property
    def missing(self) -> Missing:
        """The parts that faults of this run cannot have, and why."""
        clients = self.client_processes
        missing = dict(missing_of(self.runtime))
        if isinstance(clients, Unsupported):
            missing[ClientProcesses] = clients
        return missing

    @property
    def cluster(self) -> Cluster:
        return self.runtime.cluster

    @property
    def network(self) -> Network:
        return supported(self.runtime.network)

    @property
    def processes(self) -> Processes:
        return supported(self.runtime.processes)

    @property
    def disks(self) -> Disks:
        return supported(self.runtime.disks)

    @property
    def clocks(self) -> Clocks:
        return supported(self.runtime.clocks)

    @property
    def packets(self) -> Packets:
        return supported(self.runtime.packets)

    @property
    def clients(self) -> ClientProcesses:
        return supported(self.client_processes)

    @property
    def traces(self) -> Traces:
        return supported(self.processes.traces)

    @property
    def zookeeper_view(self) -> ZooKeeperView:
        """The view, where it is one of ZooKeeper; raises ``FaultUnsupported``."""
        if not isinstance(self.view, ZooKeeperView):
            raise FaultUnsupported("the cluster has no ZooKeeper, which this fault needs")
        return self.view

    @property
    def zookeeper(self) -> ZooKeeperAdmin:
        """The harness's own connection to ZooKeeper; raises ``FaultUnsupported``."""
        return self.zookeeper_view.zookeeper

    async def members(self) -> dict[str, ZooKeeperMember]:
        """Return the states of the members of the ensemble that answer."""
        return await supported(supported(self.runtime.ensemble).members).states()

    def is_alive(self, node: str) -> bool:
        """Return whether a node's process exists. A node that the harness did not start counts as alive."""
        processes = self.runtime.processes
        return isinstance(processes, Unsupported) or processes.is_alive(node)

    def can_answer(self, node: str) -> bool:
        """Return whether a probe of this node would be answered if the links are open."""
        if node in self.cluster.clients:
            return True
        return node not in self.stopped and self.is_alive(node)

    async def probe_all(
        self, pairs: Iterable[tuple[str, str]], *, timeout_s: float
    ) -> dict[tuple[str, str], bool]:
        """Probe these (source, receiver) pairs at the same time."""
        wanted = sorted(set(pairs))
        answers = await asyncio.gather(
            *(self.network.probe(a, b, timeout_s=timeout_s) for a, b in wanted)
        )
        return dict(zip(wanted, answers, strict=True))


class Strike(Protocol):
    """A fault that has found its victims. One object serves one strike."""

    victims: list[str]
    """The resolved nodes."""
    intent: dict[str, Any]
    """What is about to be done, for the history."""

    async def apply(self) -> Measured: ...
    async def undo(self) -> None:
        """Take it back; raises ``NodeExited`` when a node does not come back, the rest being undone."""

    async def verify(self) -> Measured: ...


def selector_field(default: str) -> Any:
    """Return the field ``selector`` of a fault. Plan files call it ``target``, as they always have."""
    return msgspec.field(default=default, name="target")


class Fault(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The base of every fault: a frozen value that can be written in a plan file.

    Its fields are what a plan file may say. ``SelectorUnresolved`` may be raised by ``aim`` only.
    """

    name: ClassVar[str]
    """What ``--faults`` and plan files call it."""
    summary: ClassVar[str]
    """What the fault does, in one line for ``nemesis list`` and ``docs/faults.md``."""
    effect: ClassVar[str]
    """What ``apply`` measures when the fault has its effect, in one line."""
    heal: ClassVar[str]
    """What ``verify`` measures when the fault is undone, in one line."""
    needs: ClassVar[frozenset[type]]
    """The parts of a runtime that the fault needs, by their types (``nemesis.interfaces``)."""
    shares_victim: ClassVar[bool] = False
    """Whether it may strike a node that another fault has touched, and another one its node."""

    recovery_s: ClassVar[float] = 0.0
    """How long the undoing itself takes; the next recipe of a derived plan waits for it."""

    duration_s: Duration = 0.0

    @property
    def own_needs(self) -> frozenset[type]:
        """What this fault of the kind needs: possibly less than ``needs``, which covers all that can be drawn."""
        return self.needs

    @classmethod
    @abstractmethod
    def draw(cls, rng: Random, durations: DrawRange) -> Self:
        """Return a random fault of this kind."""

    @abstractmethod
    async def aim(self, context: FaultContext, rng: Random) -> Strike:
        """Resolve the victim as the cluster stands now, and await the trigger; raises ``SelectorUnresolved``."""

    def check(self, nodes: frozenset[str]) -> None:
        """Raise ``UsageError`` when a field names what this cluster of ``nodes`` does not have."""
