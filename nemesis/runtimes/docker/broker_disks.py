"""The part ``disks`` of the docker runtime: each broker's logs are on an ext4 of its own (``disks``)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

from nemesis.interfaces.errors import RuntimeFailure
from nemesis.interfaces.unsupported import Unsupported
from nemesis.runtimes.docker.disks.disk import Disk
from nemesis.runtimes.docker.disks.errors import DiskError
from nemesis.runtimes.docker.engine_calls import unbroken
from nemesis.runtimes.docker.nodes import DockerNodes
from nemesis.runtimes.docker.packets.namespace import Namespace, NamespaceError

NO_LOG_TAILS: Final = Unsupported("from outside of a container nobody knows what has been synced")
ONE_DISK: Final = Unsupported("its brokers have one disk each, which fails as a whole")

NETWORK_DEVICE = "eth0"
"""What the engine calls the one of a container."""

T = TypeVar("T")


class DockerDisks:
    """Implements ``nemesis.interfaces.disks.Disks`` and ``PowerSupply``."""

    log_dirs: Final = ONE_DISK
    log_tails: Final = NO_LOG_TAILS

    def __init__(self, nodes: DockerNodes) -> None:
        self._nodes = nodes

    @property
    def power(self) -> DockerDisks:
        return self

    async def cut(self, node: str) -> dict[str, Any]:
        """Silence the node's network, kill it, and let its disk lose what was not synced.

        Returns what ``kill`` does, the ``device`` of the disk, and what was lost: ``lost_bytes`` of files, and
        ``lost_names``, files that are gone.
        """
        disk = self._disk(node)
        await self._fall_silent(node)
        killed = await self._nodes.node(node).kill()
        return killed | {"device": disk.device} | await _on_disk(node, disk.cut_power)

    async def cut_stopped(self, node: str) -> dict[str, Any]:
        disk = self._disk(node)
        return {"device": disk.device} | await _on_disk(node, disk.cut_power)

    async def fill(self, node: str) -> dict[str, Any]:
        return dict(await _on_disk(node, self._disk(node).fill))

    async def fail(self, node: str) -> dict[str, Any]:
        return dict(await _on_disk(node, self._disk(node).fail))

    async def heal(self, node: str) -> dict[str, Any]:
        """A failed disk is mounted again, so a broker that survived it is killed."""
        disk, container = self._disk(node), self._nodes.node(node)
        if disk.is_shut_down and container.is_alive:
            await container.kill()
        return dict(await _on_disk(node, disk.heal))

    def _disk(self, node: str) -> Disk:
        disks = self._nodes.containers.disks
        if node not in disks:
            raise RuntimeFailure(f"there is no disk of {node!r}")
        return disks[node]

    async def _fall_silent(self, node: str) -> None:
        """A machine without power informs no peer: no connection ends, no call is answered."""
        try:
            namespace = Namespace(self._nodes.node(node).pid)
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
