"""The part of ``DockerRuntime`` that acts on disks: the calls of ``Runtime``, handed on to the disks of the brokers."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeVar

from nemesis.interfaces.runtime import Capability, Lacks, RuntimeFailure, Unable
from nemesis.runtimes.docker.cluster import Cluster
from nemesis.runtimes.docker.compose_file import DATA_DIRECTORY
from nemesis.runtimes.docker.container_node import ContainerNode
from nemesis.runtimes.docker.disks.disk import Disk
from nemesis.runtimes.docker.disks.errors import DiskError
from nemesis.runtimes.docker.engine_calls import unbroken
from nemesis.runtimes.docker.packets.namespace import Namespace, NamespaceError

DISKS = frozenset({Capability.POWER_CUT, Capability.DISK})
"""What brokers with disks of their own make possible."""

ONE_DISK: Final[Lacks] = {
    Capability.TAIL: "from outside of a container nobody knows what has been synced",
    Capability.LOG_DIR: "its brokers have one disk each, which fails as a whole",
}

NETWORK_DEVICE = "eth0"
"""What the engine calls the one of a container."""

T = TypeVar("T")


class DiskFaults(Unable):
    """All coroutines raise ``RuntimeFailure``; ``FaultUnsupported`` where brokers cannot have disks of their own."""

    _cluster: Cluster

    @abstractmethod
    def _node(self, node: str) -> ContainerNode: ...

    async def power_cut(self, node: str) -> dict[str, Any]:
        """Silence the node's network, kill it, and let its disk lose what was not synced.

        Returns what ``kill`` does, the ``device`` of the disk, and what was lost: ``lost_bytes`` of files, and
        ``lost_names``, files that are gone.
        """
        disk = self._disk(node)
        await self._fall_silent(node)
        killed = await self._node(node).kill()
        return killed | {"device": disk.device} | await _on_disk(node, disk.cut_power)

    async def fill_disk(self, node: str) -> dict[str, Any]:
        """Let the node's disk take no more until ``heal_disk``; returns what a probe of it meets, by operation."""
        return dict(await _on_disk(node, self._disk(node).fill))

    async def fail_disk(self, node: str) -> dict[str, Any]:
        """Let every operation on the node's disk fail with EIO until ``heal_disk``; returns as ``fill_disk``."""
        return dict(await _on_disk(node, self._disk(node).fail))

    async def heal_disk(self, node: str) -> dict[str, Any]:
        """End both; returns as ``fill_disk``. A failed disk is mounted anew, so a broker that survived it is killed."""
        disk, container = self._disk(node), self._node(node)
        if disk.is_shut_down and container.is_alive:
            await container.kill()
        return dict(await _on_disk(node, disk.heal))

    async def unsynced_bytes(self, node: str) -> int:
        raise self._unsupported(Capability.TAIL, f"damage the ends of the logs of {node}")

    async def corrupt_tail(self, node: str) -> dict[str, Any]:
        raise self._unsupported(Capability.TAIL, f"damage the ends of the logs of {node}")

    async def fail_log_dir(self, node: str, number: int) -> dict[str, Any]:
        raise self._unsupported(Capability.LOG_DIR, f"let log directory {number} of {node} fail")

    def _disk(self, node: str) -> Disk:
        if Capability.DISK in self.lacks:
            raise self._unsupported(Capability.DISK, f"touch the disk of {node}")
        if node not in self._cluster.disks:
            raise RuntimeFailure(f"there is no disk of {node!r}")
        return self._cluster.disks[node]

    async def _require_disk(self, node: str) -> None:
        """See that what the node writes is on its disk, if it has one: a fault elsewhere would be none."""
        disk, container = self._cluster.disks.get(node), self._node(node)
        if disk is None:
            return
        try:
            is_there = disk.holds(Path(f"/proc/{container.pid}/root{DATA_DIRECTORY}"))
        except OSError as error:
            await container.raise_if_dead()
            raise RuntimeFailure(f"the disk of {node} cannot be looked at: {error}") from error
        if not is_there:
            raise RuntimeFailure(
                f"the Docker engine did not mount {disk.device} for {node}: it does not share this mount namespace"
            )

    async def _fall_silent(self, node: str) -> None:
        """A machine without power tells nobody: no connection ends, no call is answered."""
        try:
            namespace = Namespace(self._node(node).pid)
            try:
                await namespace.run("ip", "link", "set", NETWORK_DEVICE, "down")
            finally:
                namespace.close()
        except NamespaceError as error:
            raise RuntimeFailure(f"{node} cannot be silenced: {error}") from error


async def _on_disk(node: str, act: Callable[[], T]) -> T:
    try:
        return await unbroken(act)
    except (DiskError, OSError) as error:
        raise RuntimeFailure(f"the disk of {node} cannot be handled: {error}") from error
