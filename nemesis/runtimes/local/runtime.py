"""``LocalRuntime``: a cluster of processes on this machine behind one proxy.

Order of the start: journal, lease, proxy, ZooKeeper, brokers. Whatever fails on the way is undone before the
error leaves ``start``. The end is the reverse; the journal goes last, and stays when anything could not be ended.
"""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path
from typing import Any, Final

from nemesis.history.stored_logs import StoredLog, read_logs
from nemesis.interfaces.runtime import (
    NO_PACKETS,
    Address,
    Capability,
    Lacks,
    Link,
    LinkCounters,
    RuntimeFailure,
    SharedMachine,
    WholeStreams,
    capabilities_without,
)
from nemesis.reference.adapters.disk import RealDisk
from nemesis.runtimes.clock_control.wall_clocks import WallClocks
from nemesis.runtimes.config import ClusterConfig
from nemesis.runtimes.disk_control.local_disks import LocalDisks
from nemesis.runtimes.kazoo_admin import KazooAdmin
from nemesis.runtimes.local.addresses import HOSTS_PER_ROLE, AddressPlan, Lease, take_lease
from nemesis.runtimes.local.broker_process import broker_place, broker_process
from nemesis.runtimes.local.links import Links
from nemesis.runtimes.local.node_process import TERM_GRACE_S, NodeProcess
from nemesis.runtimes.local.zookeeper_server import data_directory, zookeeper_process
from nemesis.runtimes.membership import Membership
from nemesis.runtimes.probes import probe_broker, probe_zookeeper
from nemesis.support.errors import MissingRequirement
from nemesis.support.journal import Journal
from nemesis.targets import TARGETS
from nemesis.targets.base import BrokerPlace
from nemesis.workloads.kafka import codec as wire_format
from nemesis.workloads.kafka.codec import Codec

ONE_SERVER: Final = "it has one ZooKeeper server"
LACKS: Final[Lacks] = {
    **NO_PACKETS,
    Capability.ZOOKEEPER: ONE_SERVER,
    Capability.MEMBER_CLOCK: ONE_SERVER,
    Capability.SLOW: "its proxy holds bytes or lets them through at once",
    Capability.RESET: "its proxy keeps connections open",
}
POLL_INTERVAL_S = 0.05
PROBE_TIMEOUT_S = 1.0


