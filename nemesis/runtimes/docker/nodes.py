"""The nodes of a cluster of containers, on which all parts of ``DockerRuntime`` act.

There is one way to each node. The harness's own begins at the bridge's own address, which is in no rule: that makes it
direct. Clients are addresses of the host on the same bridge.
"""

from __future__ import annotations

import uuid
from ipaddress import IPv4Network
from pathlib import Path

from nemesis.interfaces.brokers import Containers, SteadyStart
from nemesis.interfaces.errors import RuntimeFailure
from nemesis.interfaces.links import Address
from nemesis.runtimes.clock_control.wall_clocks import WallClocks
from nemesis.runtimes.config import ClusterConfig
from nemesis.runtimes.docker import compose_file
from nemesis.runtimes.docker.addresses import HOSTS_PER_ROLE, TEST_NETWORKS, DockerAddresses
from nemesis.runtimes.docker.cluster import Cluster
from nemesis.runtimes.docker.compose_file import DATA_DIRECTORY, Compose
from nemesis.runtimes.docker.container_node import ContainerNode
from nemesis.runtimes.docker.packets.packet_rules import PacketRules
from nemesis.runtimes.docker.packets.rules import PacketNode
from nemesis.runtimes.real_cluster import RealCluster, until_it_answers
from nemesis.support.errors import UsageError
from nemesis.support.node_names import id_of
from nemesis.support.runtime_names import LOCAL
from nemesis.targets.base import (
    BrokerEndpoint,
    control_plane,
    controllers_of,
    seed_of_broker,
    uses_zookeeper,
    voters,
)

RUN_ID_DIGITS = 10
NOWHERE = IPv4Network(next(TEST_NETWORKS.subnets(new_prefix=24)))
"""Names count before the start, addresses do not."""


def require_containers(config: ClusterConfig) -> None:
    """Raise ``UsageError`` for a target that cannot run in containers; looks at nothing of this machine."""
    missing = config.chosen_target.missing(config.broker_properties)
    if Containers in missing:
        raise UsageError(
            f"the target {config.target!r} cannot run in containers "
            f"({missing[Containers].reason}): choose --runtime {LOCAL}"
        )


class DockerNodes(RealCluster[DockerAddresses]):
    """Implements ``nemesis.interfaces.cluster.Cluster``, and holds the containers and their packet rules."""

    def __init__(self, config: ClusterConfig, *, has_disks: bool) -> None:
        """Raises ``UsageError`` when a count or a broker property is wrong; starts nothing."""
        names = DockerAddresses(
            NOWHERE,
            brokers=config.broker_count,
            zookeepers=len(compose_file.ZOOKEEPERS) if uses_zookeeper(config.chosen_target) else 0,
            clients=config.client_count,
            controllers=controllers_of(config.chosen_target),
        )
        super().__init__(names, broker_limit=HOSTS_PER_ROLE["broker"])
        self.config = config
        self.run_directory = config.run_directory.resolve()
        self.run_id = uuid.uuid4().hex[:RUN_ID_DIGITS]
        self.clocks = WallClocks(self.run_directory)
        self.containers = Cluster(self.run_id, self.run_directory, has_disks=has_disks)
        self.rules: PacketRules | None = None
        self._target = config.chosen_target
        self.may_exit_at_start = SteadyStart in self._target.missing(config.broker_properties)
        for node in (*names.brokers, *names.controllers):
            self._properties(node, names)

    def address(self, node: str) -> Address:
        return self.addresses.address(self.known(node))

    def direct_address(self, node: str) -> Address:
        """The same: the caller's address decides which rules apply."""
        if (broker := self.broker_with(node)) is not None:
            return control_plane(self.address(broker))
        return self.address(node)

    def direct_source(self, node: str) -> str:
        """The bridge's own address."""
        self.known(node)
        return self.addresses.gateway

    def zookeeper_connect(self) -> str:
        """Return the connect string of the ensemble."""
        return self.addresses.zookeeper_connect()

    @property
    def packet_rules(self) -> PacketRules:
        """The packet rules; raises ``RuntimeFailure`` before the start."""
        if self.rules is None:
            raise RuntimeFailure("the cluster has no network before its start")
        return self.rules

    def node(self, node: str) -> ContainerNode:
        """Return the node's container; raises ``RuntimeFailure`` when it was never started."""
        container = self.containers.nodes.get(self.known(node))
        if container is None:
            raise RuntimeFailure(f"{node} was never started")
        return container

    def pid(self, node: str) -> int:
        """Return the process id of the node's main process; raises ``RuntimeFailure``."""
        return self.node(node).pid

    async def begin(self, node: str) -> int:
        """Start the node's container and return its pid. Its network namespace is a new one: it gets the rules."""
        pid = await self.node(node).start()
        await self._require_disk(node)
        await self.packet_rules.reapply(node)
        return pid

    async def until_it_answers(self, node: str) -> bool:
        """Ask past the rules; False at the deadline, ``NodeExited`` when the process exits."""
        address, own = self.direct_address(node), self.direct_source(node)
        return await until_it_answers(
            lambda timeout_s: self.ask(node, address, source_host=own, timeout_s=timeout_s),
            self.node(node).raise_if_dead,
            timeout_s=self.config.start_timeout_s,
        )

    def packet_nodes(self, addresses: DockerAddresses) -> dict[str, PacketNode]:
        """Return where packets come from and go to."""
        return {
            node: PacketNode(
                host=host,
                is_container=node not in self.clients,
                port=addresses.address(node).port
                if node in addresses.brokers or node in addresses.controllers
                else None,
            )
            for node, host in addresses.hosts.items()
        }

    def describe(self, addresses: DockerAddresses, image: str) -> Compose:
        """Return the compose file of this cluster with these addresses."""
        kafkas = [*addresses.controllers, *addresses.brokers]
        programs = {
            node: self._target.broker_program(
                id_of(node),
                Path(compose_file.CONFIGURATION_FILE),
                self.config.mutant,
                python=compose_file.PYTHON,
            )
            for node in kafkas
        }
        return compose_file.effective(
            compose_file.read_template(),
            run_id=self.run_id,
            subnet=addresses.subnet,
            image=image,
            hosts={node: addresses.host(node) for node in kafkas},
            brokers={node: self._properties(node, addresses) for node in kafkas},
            programs=programs,
            tick_time_ms=self.config.zookeeper_tick_time_ms,
            has_zookeeper=bool(addresses.zookeepers),
        )

    def _properties(self, node: str, addresses: DockerAddresses) -> dict[str, object]:
        """Return the whole configuration of a broker or controller; raises ``UsageError``."""
        number = id_of(node)
        endpoint = BrokerEndpoint(
            broker_id=number,
            bind=addresses.address(node),
            advertised=addresses.address(node),
            # Each begins at another member, so that sessions are spread over the ensemble.
            zookeeper_connect=addresses.zookeeper_connect(first=number - 1),
            log_dirs=(Path(compose_file.DATA_DIRECTORY),),
            trace_file=Path(compose_file.TRACE_FILE) if self.config.tracing else None,
            seed=seed_of_broker(self.config.seed, number),
            voters=()
            if addresses.zookeepers
            else voters(addresses.controllers or addresses.brokers, addresses.address),
        )
        return self._target.broker_properties(endpoint, self.config.broker_properties)

    async def _require_disk(self, node: str) -> None:
        """Check that what the node writes is on its disk, if it has one: a fault of another disk has no effect."""
        disk, container = self.containers.disks.get(node), self.node(node)
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
