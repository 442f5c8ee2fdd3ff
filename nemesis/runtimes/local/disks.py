"""The part ``disks`` of the local runtime: brokers write through a disk that fails on command."""

from __future__ import annotations

import asyncio
from typing import Any

from nemesis.runtimes.local.nodes import LocalNodes


class LocalBrokerDisks:
    """Implements ``nemesis.interfaces.disks.Disks`` and ``LogTails``."""

    def __init__(self, nodes: LocalNodes) -> None:
        self._nodes = nodes
        self.log_dirs = LocalLogDirs(nodes)
        self.power = LocalPower(nodes)

    @property
    def log_tails(self) -> LocalBrokerDisks:
        return self

    async def fill(self, node: str) -> dict[str, Any]:
        pid, log_dirs = self._nodes.pid(node), self._nodes.log_dirs(node)
        return await asyncio.to_thread(self._nodes.disks.fill, node, pid, log_dirs)

    async def fail(self, node: str) -> dict[str, Any]:
        pid, log_dirs = self._nodes.pid(node), self._nodes.log_dirs(node)
        return await asyncio.to_thread(self._nodes.disks.fail, node, pid, log_dirs)

    async def heal(self, node: str) -> dict[str, Any]:
        return await asyncio.to_thread(self._nodes.disks.heal, node, self._nodes.log_dirs(node))

    async def unsynced_bytes(self, node: str) -> int:
        return await asyncio.to_thread(self._nodes.disks.unsynced_bytes, node)

    async def corrupt(self, node: str) -> dict[str, Any]:
        return await asyncio.to_thread(self._nodes.disks.corrupt_tail, node)


class LocalLogDirs:
    """Implements ``nemesis.interfaces.disks.LogDirs``."""

    def __init__(self, nodes: LocalNodes) -> None:
        self._nodes = nodes

    async def fail(self, node: str, number: int) -> dict[str, Any]:
        pid, log_dirs = self._nodes.pid(node), self._nodes.log_dirs(node)
        return await asyncio.to_thread(self._nodes.disks.fail_log_dir, node, pid, log_dirs, number)


class LocalPower:
    """Implements ``nemesis.interfaces.disks.PowerSupply``."""

    def __init__(self, nodes: LocalNodes) -> None:
        self._nodes = nodes

    async def cut(self, node: str) -> dict[str, Any]:
        """Send SIGKILL, and take from the broker's files what was not synced.

        Its connections end as at a kill: this machine has power, and its kernel informs the peers.
        """
        killed = await self._nodes.process(node).kill()
        return killed | await self.cut_stopped(node)

    async def cut_stopped(self, node: str) -> dict[str, Any]:
        return await asyncio.to_thread(self._nodes.disks.cut_power, node)