class LocalRuntime(SharedMachine, WholeStreams):
    """Implements ``nemesis.interfaces.runtime.Runtime``. Used by one task at a time for each node."""

    name = "local"
    lacks: Lacks = LACKS
    capabilities = capabilities_without(LACKS)

    def __init__(self, config: ClusterConfig) -> None:
        """Raises ``UsageError`` when a count or a broker property is wrong; starts nothing."""
        self._config = config
        self._run_directory = config.run_directory.resolve()
        self._clocks = WallClocks(self._run_directory)
        self._disks = LocalDisks(self._run_directory, seed=config.seed)
        self.lacks = {**self._clocks.lacks, **LACKS}
        self.capabilities = capabilities_without(self.lacks)
        self._target = TARGETS[config.target]
        self._names = AddressPlan(
            "127.0.0", brokers=config.broker_count, zookeepers=1, clients=config.client_count
        )
        """Only the names count before the lease; the addresses serve to try the configuration. Brokers that have left
        are there, too."""
        self._members = Membership(config.broker_count, limit=HOSTS_PER_ROLE["broker"])
        for broker in self._names.brokers:
            place = self._place(broker, self._names)
            self._target.broker_properties(place, config.broker_properties)
        self._journal: Journal | None = None
        self._lease: Lease | None = None
        self._links: Links | None = None
        self._nodes: dict[str, NodeProcess] = {}

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
        """One more than there ever were, as long as the network has addresses."""
        return self._members.next

    @property
    def zookeepers(self) -> list[str]:
        """The one server: ``zookeeper-1``."""
        return list(self._names.zookeepers)

    @property
    def clients(self) -> list[str]:
        """``client-1`` to ``client-N``."""
        return list(self._names.clients)

    def client_host(self, client: str) -> str:
        """The source address that this client binds."""
        if client not in self._names.clients:
            raise RuntimeFailure(f"there is no client {client!r}")
        return self._leased.host(client)

    def bootstrap(self) -> list[Address]:
        """The brokers' advertised addresses."""
        return [self._leased.advertised(broker) for broker in self.brokers]

    def zookeeper_admin(self) -> KazooAdmin:
        """The harness's own way to ZooKeeper, past every link rule; to be entered before use."""
        return KazooAdmin(self.zookeeper_connect())

    def zookeeper_connect(self) -> str:
        """The connect string past every link rule."""
        return ",".join(str(self._leased.direct(node)) for node in self.zookeepers)

    def address(self, node: str) -> Address:
        """The advertised address of a broker or ZooKeeper node (through the links)."""
        return self._leased.advertised(self._known(node))

    def direct_address(self, node: str) -> Address:
        """The address of a broker or ZooKeeper node past every link rule."""
        return self._leased.direct(self._known(node))

    def direct_source(self, node: str) -> str:
        """The node's own address: the proxy knows whoever calls from it as this node, and has no rule for that."""
        return self.direct_address(node).host

    async def start(self) -> None:
        """Bring ZooKeeper and every broker up; returns once each broker's port answers.

        Raises ``MissingRequirement`` (no Java, a port in use) or ``RuntimeFailure``; nothing is left behind.
        """
        if self._journal is not None:
            raise RuntimeFailure("this cluster was started already")
        self._journal = Journal.create(self._run_directory)
        try:
            await self._start(self._journal)
        except BaseException:
            await self.stop()
            raise

    async def _start(self, journal: Journal) -> None:
        self._lease = take_lease(
            journal,
            brokers=len(self.brokers),
            zookeepers=len(self.zookeepers),
            clients=len(self.clients),
        )
        plan = self._lease.plan
        self._clocks.create([*self.zookeepers, *self.brokers])
        for node in self.zookeepers:
            self._nodes[node] = zookeeper_process(
                node,
                plan.direct(node),
                tick_time_ms=self._config.zookeeper_tick_time_ms,
                run_directory=self._run_directory,
                journal=journal,
                environment=self._clocks.environment(node),
            )
        for node in self.brokers:
            self._nodes[node] = self._broker(node, plan, journal)
        self._links = Links(log=self._run_directory / "logs" / "proxy.log", journal=journal)
        await self._links.start(plan)
        for nodes in (self.zookeepers, self.brokers):
            for node in nodes:
                self._nodes[node].start()
            for node in nodes:
                if not await self._until_it_answers(node):
                    raise RuntimeFailure(
                        f"{node} did not answer in {self._config.start_timeout_s:.0f} s: "
                        f"{self._nodes[node].last_words()}"
                    )

    async def stop(self) -> None:
        """End everything that ``start`` began, in any state. Idempotent.

        Raises ``RuntimeFailure`` when something could not be ended; the journal then stays for ``nemesis clean``.
        """
        if self._journal is None:
            return
        failures: list[BaseException] = []
        # A broker that is asked looks for others to lead its partitions; here all of them go.
        for nodes, grace_s in ((self._members.ever, 0.0), (self.zookeepers, TERM_GRACE_S)):
            ends = (
                self._nodes[node].stop(grace_s=grace_s) for node in nodes if node in self._nodes
            )
            results = await asyncio.gather(*ends, return_exceptions=True)
            failures += [result for result in results if isinstance(result, BaseException)]
        if self._links is not None:
            await self._links.stop()
        if failures:
            raise RuntimeFailure(f"the cluster could not be ended: {failures[0]}")
        if self._lease is not None:
            self._lease.release()
        self._journal.close()
        self._journal = None

    async def cut(self, links: frozenset[Link]) -> None:
        """Hold all bytes on these directions until ``restore``; connections stay open."""
        await self._running_links.hold(links)

    async def restore(self, links: frozenset[Link]) -> None:
        """Let the bytes flow again, the held ones first."""
        await self._running_links.release(links)

    async def counters(self, links: frozenset[Link]) -> dict[Link, LinkCounters]:
        """Return what each link has forwarded and held since the start, in bytes."""
        return await self._running_links.counters(links)

    async def probe(self, source: str, target: str, *, timeout_s: float) -> bool:
        """Whether a request from source's address reaches target and its reply comes back in time."""
        return await self._ask(
            self._known(target),
            self.address(target),
            source_host=self._leased.host(source),
            timeout_s=timeout_s,
        )

    async def kill(self, node: str) -> dict[str, Any]:
        """SIGKILL; returns ``{"pid": ..., "dead": True}`` once the process is reaped."""
        return await self._process(node).kill()

    async def terminate(self, node: str, *, grace_s: float) -> dict[str, Any]:
        """SIGTERM, SIGKILL after the grace; returns ``{"pid": ..., "dead": True, "ended_by": ...}`` once reaped."""
        return await self._process(node).terminate(grace_s=grace_s)

    async def restart(self, node: str) -> dict[str, Any]:
        """Start a dead node again on the same data; returns ``{"pid": ..., "answered": bool}``.

        ``answered`` is False when it lives but did not answer in ``start_timeout_s``: a broker that is cut
        from ZooKeeper waits for it before it listens. Raises ``NodeExited`` when it exits.
        """
        process = self._process(node)
        process.start()
        return {"pid": process.pid, "answered": await self._until_it_answers(node)}

    async def add_broker(self, node: str) -> dict[str, Any]:
        """Let one more broker belong to the cluster, and start it on an empty disk; returns as ``restart`` does."""
        if self._lease is None or self._journal is None:
            raise RuntimeFailure(f"{node} cannot join: the cluster is not running")
        self._members.admit(node)
        plan = self._lease.plan = self._lease.plan.with_broker()
        self._names = self._names.with_broker()
        self._clocks.create([node])
        self._nodes[node] = self._broker(node, plan, self._journal)
        try:
            await self._running_links.open(plan, [node])
        except MissingRequirement as error:
            raise RuntimeFailure(f"{node} cannot join: {error}") from error
        return await self.restart(node)

    def retire(self, node: str) -> None:
        """Let a dead broker belong to the cluster no more."""
        self._members.retire(node, is_alive=self.is_alive(node))

    async def pause(self, node: str) -> dict[str, Any]:
        """SIGSTOP; returns ``{"pid": ..., "paused": True}`` once the kernel says that it is stopped."""
        return await self._process(node).pause()

    async def resume(self, node: str) -> dict[str, Any]:
        """SIGCONT; returns ``{"pid": ..., "paused": False}`` once the kernel says that it runs."""
        return await self._process(node).resume()

    def is_alive(self, node: str) -> bool:
        """Whether the node's process exists (a paused one does)."""
        return self._process(node).is_alive

    async def power_cut(self, node: str) -> dict[str, Any]:
        """SIGKILL, and take from the broker's files what was not synced; returns what ``kill`` does and the loss.

        Its connections end as at a kill: this machine has power, and says so to the peers.
        """
        killed = await self._process(node).kill()
        return killed | await asyncio.to_thread(self._disks.cut_power, node)

    async def unsynced_bytes(self, node: str) -> int:
        """Return how much of the ends of a broker's logs is not synced."""
        return await asyncio.to_thread(self._disks.unsynced_bytes, node)

    async def corrupt_tail(self, node: str) -> dict[str, Any]:
        """Damage the ends of a dead broker's logs; returns what was done."""
        return await asyncio.to_thread(self._disks.corrupt_tail, node)

    async def fill_disk(self, node: str) -> dict[str, Any]:
        """Let the broker's disk take no more; returns what a probe of it meets, by operation."""
        pid, log_dirs = self._process(node).pid, self._log_dirs(node)
        return await asyncio.to_thread(self._disks.fill, node, pid, log_dirs)

    async def fail_disk(self, node: str) -> dict[str, Any]:
        """Let the broker's disk fail with EIO; returns what a probe of it meets, by operation."""
        pid, log_dirs = self._process(node).pid, self._log_dirs(node)
        return await asyncio.to_thread(self._disks.fail, node, pid, log_dirs)

    async def fail_log_dir(self, node: str, number: int) -> dict[str, Any]:
        """Let one log directory fail with EIO; returns what probes of it and of the others meet."""
        pid, log_dirs = self._process(node).pid, self._log_dirs(node)
        return await asyncio.to_thread(self._disks.fail_log_dir, node, pid, log_dirs, number)

    async def heal_disk(self, node: str) -> dict[str, Any]:
        """End both; returns what a probe meets now, and ``refused``: how many calls had failed, by errno."""
        return await asyncio.to_thread(self._disks.heal, node, self._log_dirs(node))

    async def skew_clock(self, node: str, *, offset_ms: int, drift: float) -> dict[str, Any]:
        """Set the node's wall clock; returns ``{"preloaded": True, "offset_ms": ..., "drift": ...}``, measured."""
        pid = self._process(node).pid
        return await self._clocks.skew(node, pid, offset_ms=offset_ms, drift=drift)

    async def stored_logs(self, node: str) -> list[StoredLog]:
        """Return what the broker's files have; raises OSError or ValueError."""
        log_dirs = [str(log_dir) for log_dir in self._log_dirs(node)]
        return await asyncio.to_thread(lambda: list(read_logs(RealDisk(), log_dirs)))

    async def collect(self) -> None:
        """Copy ZooKeeper's transaction logs to ``raw/zookeeper/``; traces and logs are in place already."""
        for node in self.zookeepers:
            await asyncio.to_thread(
                _copy_transaction_logs,
                data_directory(self._run_directory, node),
                self._run_directory,
                node,
            )

    def _log_dirs(self, node: str) -> tuple[Path, ...]:
        return self._place(node, self._names).log_dirs

    def _broker(self, node: str, plan: AddressPlan, journal: Journal) -> NodeProcess:
        self._disks.create(node)
        return broker_process(
            node,
            self._place(node, plan),
            target=self._target,
            properties=self._config.broker_properties,
            mutant=self._config.mutant,
            run_directory=self._run_directory,
            journal=journal,
            environment=self._clocks.environment(node),
            disk_commands=self._disks.directory(node),
        )

    def _place(self, broker: str, plan: AddressPlan) -> BrokerPlace:
        return broker_place(
            broker,
            bind=plan.direct(broker),
            advertised=plan.advertised(broker),
            zookeeper_connect=",".join(str(plan.advertised(node)) for node in plan.zookeepers),
            run_directory=self._run_directory,
            seed=self._config.seed,
            tracing=self._config.tracing,
            log_dirs=self._config.log_dirs,
        )

    @property
    def _leased(self) -> AddressPlan:
        if self._lease is None:
            raise RuntimeFailure("the cluster has no addresses before its start")
        return self._lease.plan

    @property
    def _running_links(self) -> Links:
        if self._links is None:
            raise RuntimeFailure("the cluster has no links before its start")
        return self._links

    def _known(self, node: str) -> str:
        if node not in self._names.brokers and node not in self._names.zookeepers:
            raise RuntimeFailure(f"there is no node {node!r}")
        return node

    def _process(self, node: str) -> NodeProcess:
        process = self._nodes.get(self._known(node))
        if process is None:
            raise RuntimeFailure(f"{node} was never started")
        return process

    async def _until_it_answers(self, node: str) -> bool:
        """Ask past the links; False at the deadline, ``NodeExited`` when the process exits."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._config.start_timeout_s
        address = self.direct_address(node)
        while not await self._ask(node, address, source_host=None, timeout_s=PROBE_TIMEOUT_S):
            self._nodes[node].raise_if_dead()
            if loop.time() > deadline:
                return False
            await asyncio.sleep(POLL_INTERVAL_S)
        return True

    async def _ask(
        self, node: str, address: Address, *, source_host: str | None, timeout_s: float
    ) -> bool:
        probe = probe_broker if node in self._names.brokers else probe_zookeeper
        return await probe(address, source_host=source_host, timeout_s=timeout_s)


def _copy_transaction_logs(data: Path, run_directory: Path, node: str) -> None:
    target = run_directory / "raw" / "zookeeper" / node / "version-2"
    target.mkdir(parents=True, exist_ok=True)
    for log in sorted((data / "version-2").glob("log.*")):
        shutil.copy2(log, target / log.name)
