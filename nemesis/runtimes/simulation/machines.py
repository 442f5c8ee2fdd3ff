"""The machines of a simulated cluster: their nodes, disks, clocks, and the network between them.

All parts of ``SimulationRuntime`` act on these. What a real runtime waits for (a process is gone, a kernel has stopped
it) has happened at once here.
"""

from __future__ import annotations

import asyncio

from kio.schema.api_versions.v0.request import ApiVersionsRequest

from nemesis.interfaces.errors import NodeExited
from nemesis.interfaces.links import Address
from nemesis.reference.protocol import codec as broker_wire_format
from nemesis.runtimes.membership import Membership
from nemesis.runtimes.simulation.addresses import (
    HARNESS_HOST,
    MAX_BROKERS,
    address_of,
    host_of,
    names,
)
from nemesis.runtimes.simulation.broker import SimulatedBroker
from nemesis.runtimes.simulation.config import SimulationRuntimeConfig
from nemesis.simulation.clock import EPOCH_MS, SimulatedWallClock
from nemesis.simulation.codec import ByReferenceCodec
from nemesis.simulation.disk import SimulatedDisk
from nemesis.simulation.loop import SimulationLoop
from nemesis.simulation.memory_record import MemoryRecord
from nemesis.simulation.network import Network
from nemesis.simulation.node import Node
from nemesis.simulation.randomness import stream
from nemesis.simulation.zookeeper.ensemble import SimulatedEnsemble
from nemesis.workloads.kafka import codec as client_wire_format
from nemesis.workloads.kafka.codec import Codec
from nemesis.workloads.kafka.connection import KafkaConnection
from nemesis.workloads.kafka.errors import KafkaError

POLL_INTERVAL_S = 0.05
PROBE_TIMEOUT_S = 1.0


class Machines:
    """Everything that a simulated cluster consists of. Implements ``nemesis.interfaces.cluster.Cluster``.

    There is one way to each node, so the direct address of a node is its advertised one; the harness's own host is in
    no rule, which makes its way direct.
    """

    def __init__(
        self, config: SimulationRuntimeConfig, loop: SimulationLoop, record: MemoryRecord
    ) -> None:
        """Make every machine; starts nothing."""
        self.config = config
        self.record = record
        self.network = Network(loop, stream(config.seed, "network"), config.latency)
        self.network.register(HARNESS_HOST, "harness")
        self.nodes: dict[str, Node] = {}
        self.disks: dict[str, SimulatedDisk] = {}
        self.clocks = {node: SimulatedWallClock(loop, EPOCH_MS) for node in self.zookeepers}
        self.membership = Membership(config.broker_count, limit=MAX_BROKERS)
        self._loop = loop
        self._by_reference = ByReferenceCodec()
        self._brokers: dict[str, SimulatedBroker] = {}
        for node in self.zookeepers:
            self._make_node(node)
        for node in self.membership.ever:
            self.make_broker(node)
        for node in self.clients:
            self._make_node(node)
        self.ensemble = SimulatedEnsemble(
            {node: str(address_of(node)) for node in self.zookeepers},
            tick_time_ms=config.zookeeper_tick_time_ms,
            rng=stream(config.seed, "zookeeper"),
            wall_clocks=self.clocks,
        )

    @property
    def codec(self) -> Codec:
        """Kafka's wire format, or messages by reference."""
        return client_wire_format if self.config.real_codec else self._by_reference

    @property
    def brokers(self) -> list[str]:
        return self.membership.present

    @property
    def zookeepers(self) -> list[str]:
        return names("zookeeper", self.config.zookeeper_count)

    @property
    def clients(self) -> list[str]:
        return names("client", self.config.client_count)

    def client_host(self, client: str) -> str:
        return host_of(client)

    def address(self, node: str) -> Address:
        return address_of(node)

    def direct_address(self, node: str) -> Address:
        return address_of(node)

    def direct_source(self, node: str) -> str:
        """The node's own host: what it sends to itself crosses no link."""
        return host_of(node)

    def make_broker(self, name: str) -> None:
        """Make the machine of a broker, with an empty disk and a clock that is right."""
        config = self.config
        self._make_node(name, speaks_kafka=True)
        self.disks[name] = SimulatedDisk()
        self.clocks[name] = SimulatedWallClock(self._loop, EPOCH_MS)
        self._brokers[name] = SimulatedBroker(
            name=name,
            properties=config.properties_of(name),
            disk=self.disks[name],
            clock=self.clocks[name],
            record=self.record,
            codec=broker_wire_format if config.real_codec else self._by_reference,
            random=lambda stream_name: stream(config.seed, stream_name),
        )

    def start(self, node: str) -> None:
        """Switch the node's machine on and start its process."""
        self.network.power_on(node)
        if node in self._brokers:
            self.nodes[node].start(self._brokers[node].main)
        else:
            self.nodes[node].start(lambda: self.ensemble.main(node))

    async def until_it_answers(self, node: str) -> bool:
        """Return False at the deadline; raises ``NodeExited`` when the node exits."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self.config.start_timeout_s
        while not await self.ask(node, HARNESS_HOST, PROBE_TIMEOUT_S):
            if (ended := self.nodes[node].exit) is not None:
                raise NodeExited(f"{node} has exited: {ended.error!r}")
            if loop.time() > deadline:
                return False
            await asyncio.sleep(POLL_INTERVAL_S)
        return True

    async def ask(self, node: str, source_host: str, timeout_s: float) -> bool:
        """Return whether the node's own work answers: a broker to ApiVersions, a ZooKeeper server to ``srvr``."""
        address = address_of(node)
        if node not in self._brokers:
            return await self.ensemble.probe(node, source_host=source_host, timeout_s=timeout_s)
        connection = KafkaConnection(
            address.host,
            address.port,
            client_id="nemesis-probe",
            source_host=source_host,
            codec=self.codec,
        )
        try:
            await connection.request(ApiVersionsRequest(), timeout_s=timeout_s)
        except KafkaError:
            return False
        finally:
            connection.close()
        return True

    def _make_node(self, name: str, *, speaks_kafka: bool = False) -> None:
        self.network.register(host_of(name), name, speaks_kafka=speaks_kafka)
        self.nodes[name] = Node(self._loop, name, host_of(name))
