"""The part ``processes`` of the docker runtime: containers; a pause is the cgroup's freezer."""

from __future__ import annotations

from typing import Any, Final

from nemesis.interfaces.unsupported import Unsupported
from nemesis.runtimes.docker.nodes import DockerNodes
from nemesis.runtimes.real_cluster import started

NO_TRACES: Final = Unsupported("its traces stay in the containers until the end of the run")


class DockerProcesses:
    """Implements ``nemesis.interfaces.processes.Processes`` and ``BrokerMembership``."""

    traces: Final = NO_TRACES

    def __init__(self, nodes: DockerNodes) -> None:
        self._nodes = nodes

    @property
    def membership(self) -> DockerProcesses:
        return self

    async def kill(self, node: str) -> dict[str, Any]:
        return await self._nodes.node(node).kill()

    async def terminate(self, node: str, *, grace_s: float) -> dict[str, Any]:
        return await self._nodes.node(node).terminate(grace_s=grace_s)

    async def restart(self, node: str) -> dict[str, Any]:
        measured = await started(
            lambda: self._nodes.begin(node),
            lambda: self._nodes.until_it_answers(node),
            may_exit=self._nodes.may_exit_at_start and self._nodes.node(node).is_kafka,
        )
        return {"container": self._nodes.node(node).container_name, **measured}

    async def pause(self, node: str) -> dict[str, Any]:
        return await self._nodes.node(node).pause()

    async def resume(self, node: str) -> dict[str, Any]:
        return await self._nodes.node(node).resume()

    def is_alive(self, node: str) -> bool:
        return self._nodes.node(node).is_alive

    @property
    def next_broker(self) -> str | None:
        return self._nodes.membership.next

    async def add_broker(self, node: str) -> dict[str, Any]:
        nodes = self._nodes
        addresses = nodes.add_broker(node)
        nodes.clocks.create([node])
        await nodes.containers.add(node, addresses, nodes.describe)
        await nodes.packet_rules.add(node, nodes.packet_nodes(addresses)[node])
        return await self.restart(node)

    def retire(self, node: str) -> None:
        self._nodes.membership.retire(node, is_alive=self.is_alive(node))
