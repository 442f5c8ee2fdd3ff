"""The nodes of a local cluster: names, addresses and processes, on which all parts of ``LocalRuntime`` act."""

from __future__ import annotations

from pathlib import Path

from nemesis.interfaces.brokers import SteadyStart
from nemesis.interfaces.errors import RuntimeFailure
from nemesis.interfaces.links import Address
from nemesis.runtimes.clock_control.wall_clocks import WallClocks
from nemesis.runtimes.config import ClusterConfig
from nemesis.runtimes.disk_control.local_disks import LocalDisks
from nemesis.runtimes.local.addresses import HOSTS_PER_ROLE, AddressPlan
from nemesis.runtimes.local.broker_process import broker_endpoint, broker_process
from nemesis.runtimes.local.links import Links
from nemesis.runtimes.local.node_process import NodeProcess
from nemesis.runtimes.local.zookeeper_server import zookeeper_process
from nemesis.runtimes.real_cluster import RealCluster, until_it_answers
from nemesis.support.journal import Journal
from nemesis.targets.base import (
    BrokerEndpoint,
    control_plane,
    controllers_of,
    uses_zookeeper,
    voters,
)


class LocalNodes(RealCluster[AddressPlan]):
    """Implements ``nemesis.interfaces.cluster.Cluster``, and holds the processes of the nodes."""

    def __init__(self, config: ClusterConfig) -> None:
        """Raises ``UsageError`` when a count or a broker property is wrong; starts nothing."""
        self._target = config.chosen_target
        names = AddressPlan(
            "127.0.0",
            brokers=config.broker_count,
            zookeepers=1 if uses_zookeeper(self._target) else 0,
            clients=config.client_count,
            controllers=controllers_of(self._target),
        )
        super().__init__(names, broker_limit=HOSTS_PER_ROLE["broker"])
        self.config = config
        self.run_directory = config.run_directory.resolve()
        self.clocks = WallClocks(self.run_directory)
        self.disks = LocalDisks(self.run_directory, seed=config.seed)
        self.processes: dict[str, NodeProcess] = {}
        self.journal: Journal | None = None
        self._links: Links | None = None
        self.may_exit_at_start = SteadyStart in self._target.missing(config.broker_properties)
        for node in (*names.brokers, *names.controllers):
            self._target.broker_properties(self.endpoint(node, names), config.broker_properties)

    def address(self, node: str) -> Address:
        return self.addresses.advertised(self.known(node))

    def direct_address(self, node: str) -> Address:
        if (broker := self.broker_with(node)) is not None:
            return control_plane(self.direct_address(broker))
        return self.addresses.direct(self.known(node))

    def direct_source(self, node: str) -> str:
        """The node's own address: the proxy takes the caller for the node itself, and has no rule for that."""
        return self.direct_address(node).host

    def zookeeper_connect(self) -> str:
        """Return the connect string past every link rule."""
        return ",".join(str(self.addresses.direct(node)) for node in self.zookeepers)

    @property
    def links(self) -> Links:
        """The proxy; raises ``RuntimeFailure`` before the start."""
        if self._links is None:
            raise RuntimeFailure("the cluster has no links before its start")
        return self._links

    @links.setter
    def links(self, links: Links) -> None:
        self._links = links

    async def stop_links(self) -> None:
        """Stop the proxy, if it was started."""
        if self._links is not None:
            await self._links.stop()

    def log_dirs(self, node: str) -> tuple[Path, ...]:
        """Return the log directories of a broker or controller."""
        return self.endpoint(node, self.names).log_dirs

    def process(self, node: str) -> NodeProcess:
        """Return the node's process; raises ``RuntimeFailure`` when it was never started."""
        process = self.processes.get(self.known(node))
        if process is None:
            raise RuntimeFailure(f"{node} was never started")
        return process

    def pid(self, node: str) -> int:
        """Return the process id of the node's present process; raises ``RuntimeFailure``."""
        return self.process(node).pid

    def make_zookeeper(self, node: str, journal: Journal) -> None:
        """Make the process of a ZooKeeper server; starts nothing."""
        self.processes[node] = zookeeper_process(
            node,
            self.addresses.direct(node),
            tick_time_ms=self.config.zookeeper_tick_time_ms,
            run_directory=self.run_directory,
            journal=journal,
            environment=self.clocks.environment(node),
        )

    def make_broker(self, node: str, journal: Journal) -> None:
        """Make the process and the disk of a broker or controller; starts nothing."""
        self.disks.create(node)
        self.processes[node] = broker_process(
            node,
            self.endpoint(node, self.addresses),
            target=self._target,
            properties=self.config.broker_properties,
            mutant=self.config.mutant,
            run_directory=self.run_directory,
            journal=journal,
            environment=self.clocks.environment(node),
            disk_commands=self.disks.directory(node),
        )

    async def until_it_answers(self, node: str) -> bool:
        """Ask past the links; False at the deadline, ``NodeExited`` when the process exits."""
        address = self.direct_address(node)

        async def raise_if_dead() -> None:
            self.processes[node].raise_if_dead()

        return await until_it_answers(
            lambda timeout_s: self.ask(node, address, timeout_s=timeout_s),
            raise_if_dead,
            timeout_s=self.config.start_timeout_s,
        )

    def endpoint(self, node: str, plan: AddressPlan) -> BrokerEndpoint:
        """Return the addresses and files of a broker or controller."""
        return broker_endpoint(
            node,
            bind=plan.direct(node),
            advertised=plan.advertised(node),
            zookeeper_connect=",".join(map(str, map(plan.advertised, plan.zookeepers))),
            run_directory=self.run_directory,
            seed=self.config.seed,
            tracing=self.config.tracing,
            log_dirs=1 if node in plan.controllers else self.config.log_dirs,
            voters=()
            if plan.zookeepers
            else voters(plan.controllers or plan.brokers, plan.advertised),
        )
