"""The part ``ensemble`` of the docker runtime: several ZooKeeper servers."""

from __future__ import annotations

import asyncio

from nemesis.interfaces.ensemble import ZooKeeperMember
from nemesis.runtimes.docker.nodes import DockerNodes
from nemesis.runtimes.docker.zookeeper_members import ask_member
from nemesis.runtimes.kazoo_admin import KazooAdmin

ADMIN_SESSION_TIMEOUT_S = 4.0
"""Short: the harness must leave a member that is paused long before it gives up on ZooKeeper."""


class DockerEnsemble:
    """Implements ``nemesis.interfaces.ensemble.Ensemble`` and ``EnsembleMembers``."""

    def __init__(self, nodes: DockerNodes) -> None:
        self._nodes = nodes

    @property
    def members(self) -> DockerEnsemble:
        return self

    def admin(self) -> KazooAdmin:
        connect = self._nodes.zookeeper_connect()
        return KazooAdmin(connect, session_timeout_s=ADMIN_SESSION_TIMEOUT_S)

    async def states(self) -> dict[str, ZooKeeperMember]:
        nodes = self._nodes
        answers = await asyncio.gather(
            *(ask_member(nodes.address(node), nodes.node(node)) for node in nodes.zookeepers)
        )
        return {
            node: member
            for node, member in zip(nodes.zookeepers, answers, strict=True)
            if member is not None
        }
