"""``DockerRuntime``: a cluster of containers on a network of its own.

Order of the start: journal, network, containers (``cluster`` has the details), packet rules, ZooKeeper, brokers.
Whatever fails on the way is undone before the error leaves ``start``. The end stops the nodes, brings home what they
hold, and removes everything that carries the run's label; the journal goes last, and stays when anything could not be
removed.

There is one way to each node. The harness's own begins at the bridge's own address, which is in no rule: that is what
makes it direct. Clients are addresses of the host on the same bridge.
"""

from __future__ import annotations

import asyncio
import socket
import uuid
from ipaddress import IPv4Network
from pathlib import Path
from typing import Any

from nemesis.history.stored_logs import StoredLog, read_logs
from nemesis.interfaces.runtime import (
    Address,
    Lacks,
    RuntimeFailure,
    SharedMachine,
    ZooKeeperMember,
    capabilities_without,
)
from nemesis.reference.adapters.disk import RealDisk
from nemesis.runtimes.clock_control.wall_clocks import WallClocks
from nemesis.runtimes.config import ClusterConfig
from nemesis.runtimes.docker import compose_file
from nemesis.runtimes.docker.addresses import HOSTS_PER_ROLE, TEST_NETWORKS, DockerAddresses
from nemesis.runtimes.docker.cluster import Cluster
from nemesis.runtimes.docker.collect import NotHad, logs_at_home
from nemesis.runtimes.docker.compose_file import Compose
from nemesis.runtimes.docker.container_node import ContainerNode
from nemesis.runtimes.docker.disk_faults import DISKS, ONE_DISK, DiskFaults
from nemesis.runtimes.docker.engine_calls import EngineRefused, together
from nemesis.runtimes.docker.machine import disk_obstacle
from nemesis.runtimes.docker.packet_faults import PacketFaults
from nemesis.runtimes.docker.packets import kernel
from nemesis.runtimes.docker.packets.kernel import Feature
from nemesis.runtimes.docker.packets.namespace import Namespace, NamespaceError
from nemesis.runtimes.docker.packets.packet_rules import PacketRules
from nemesis.runtimes.docker.packets.rules import PacketNode
from nemesis.runtimes.docker.zookeeper_members import ask_member
from nemesis.runtimes.kazoo_admin import KazooAdmin
from nemesis.runtimes.membership import Membership
from nemesis.runtimes.probes import probe_broker, probe_zookeeper
from nemesis.support.errors import MissingRequirement
from nemesis.support.journal import Journal
from nemesis.targets import TARGETS
from nemesis.targets.base import BrokerPlace, seed_of_broker
from nemesis.workloads.kafka import codec as wire_format
from nemesis.workloads.kafka.codec import Codec

POLL_INTERVAL_S = 0.05
PROBE_TIMEOUT_S = 1.0
RUN_ID_DIGITS = 10
ADMIN_SESSION_TIMEOUT_S = 4.0
"""Short: the harness must leave a member that is paused long before it gives up on ZooKeeper."""
NOWHERE = IPv4Network(next(TEST_NETWORKS.subnets(new_prefix=24)))
"""Names count before the start, addresses do not."""


