"""What faults and the harness ask of a cluster: who is the controller, who is registered, who leads what.

``ClusterView`` is the question; ``zookeeper_view`` and ``quorum_view`` answer it, for clusters with ZooKeeper and with
KRaft.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol
from uuid import UUID


@dataclass(frozen=True, slots=True)
class Ephemeral:
    """A broker's registration or office, which ends with its session: in ZooKeeper an ephemeral znode.

    With KRaft the session is 0, and ``czxid`` is the epoch of the quorum in a controller, and 0 in a broker.
    """

    broker_id: int
    session: int
    czxid: int


@dataclass(frozen=True, slots=True)
class PartitionState:
    """The state of a partition and its assignment. ``leader`` −1 is none."""

    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    replicas: tuple[int, ...]
    topic_id: UUID | None = None
    is_moving: bool = False
    """Whether replicas are being added or removed."""
    removing: tuple[int, ...] = ()
    """Those of the replicas that are being removed."""

    @property
    def target(self) -> tuple[int, ...]:
        """The replicas when a move in progress is over, in their order."""
        return tuple(replica for replica in self.replicas if replica not in self.removing)


@dataclass(frozen=True, slots=True)
class ClusterSnapshot:
    """One look at the cluster. ``partitions`` by (topic, partition); one without a state yet is left out."""

    controller: Ephemeral | None = None
    controller_epoch: int = 0
    brokers: dict[int, Ephemeral] = field(default_factory=dict)
    partitions: dict[tuple[str, int], PartitionState] = field(default_factory=dict)
    unassigned: tuple[tuple[str, int], ...] = ()
    """Partitions that are assigned but have no state znode yet."""
    deletions: tuple[str, ...] = ()
    """Topics that are marked for deletion."""
    is_reassignment_asked_for: bool = False
    """Whether there is ``/admin/reassign_partitions``: what it asks for is not begun, or not over."""
    is_election_asked_for: bool = False
    """Whether there is ``/admin/preferred_replica_election``: no controller has taken it yet."""
    authority: str = "ZooKeeper"
    """Who says so, for people."""
    do_brokers_name_it: bool = True
    """Whether brokers name the controller in their metadata. With KRaft they name any broker instead."""


class ClusterView(Protocol):
    """Reads raise ``HarnessError`` when nothing answers the harness."""

    async def snapshot(self) -> ClusterSnapshot:
        """Read everything."""

    async def controller(self) -> tuple[Ephemeral | None, int]:
        """Return the controller and the controller epoch."""

    async def controller_now(self) -> Ephemeral | None:
        """Return the controller, as fast as possible."""

    async def broker_loss(self, *, timeout_s: float) -> bool:
        """Wait until a broker that is registered now, or comes meanwhile, vanishes; return whether one did in time."""

    async def next_controller(self, *, timeout_s: float) -> int | None:
        """Wait for the next election; return the id of the broker that won it, None if there was none in time."""
