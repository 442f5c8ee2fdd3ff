"""The part ``ensemble``: the ZooKeeper ensemble of a cluster, as the harness sees it.

A cluster with KRaft controllers has none. Where the ensemble has several members, ``members`` reports
their states one by one. ``zookeeper_admin`` has the harness's own connection, past every link rule.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from nemesis.interfaces.unsupported import Unsupported
from nemesis.interfaces.zookeeper_admin import ZooKeeperAdmin


class Ensemble(Protocol):
    """The ZooKeeper servers of a cluster."""

    @property
    def members(self) -> EnsembleMembers | Unsupported:
        """Tells several members apart."""

    def admin(self) -> ZooKeeperAdmin:
        """Return the harness's own connection, past every link rule; enter it before use."""


class EnsembleMembers(Protocol):
    """The members of an ensemble of several servers."""

    async def states(self) -> dict[str, ZooKeeperMember]:
        """Return what the members report that answer and serve clients, by node; the others are left out."""


@dataclass(frozen=True, slots=True)
class ZooKeeperMember:
    """What a member of the ensemble reports, as ``srvr`` and ``cons`` of a real one do."""

    mode: str
    """The role of the member: ``leader``, ``follower`` or ``standalone``."""
    epoch: int
    """The epoch of the leader that the member follows, or its own when it leads. A leader that was cut off reports an
    older one."""
    sessions: tuple[int, ...]
    """The sessions that are connected to the member, in order."""
