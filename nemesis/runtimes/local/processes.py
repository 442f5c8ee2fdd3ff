"""The part ``processes`` of the local runtime."""

from __future__ import annotations

from typing import Any

from nemesis.interfaces.errors import RuntimeFailure
from nemesis.runtimes.local.nodes import LocalNodes
from nemesis.runtimes.local.traces import LocalTraces
from nemesis.runtimes.real_cluster import started
from nemesis.support.errors import MissingRequirement


class LocalProcesses:
    """Implements ``nemesis.interfaces.processes.Processes`` and ``BrokerMembership``."""

    def __init__(self, nodes: LocalNodes) -> None:
        self._nodes = nodes

    @property
    def membership(self) -> LocalProcesses:
        return self

    @property
    def traces(self) -> LocalTraces:
        return LocalTraces(self._nodes.run_directory)

    async def kill(self, node: str) -> dict[str, Any]:
        return await self._nodes.process(node).kill()

    async def terminate(self, node: str, *, grace_s: float) -> dict[str, Any]:
        return await self._nodes.process(node).terminate(grace_s=grace_s)

    async def restart(self, node: str) -> dict[str, Any]:
        process = self._nodes.process(node)

        async def start() -> int:
            process.start()
            return process.pid

        return await started(
            start,
            lambda: self._nodes.until_it_answers(node),
            may_exit=self._nodes.may_exit_at_start,
        )

    async def pause(self, node: str) -> dict[str, Any]:
        return await self._nodes.process(node).pause()

    async def resume(self, node: str) -> dict[str, Any]:
        return await self._nodes.process(node).resume()

    def is_alive(self, node: str) -> bool:
        return self._nodes.process(node).is_alive

    @property
    def next_broker(self) -> str | None:
        return self._nodes.membership.next

    async def add_broker(self, node: str) -> dict[str, Any]:
        nodes = self._nodes
        if nodes.journal is None:
            raise RuntimeFailure(f"{node} cannot join: the cluster is not running")
        plan = nodes.add_broker(node)
        nodes.clocks.create([node])
        nodes.make_broker(node, nodes.journal)
        try:
            await nodes.links.open(plan, [node])
        except MissingRequirement as error:
            raise RuntimeFailure(f"{node} cannot join: {error}") from error
        return await self.restart(node)

    def retire(self, node: str) -> None:
        self._nodes.membership.retire(node, is_alive=self.is_alive(node))
