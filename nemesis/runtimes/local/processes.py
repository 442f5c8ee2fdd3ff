"""The part ``processes`` of the local runtime."""

from __future__ import annotations

from typing import Any, Final

from nemesis.interfaces.errors import NodeExited, RuntimeFailure
from nemesis.runtimes.local.nodes import LocalNodes
from nemesis.runtimes.local.traces import LocalTraces
from nemesis.support.errors import MissingRequirement

MOST_STARTS: Final = 5
"""Of a broker that exits while it starts: a fault ends one session, or a few of them in a row."""


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
        """Start a process of the node, up to ``MOST_STARTS`` of them if a process may exit while it starts."""
        process = self._nodes.process(node)
        most = MOST_STARTS if self._nodes.may_exit_at_start else 1
        for start in range(1, most + 1):
            process.start()
            try:
                answered = await self._nodes.until_it_answers(node)
                break
            except NodeExited:
                if start == most:
                    raise
        return {"pid": process.pid, "answered": answered, "starts": start}

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
