"""What a run has at the Docker engine, from its first network to its last volume.

Everything is made from the compose file that stands in the run's directory, and found again by the run's label.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from pathlib import Path

from docker import DockerClient
from docker.models.networks import Network

from nemesis.interfaces.errors import RuntimeFailure
from nemesis.runtimes.docker import compose_file, labels, leftovers
from nemesis.runtimes.docker.addresses import TEST_NETWORKS, DockerAddresses, candidates
from nemesis.runtimes.docker.bridge import add_addresses, create_network, device
from nemesis.runtimes.docker.collect import Uncollected, bring_home
from nemesis.runtimes.docker.compose_file import Compose
from nemesis.runtimes.docker.container_node import ContainerNode
from nemesis.runtimes.docker.creation import create_container, create_volumes
from nemesis.runtimes.docker.disks.disk import Disk
from nemesis.runtimes.docker.disks.errors import DiskError
from nemesis.runtimes.docker.engine import connect
from nemesis.runtimes.docker.engine_calls import ask, together, unbroken
from nemesis.runtimes.docker.image import ensure_image
from nemesis.support.errors import MissingRequirement

Describe = Callable[[DockerAddresses, str], Compose]
"""The compose file of a cluster with these addresses and nodes of that image."""

_logger = logging.getLogger(__name__)


class Cluster:
    """The network, volumes and containers of one run.

    ``nodes`` are its containers by the node's name, ``disks`` those of the brokers, if the machine can have any.
    """

    def __init__(self, run_id: str, run_directory: Path, *, has_disks: bool) -> None:
        self._run_id = run_id
        self._has_disks = has_disks
        self._run_directory = run_directory
        self._client: DockerClient | None = None
        self._image = ""
        self.nodes: dict[str, ContainerNode] = {}
        self.disks: dict[str, Disk] = {}

    async def create(self, names: DockerAddresses, describe: Describe) -> DockerAddresses:
        """Make everything, nothing started; return the addresses that the nodes of ``names`` have got.

        Raises ``MissingRequirement`` or ``RuntimeFailure``; what is there by then is for ``remove``.
        """
        client = self._client = await ask("be reached", connect)
        image = await ask("make the image", ensure_image, client, progress=_logger.info)
        self._image = image
        marks = {labels.RUN: self._run_id, **labels.harness_labels(self._run_directory)}
        addresses, bridge, described = await self._network(client, names, describe, image, marks)
        await add_addresses(device(bridge), map(addresses.host, addresses.clients))
        await self._make_nodes(client, described, [*addresses.controllers, *addresses.brokers])
        return addresses

    async def add(self, node: str, addresses: DockerAddresses, describe: Describe) -> None:
        """Make what one more broker needs, nothing started; raises ``RuntimeFailure``.

        What is there by then is for ``remove``.
        """
        if self._client is None:
            raise RuntimeFailure(f"{node} cannot join: the cluster is not running")
        await self._make_nodes(self._client, describe(addresses, self._image), [node])

    async def _make_nodes(
        self, client: DockerClient, described: Compose, brokers: Sequence[str]
    ) -> None:
        """Write the compose file, and make the containers that are not there yet, with disks for these nodes."""
        file = self._run_directory / compose_file.FILE_NAME
        compose_file.write(described, file)
        compose = compose_file.read(file)
        marks = {labels.RUN: self._run_id, **labels.harness_labels(self._run_directory)}
        new = [node for node in compose["services"] if node not in self.nodes]
        if self._has_disks:
            await self._make_disks(brokers)
        devices = {compose_file.disk_volume(node): d.device for node, d in self.disks.items()}
        volumes = compose_file.volumes_of(compose, new)
        await ask("make the volumes", create_volumes, client, volumes, marks, devices)
        made = await together(
            ask(
                f"make the container of {node}",
                create_container,
                client,
                compose,
                node,
                marks,
                self._run_directory,
            )
            for node in new
        )
        for node, container in zip(new, made, strict=True):
            self.nodes[node] = ContainerNode(node, container)

    async def _make_disks(self, brokers: Sequence[str]) -> None:
        for node in brokers:
            try:
                self.disks[node] = await unbroken(
                    Disk.make, self._run_directory, self._run_id, node
                )
            except (DiskError, OSError) as error:
                raise RuntimeFailure(f"the disk of {node} cannot be made: {error}") from error

    async def _network(
        self,
        client: DockerClient,
        names: DockerAddresses,
        describe: Describe,
        image: str,
        marks: dict[str, str],
    ) -> tuple[DockerAddresses, Network, Compose]:
        """Take the first subnet that no network of the engine has."""
        for subnet in candidates():
            addresses = names.within(subnet)
            described = describe(addresses, image)
            (network,) = described["networks"].values()
            bridge = await ask("make the network", create_network, client, network, marks)
            if bridge is not None:
                return addresses, bridge, described
        raise MissingRequirement(
            f"every subnet of {TEST_NETWORKS} is taken: `nemesis clean` removes the networks of dead runs, "
            "`docker network ls` names the others"
        )

    async def stop(self) -> None:
        """End the nodes in any state, brokers first. What does not end so is left to ``remove``."""
        for is_kafka in (True, False):
            nodes = [node for node in self.nodes.values() if node.is_kafka is is_kafka]
            try:
                await together(node.stop() for node in nodes)
            except RuntimeFailure as error:
                _logger.warning("not ended in order: %s", error)

    async def bring_home(self) -> Uncollected:
        """Copy what the containers hold into the run's directory; return what could not be had."""
        if self._client is None:
            return Uncollected()
        containers = await ask(
            "list the containers", leftovers.containers, self._client, self._run_id
        )
        return await ask("be read", bring_home, containers, self._run_directory)

    async def remove(self) -> None:
        """Remove everything, in any state. Idempotent; raises ``RuntimeFailure`` when something is left."""
        if self._client is None:
            return
        for disk in self.disks.values():
            disk.close()
        removed = await ask("remove the run", leftovers.remove_run, self._client, self._run_id)
        if removed.left:
            raise RuntimeFailure(f"the cluster could not be removed: {'; '.join(removed.left)}")
        self._client.close()
        self._client, self.nodes, self.disks = None, {}, {}
