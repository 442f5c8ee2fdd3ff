"""The part ``ensemble`` of the local runtime: one ZooKeeper server."""

from __future__ import annotations

from typing import Final

from nemesis.interfaces.unsupported import Unsupported
from nemesis.runtimes.kazoo_admin import KazooAdmin
from nemesis.runtimes.local.nodes import LocalNodes

ONE_SERVER: Final = Unsupported("it has one ZooKeeper server")


class LocalEnsemble:
    """Implements ``nemesis.interfaces.ensemble.Ensemble``."""

    members: Final = ONE_SERVER

    def __init__(self, nodes: LocalNodes) -> None:
        self._nodes = nodes

    def admin(self) -> KazooAdmin:
        return KazooAdmin(self._nodes.zookeeper_connect())
