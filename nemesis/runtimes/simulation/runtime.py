"""``SimulationRuntime``: the nodes, links, disks and clocks of one simulated cluster, as a run and its faults see them.

There is one way to each node, so the direct address of a node is its advertised one; the harness's own host is in no
rule, which is what makes its way direct. What a real runtime waits for (a process is gone, a kernel has stopped it) is
so at once here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from kio.schema.api_versions.v0.request import ApiVersionsRequest

from nemesis.history.stored_logs import StoredLog, read_logs
from nemesis.interfaces.runtime import (
    NO_PACKETS,
    Address,
    Lacks,
    Link,
    LinkCounters,
    NodeExited,
    RuntimeFailure,
    WholeStreams,
    ZooKeeperMember,
    capabilities_without,
)
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
from nemesis.simulation.disk import Operation, SimulatedDisk
from nemesis.simulation.loop import SimulationLoop
from nemesis.simulation.memory_record import MemoryRecord
from nemesis.simulation.network import Network
from nemesis.simulation.node import Node
from nemesis.simulation.randomness import stream
from nemesis.simulation.zookeeper.admin import SimulatedZooKeeperAdmin
from nemesis.simulation.zookeeper.ensemble import SimulatedEnsemble
from nemesis.support import log_damage as damage
from nemesis.workloads.kafka import codec as client_wire_format
from nemesis.workloads.kafka.codec import Codec
from nemesis.workloads.kafka.connection import KafkaConnection
from nemesis.workloads.kafka.errors import KafkaError

POLL_INTERVAL_S = 0.05
PROBE_TIMEOUT_S = 1.0
STRIKE_PATIENCE_S = 0.1
"""How long a process may do nothing before it is struck while it waits."""


class SimulationRuntime(WholeStreams):
    """Implements ``nemesis.interfaces.runtime.Runtime`` on a simulation's loop."""

    name = "simulation"
    lacks: Lacks = NO_PACKETS
    capabilities = capabilities_without(NO_PACKETS)

    def __init__(
        self, config: SimulationRuntimeConfig, loop: SimulationLoop, record: MemoryRecord
    ) -> None:
        self._config = config
        self._record = record
        self._network = Network(loop, stream(config.seed, "network"), config.latency)
        self._power = stream(config.seed, "power")
        self._moments = stream(config.seed, "moments")
        self._network.register(HARNESS_HOST, "harness")
        self._loop = loop
        self._nodes: dict[str, Node] = {}
        self._by_reference = ByReferenceCodec()
        self._disks: dict[str, SimulatedDisk] = {}
        self._clocks = {node: SimulatedWallClock(loop, EPOCH_MS) for node in self.zookeepers}
        self._brokers: dict[str, SimulatedBroker] = {}
        self._members = Membership(config.broker_count, limit=MAX_BROKERS)
        for node in self.zookeepers:
            self._make_node(node)
        for node in self._members.ever:
            self._make_broker(node)
        for node in self.clients:
            self._make_node(node)
        self._ensemble = SimulatedEnsemble(
            {node: str(address_of(node)) for node in self.zookeepers},
            tick_time_ms=config.zookeeper_tick_time_ms,
            rng=stream(config.seed, "zookeeper"),
            wall_clocks=self._clocks,
        )

    @property
    def codec(self) -> Codec:
        """Kafka's wire format, or messages by reference."""
        return client_wire_format if self._config.real_codec else self._by_reference

    @property
    def brokers(self) -> list[str]:
        """``broker-1`` and so on; the number is the broker id."""
        return self._members.present

    @property
    def next_broker(self) -> str | None:
        """One more than there ever were, as long as there are addresses."""
        return self._members.next

    @property
    def zookeepers(self) -> list[str]:
        """The members of the ensemble."""
        return names("zookeeper", self._config.zookeeper_count)

    @property
    def clients(self) -> list[str]:
        """``client-1`` to ``client-N``."""
        return names("client", self._config.client_count)

    def client_host(self, client: str) -> str:
        """The source address that this client binds."""
        return host_of(client)

    def bootstrap(self) -> list[Address]:
        """The brokers' addresses."""
        return [address_of(broker) for broker in self.brokers]

    def zookeeper_admin(self) -> SimulatedZooKeeperAdmin:
        """The harness's own way to ZooKeeper; to be entered before use."""
        return SimulatedZooKeeperAdmin(
            self._ensemble,
            rng=stream(self._config.seed, "zookeeper-admin"),
            source_host=HARNESS_HOST,
        )

    def address(self, node: str) -> Address:
        """The address of a broker or ZooKeeper node."""
        return address_of(node)

    def direct_address(self, node: str) -> Address:
        """The same: who calls decides which rules there are on the way."""
        return address_of(node)

    def direct_source(self, node: str) -> str:
        """The node's own host: what it sends to itself crosses no link."""
        return host_of(node)

    async def start(self) -> None:
        """Bring ZooKeeper and every broker up; returns once each broker answers. Raises ``RuntimeFailure``."""
        for node in self.zookeepers:
            self._start(node)
        for node in self.zookeepers:
            await self._until_it_answers(node)
        for node in self.brokers:
            self._start(node)
        for node in self.brokers:
            if not await self._until_it_answers(node):
                raise RuntimeFailure(
                    f"{node} did not answer in {self._config.start_timeout_s:.0f} s"
                )

    async def stop(self) -> None:
        """End every node. Idempotent."""
        for node in self._nodes.values():
            node.kill()

    async def cut(self, links: frozenset[Link]) -> None:
        """Hold all bytes on these directions until ``restore``; connections stay open."""
        self._network.hold(links)

    async def restore(self, links: frozenset[Link]) -> None:
        """Let the bytes flow again, the held ones first."""
        self._network.release(links)

    async def counters(self, links: frozenset[Link]) -> dict[Link, LinkCounters]:
        """Return what each link has forwarded and held since the start, in bytes."""
        return self._network.counters(links)

    async def probe(self, source: str, target: str, *, timeout_s: float) -> bool:
        """Whether a request from source's address reaches target and its reply comes back in time."""
        return await self._ask(target, host_of(source), timeout_s)

    async def kill(self, node: str) -> dict[str, Any]:
        """SIGKILL; returns ``{"pid": ..., "dead": True}``, where the pid counts the node's lives."""
        return await self._end(node, self._nodes[node].kill)

    async def terminate(self, node: str, *, grace_s: float) -> dict[str, Any]:
        """SIGTERM, SIGKILL after the grace; returns what ``kill`` does and ``ended_by``."""
        incarnation = self._nodes[node].incarnation
        self._nodes[node].terminate()
        loop = asyncio.get_running_loop()
        deadline = loop.time() + grace_s
        while self.is_alive(node) and loop.time() < deadline:
            await asyncio.sleep(POLL_INTERVAL_S)
        ended_by = "SIGKILL" if self.is_alive(node) else "SIGTERM"
        self._nodes[node].kill()
        pid = 0 if incarnation is None else incarnation.number
        return {"pid": pid, "dead": not self.is_alive(node), "ended_by": ended_by}

    async def restart(self, node: str) -> dict[str, Any]:
        """Start a dead node again on the same data; returns ``{"pid": ..., "answered": bool}``.

        Raises ``NodeExited`` when it exits.
        """
        self._start(node)
        incarnation = self._nodes[node].incarnation
        assert incarnation is not None
        return {"pid": incarnation.number, "answered": await self._until_it_answers(node)}

    async def add_broker(self, node: str) -> dict[str, Any]:
        """Let one more broker belong to the cluster, and start it on an empty disk; returns as ``restart`` does."""
        self._members.admit(node)
        self._make_broker(node)
        return await self.restart(node)

    def retire(self, node: str) -> None:
        """Let a dead broker belong to the cluster no more."""
        self._members.retire(node, is_alive=self.is_alive(node))

    async def pause(self, node: str) -> dict[str, Any]:
        """SIGSTOP; returns ``{"paused": True}``."""
        await self._in_the_middle(node, self._nodes[node].pause)
        self._nodes[node].pause()
        return {"paused": True}

    async def resume(self, node: str) -> dict[str, Any]:
        """SIGCONT; returns ``{"paused": False}``."""
        self._nodes[node].resume()
        return {"paused": False}

    def is_alive(self, node: str) -> bool:
        """Whether the node has an incarnation (a paused one does)."""
        return self._nodes[node].is_alive

    async def power_cut(self, node: str) -> dict[str, Any]:
        """Take the power from the node's machine until ``restart``; returns what ``kill`` does and what the disk lost.

        Unlike at a kill, nobody is told: connections fall silent, and calls are not answered.
        """

        def strike() -> None:
            self._network.power_off(node)
            self._nodes[node].kill()

        ended = await self._end(node, strike)
        return ended | asdict(self._disks[node].power_cut(self._power))

    async def unsynced_bytes(self, node: str) -> int:
        """Return how much of the ends of a broker's logs is not synced."""
        return self._disks[node].unsynced_log_bytes()

    async def corrupt_tail(self, node: str) -> dict[str, Any]:
        """Damage the ends of a dead broker's logs; returns what was done."""
        return damage.told(self._disks[node].corrupt_tail(self._power))

    async def fill_disk(self, node: str) -> dict[str, Any]:
        """Let the node's disk take no more; returns what a probe of it meets, by operation."""
        self._disks[node].fill()
        return self._disks[node].probe()

    async def fail_disk(self, node: str) -> dict[str, Any]:
        """Let the node's disk fail with EIO; returns what a probe of it meets, by operation."""
        self._disks[node].fail()
        return self._disks[node].probe()

    async def fail_log_dir(self, node: str, number: int) -> dict[str, Any]:
        """Let one log directory fail with EIO; returns what probes of it and of the others meet."""
        disk, log_dirs = self._disks[node], self._config.log_dirs_of(node)
        failing = log_dirs[number % len(log_dirs)]
        disk.fail(below=failing)
        others = [disk.probe(log_dir) for log_dir in log_dirs if log_dir != failing]
        return {
            **disk.probe(failing),
            "log_dir": failing,
            "others": {
                operation: next((other[operation] for other in others if other[operation]), None)
                for operation in Operation
            },
        }

    async def heal_disk(self, node: str) -> dict[str, Any]:
        """End both; returns what a probe meets now, and ``refused``: how many calls had failed, by errno."""
        refused = self._disks[node].heal()
        return self._disks[node].probe() | {"refused": dict(sorted(refused.items()))}

    async def skew_clock(self, node: str, *, offset_ms: int, drift: float) -> dict[str, Any]:
        """Step the node's wall clock and let it drift from now on; returns what it then says."""
        clock = self._clocks[node]
        clock.skew(offset_ms)
        clock.drift(drift)
        return {"offset_ms": clock.offset_ms, "drift": clock.rate}

    async def zookeeper_members(self) -> dict[str, ZooKeeperMember]:
        """Return what the members say that serve clients and are neither dead nor paused."""
        return {
            node: member
            for node, member in self._ensemble.members().items()
            if (incarnation := self._nodes[node].incarnation) is not None
            and not incarnation.is_stopped
        }

    async def delay(self, links: frozenset[Link], *, delay_ms: int) -> None:
        """Let what is sent on these directions from now on take so much longer; 0 ends it."""
        self._network.delay(links, delay_ms / 1000)

    async def connection_ends(self, links: frozenset[Link]) -> int:
        """Return how many ends of connections there are between these nodes."""
        return len(self._network.ends_between(links))

    async def reset(self, links: frozenset[Link]) -> int:
        """Reset the connections between these nodes; returns how many ends of them there were."""
        return self._network.reset(links)

    async def stored_logs(self, node: str) -> list[StoredLog]:
        """Return what the broker's disk has; raises ValueError."""
        return list(read_logs(self._disks[node], self._config.log_dirs_of(node)))

    async def collect(self) -> None:
        """Put ZooKeeper's committed transactions into the record."""
        self.collect_now()

    def collect_now(self) -> None:
        """The same; nothing is to be waited for here. A second time nothing is added."""
        self._record.set_transactions(self._ensemble.transactions())

    async def _end(self, node: str, strike: Callable[[], None]) -> dict[str, Any]:
        """End a process, somehow; returns what ``kill`` does."""
        incarnation = self._nodes[node].incarnation
        await self._in_the_middle(node, strike)
        strike()
        return {
            "pid": 0 if incarnation is None else incarnation.number,
            "dead": not self.is_alive(node),
        }

    async def _in_the_middle(self, node: str, strike: Callable[[], None]) -> None:
        """Strike a process between two of its next few actions; return when that has happened, or it does nothing.

        Without this every signal would meet a process that waits, because whoever sends it runs in between.
        """
        incarnation = self._nodes[node].incarnation
        actions = self._moments.randint(0, self._config.strike_within_actions)
        if incarnation is None or incarnation.is_stopped or not actions:
            return
        struck = asyncio.Event()

        def strike_now() -> None:
            strike()
            struck.set()

        incarnation.strike_after(actions, strike_now)
        try:
            async with asyncio.timeout(STRIKE_PATIENCE_S):
                await struck.wait()
        except TimeoutError:
            incarnation.actions_left = None

    def _make_node(self, name: str, *, speaks_kafka: bool = False) -> None:
        self._network.register(host_of(name), name, speaks_kafka=speaks_kafka)
        self._nodes[name] = Node(self._loop, name, host_of(name))

    def _make_broker(self, name: str) -> None:
        config = self._config
        self._make_node(name, speaks_kafka=True)
        self._disks[name] = SimulatedDisk()
        self._clocks[name] = SimulatedWallClock(self._loop, EPOCH_MS)
        self._brokers[name] = SimulatedBroker(
            name=name,
            properties=config.properties_of(name),
            disk=self._disks[name],
            clock=self._clocks[name],
            record=self._record,
            codec=broker_wire_format if config.real_codec else self._by_reference,
            random=lambda stream_name: stream(config.seed, stream_name),
        )

    def _start(self, node: str) -> None:
        self._network.power_on(node)
        if node in self._brokers:
            self._nodes[node].start(self._brokers[node].main)
        else:
            self._nodes[node].start(lambda: self._ensemble.main(node))

    async def _until_it_answers(self, node: str) -> bool:
        """Return False at the deadline; raises ``NodeExited`` when the node exits."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._config.start_timeout_s
        while not await self._ask(node, HARNESS_HOST, PROBE_TIMEOUT_S):
            if (ended := self._nodes[node].exit) is not None:
                raise NodeExited(f"{node} has exited: {ended.error!r}")
            if loop.time() > deadline:
                return False
            await asyncio.sleep(POLL_INTERVAL_S)
        return True

    async def _ask(self, node: str, source_host: str, timeout_s: float) -> bool:
        """Whether the node's own work answers: ApiVersions of a broker, ``srvr`` of a ZooKeeper server."""
        address = address_of(node)
        if node not in self._brokers:
            return await self._ensemble.probe(node, source_host=source_host, timeout_s=timeout_s)
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