class DockerRuntime(PacketFaults, DiskFaults, SharedMachine):
    """Implements ``nemesis.interfaces.runtime.Runtime``. Used by one task at a time for each node."""

    name = "docker"

    def __init__(self, config: ClusterConfig, features: frozenset[Feature]) -> None:
        """``features`` are what this machine's kernel can do to packets; the capabilities rest on them, among others.

        Raises ``UsageError`` when a count or a broker property is wrong; starts nothing.
        """
        super().__init__()
        obstacle = disk_obstacle()
        without_disks = dict.fromkeys(DISKS, obstacle) if obstacle else {}
        self._features = features
        self._config = config
        self._run_directory = config.run_directory.resolve()
        self._clocks = WallClocks(self._run_directory)
        self.lacks: Lacks = {
            **ONE_DISK,
            **kernel.lacks(features),
            **without_disks,
            **self._clocks.lacks,
        }
        self.capabilities = capabilities_without(self.lacks)
        self._target = TARGETS[config.target]
        self._names = DockerAddresses(
            NOWHERE,
            brokers=config.broker_count,
            zookeepers=len(compose_file.ZOOKEEPERS),
            clients=config.client_count,
        )
        for broker in self._names.brokers:
            self._properties(broker, self._names)
        self._members = Membership(config.broker_count, limit=HOSTS_PER_ROLE["broker"])
        self._journal: Journal | None = None
        self._run_id = uuid.uuid4().hex[:RUN_ID_DIGITS]
        self._cluster = Cluster(self._run_id, self._run_directory, has_disks=not obstacle)
        self._addresses: DockerAddresses | None = None
        self._not_brought_home = NotHad()

    @property
    def codec(self) -> Codec:
        """Kafka's wire format."""
        return wire_format

    @property
    def brokers(self) -> list[str]:
        """``broker-1`` and so on; the number is the broker id."""
        return self._members.present

    @property
    def next_broker(self) -> str | None:
        """One more than there ever were, as long as the subnet has addresses."""
        return self._members.next

    @property
    def zookeepers(self) -> list[str]:
        """The members of the ensemble."""
        return list(self._names.zookeepers)

    @property
    def clients(self) -> list[str]:
        """``client-1`` to ``client-N``."""
        return list(self._names.clients)

    def client_host(self, client: str) -> str:
        """The source address that this client binds."""
        if client not in self._names.clients:
            raise RuntimeFailure(f"there is no client {client!r}")
        return self._present.host(client)

    def bootstrap(self) -> list[Address]:
        """The brokers' addresses."""
        return [self._present.address(broker) for broker in self.brokers]

    def zookeeper_admin(self) -> KazooAdmin:
        """The harness's own way to ZooKeeper, past every rule; to be entered before use."""
        return KazooAdmin(self.zookeeper_connect(), session_timeout_s=ADMIN_SESSION_TIMEOUT_S)

    def zookeeper_connect(self) -> str:
        """The connect string of the ensemble."""
        return self._present.zookeeper_connect()

    def address(self, node: str) -> Address:
        """The address of a broker or ZooKeeper node."""
        return self._present.address(self._known(node))

    def direct_address(self, node: str) -> Address:
        """The same: who calls decides which rules there are on the way."""
        return self.address(node)

    def direct_source(self, node: str) -> str:
        """The bridge's own address."""
        self._known(node)
        return self._present.gateway

    async def start(self) -> None:
        """Bring ZooKeeper and every broker up; returns once each broker's port answers.

        Raises ``MissingRequirement`` (no engine, no image, no subnet, no space) or ``RuntimeFailure`` (a node that did
        not come up); nothing is left behind.
        """
        if self._journal is not None:
            raise RuntimeFailure("this cluster was started already")
        self._journal = Journal.create(self._run_directory)
        self._journal.add_engine_run(self._run_id)
        try:
            await self._start(self._journal)
        except EngineRefused as error:
            await self._give_up()
            raise MissingRequirement(str(error)) from error
        except BaseException:
            await self._give_up()
            raise

    async def _give_up(self) -> None:
        await self.stop()
        self._not_brought_home = NotHad()  # nothing was recorded that could be missed

    async def _start(self, journal: Journal) -> None:
        self._clocks.create([*self.zookeepers, *self.brokers])
        self._addresses = await self._cluster.create(self._names, self._describe)
        self._rules = PacketRules(
            self._packet_nodes(self._addresses),
            pid_of=lambda node: self._node(node).pid,
            harness_host=self._addresses.gateway,
            features=self._features,
            journal=journal,
            log=self._run_directory / "logs" / "packets.log",
            seed=self._config.seed,
        )
        for nodes in (self.zookeepers, self.brokers):
            await together(self._begin(node) for node in nodes)
            for node in nodes:
                if not await self._until_it_answers(node):
                    raise RuntimeFailure(
                        f"{node} did not answer in {self._config.start_timeout_s:.0f} s: "
                        f"{await self._cluster.nodes[node].last_words()}"
                    )

    async def stop(self) -> None:
        """End everything that ``start`` began, in any state, and bring home what the nodes recorded. Idempotent.

        Raises ``RuntimeFailure`` when something could not be removed; the journal then stays for ``nemesis clean``.
        """
        if self._journal is None:
            return
        await self._cluster.stop()
        failures: list[RuntimeFailure] = []
        for end in (self._clear_rules, self._bring_home, self._cluster.remove):
            try:
                await end()
            except RuntimeFailure as error:  # the rest is to be ended all the same
                failures.append(error)
        if failures:
            raise failures[0]
        self._journal.close()
        self._journal = None

    async def _clear_rules(self) -> None:
        rules, self._rules = self._rules, None
        if rules is not None:
            await rules.clear()

    async def _bring_home(self) -> None:
        self._not_brought_home = await self._cluster.bring_home()

    async def probe(self, source: str, target: str, *, timeout_s: float) -> bool:
        """Whether a request from source's address reaches target and its reply comes back in time."""
        address = self.address(target)
        if source in self._names.clients:
            return await self._ask(
                target, address, source_host=self.client_host(source), timeout_s=timeout_s
            )
        node = self._node(source)
        try:
            namespace = Namespace(node.pid)
        except NamespaceError:  # it is dead: nothing can be sent from there
            return False
        try:
            caller = namespace.socket(socket.AF_INET, socket.SOCK_STREAM)
        finally:
            namespace.close()
        return await self._ask(target, address, caller=caller, timeout_s=timeout_s)

    async def kill(self, node: str) -> dict[str, Any]:
        """SIGKILL; returns ``{"container": ..., "pid": ..., "dead": True}`` once the process is gone."""
        return await self._node(node).kill()

    async def terminate(self, node: str, *, grace_s: float) -> dict[str, Any]:
        """SIGTERM, SIGKILL after the grace; returns what ``kill`` does and ``ended_by``."""
        return await self._node(node).terminate(grace_s=grace_s)

    async def restart(self, node: str) -> dict[str, Any]:
        """Start a dead node again on the same data; returns ``{"container": ..., "pid": ..., "answered": bool}``.

        ``answered`` is False when it lives but did not answer in ``start_timeout_s``. Raises ``NodeExited`` when it
        exits.
        """
        pid = await self._begin(node)
        answered = await self._until_it_answers(node)
        return {"container": self._node(node).container_name, "pid": pid, "answered": answered}

    async def add_broker(self, node: str) -> dict[str, Any]:
        """Let one more broker belong to the cluster, and start it on an empty disk; returns as ``restart`` does."""
        self._members.admit(node)
        addresses = self._addresses = self._present.with_broker()
        self._names = self._names.with_broker()
        self._clocks.create([node])
        await self._cluster.add(node, addresses, self._describe)
        await self._packets.add(node, self._packet_nodes(addresses)[node])
        return await self.restart(node)

    def retire(self, node: str) -> None:
        """Let a dead broker belong to the cluster no more."""
        self._members.retire(node, is_alive=self.is_alive(node))

    async def pause(self, node: str) -> dict[str, Any]:
        """Freeze; returns ``{"container": ..., "pid": ..., "paused": True}`` once the kernel says that it is frozen."""
        return await self._node(node).pause()

    async def resume(self, node: str) -> dict[str, Any]:
        """Thaw; returns ``{"container": ..., "pid": ..., "paused": False}`` once the kernel says that it runs."""
        return await self._node(node).resume()

    def is_alive(self, node: str) -> bool:
        """Whether the node's process exists (a paused one does)."""
        return self._node(node).is_alive

    async def skew_clock(self, node: str, *, offset_ms: int, drift: float) -> dict[str, Any]:
        """Set the node's wall clock; returns ``{"preloaded": True, "offset_ms": ..., "drift": ...}``, measured."""
        pid = self._node(node).pid
        return await self._clocks.skew(node, pid, offset_ms=offset_ms, drift=drift)

    async def zookeeper_members(self) -> dict[str, ZooKeeperMember]:
        """Return what the members of the ensemble say that answer and serve clients; the others are left out."""
        answers = await asyncio.gather(
            *(ask_member(self.address(node), self._node(node)) for node in self.zookeepers)
        )
        return {
            node: member
            for node, member in zip(self.zookeepers, answers, strict=True)
            if member is not None
        }

    async def stored_logs(self, node: str) -> list[StoredLog]:
        """Return what the broker's files had, which came home; raises OSError or ValueError."""
        if (why_not := self._not_brought_home.data.get(node)) is not None:
            raise OSError(why_not)
        log_dir = str(logs_at_home(self._run_directory, node))
        return await asyncio.to_thread(lambda: list(read_logs(RealDisk(), [log_dir])))

    async def collect(self) -> None:
        """All records came home before the containers went; raises ``RuntimeFailure`` when one did not."""
        if self._not_brought_home.records:
            raise RuntimeFailure("; ".join(self._not_brought_home.records))

    def _describe(self, addresses: DockerAddresses, image: str) -> Compose:
        """Return the compose file of this cluster with these addresses."""
        command = self._target.broker_command(
            Path(compose_file.CONFIGURATION_FILE),
            self._config.mutant,
            python=compose_file.PYTHON,
        )
        return compose_file.effective(
            compose_file.read_template(),
            run_id=self._run_id,
            subnet=addresses.subnet,
            image=image,
            hosts={broker: addresses.host(broker) for broker in addresses.brokers},
            brokers={broker: self._properties(broker, addresses) for broker in addresses.brokers},
            broker_command=command,
            tick_time_ms=self._config.zookeeper_tick_time_ms,
        )

    def _properties(self, broker: str, addresses: DockerAddresses) -> dict[str, object]:
        """Return a broker's whole configuration; raises ``UsageError``."""
        number = int(broker.removeprefix("broker-"))
        place = BrokerPlace(
            broker_id=number,
            bind=addresses.address(broker),
            advertised=addresses.address(broker),
            # Each begins at another member, so that sessions are spread over the ensemble.
            zookeeper_connect=addresses.zookeeper_connect(first=number - 1),
            log_dirs=(Path(compose_file.DATA_DIRECTORY),),
            trace_file=Path(compose_file.TRACE_FILE) if self._config.tracing else None,
            seed=seed_of_broker(self._config.seed, number),
        )
        return self._target.broker_properties(place, self._config.broker_properties)

    @property
    def _present(self) -> DockerAddresses:
        if self._addresses is None:
            raise RuntimeFailure("the cluster has no addresses before its start")
        return self._addresses

    def _packet_nodes(self, addresses: DockerAddresses) -> dict[str, PacketNode]:
        """Return where packets come from and go to."""
        return {
            node: PacketNode(
                host=host,
                is_container=node not in self.clients,
                port=addresses.address(node).port if node in addresses.brokers else None,
            )
            for node, host in addresses.hosts.items()
        }

    async def _begin(self, node: str) -> int:
        """Start a life and return its pid. Its network namespace is a new one: the rules in force are put in."""
        pid = await self._node(node).start()
        await self._require_disk(node)
        await self._packets.reapply(node)
        return pid

    def _known(self, node: str) -> str:
        if node not in self._names.brokers and node not in self._names.zookeepers:
            raise RuntimeFailure(f"there is no node {node!r}")
        return node

    def _node(self, node: str) -> ContainerNode:
        container = self._cluster.nodes.get(self._known(node))
        if container is None:
            raise RuntimeFailure(f"{node} was never started")
        return container

    async def _until_it_answers(self, node: str) -> bool:
        """Ask past the rules; False at the deadline, ``NodeExited`` when the process exits."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._config.start_timeout_s
        address, own = self.direct_address(node), self.direct_source(node)
        while not await self._ask(node, address, source_host=own, timeout_s=PROBE_TIMEOUT_S):
            await self._node(node).raise_if_dead()
            if loop.time() > deadline:
                return False
            await asyncio.sleep(POLL_INTERVAL_S)
        return True

    async def _ask(
        self,
        node: str,
        address: Address,
        *,
        timeout_s: float,
        source_host: str | None = None,
        caller: socket.socket | None = None,
    ) -> bool:
        probe = probe_broker if node in self._names.brokers else probe_zookeeper
        return await probe(address, timeout_s=timeout_s, source_host=source_host, caller=caller)
