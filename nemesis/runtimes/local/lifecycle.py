"""The lifecycle of a local cluster.

Order of the start: journal, lease, proxy, ZooKeeper, brokers. Whatever fails on the way is undone before the error
leaves ``start``. The end is the reverse; the journal goes last, and stays when anything could not be ended.
"""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

from nemesis.history.stored_logs import StoredLog, read_logs
from nemesis.interfaces.errors import NodeExited, RuntimeFailure
from nemesis.reference.adapters.disk import RealDisk
from nemesis.runtimes.last_words import raise_if_refused
from nemesis.runtimes.local.addresses import Lease, take_lease
from nemesis.runtimes.local.links import Links
from nemesis.runtimes.local.node_process import TERM_GRACE_S
from nemesis.runtimes.local.nodes import LocalNodes
from nemesis.runtimes.local.zookeeper_server import data_directory
from nemesis.runtimes.metadata_logs import copy_metadata_log
from nemesis.support.journal import Journal


class LocalLifecycle:
    """Implements ``nemesis.interfaces.lifecycle.Lifecycle``."""

    def __init__(self, nodes: LocalNodes) -> None:
        self._nodes = nodes
        self._lease: Lease | None = None

    async def start(self) -> None:
        if self._nodes.journal is not None:
            raise RuntimeFailure("this cluster was started already")
        self._nodes.journal = Journal.create(self._nodes.run_directory)
        try:
            await self._start(self._nodes.journal)
        except NodeExited as exited:
            await self.stop()
            raise_if_refused(exited)
            raise
        except BaseException:
            await self.stop()
            raise

    async def _start(self, journal: Journal) -> None:
        nodes = self._nodes
        self._lease = take_lease(
            journal,
            brokers=len(nodes.brokers),
            zookeepers=len(nodes.zookeepers),
            clients=len(nodes.clients),
            controllers=len(nodes.controllers),
        )
        plan = nodes.addresses = self._lease.plan
        kafkas = [*nodes.controllers, *nodes.brokers]
        nodes.clocks.create([*nodes.zookeepers, *kafkas])
        for node in nodes.zookeepers:
            nodes.make_zookeeper(node, journal)
        for node in kafkas:
            nodes.make_broker(node, journal)
        nodes.links = Links(log=nodes.run_directory / "logs" / "proxy.log", journal=journal)
        await nodes.links.start(plan)
        for role in (nodes.zookeepers, kafkas):
            for node in role:
                nodes.processes[node].start()
            for node in role:
                if not await nodes.until_it_answers(node):
                    raise RuntimeFailure(
                        f"{node} did not answer in {nodes.config.start_timeout_s:.0f} s: "
                        f"{nodes.processes[node].last_words()}"
                    )

    async def stop(self) -> None:
        """Raises ``RuntimeFailure`` when something could not be ended; the journal stays for ``nemesis clean``."""
        nodes = self._nodes
        if nodes.journal is None:
            return
        failures: list[BaseException] = []
        # A broker that is asked looks for others to lead its partitions; here all of them go.
        killed = [*nodes.membership.ever, *nodes.controllers]
        for role, grace_s in ((killed, 0.0), (nodes.zookeepers, TERM_GRACE_S)):
            ends = (
                nodes.processes[node].stop(grace_s=grace_s)
                for node in role
                if node in nodes.processes
            )
            results = await asyncio.gather(*ends, return_exceptions=True)
            failures += [result for result in results if isinstance(result, BaseException)]
        await nodes.stop_links()
        if failures:
            raise RuntimeFailure(f"the cluster could not be ended: {failures[0]}")
        if self._lease is not None:
            self._lease.release()
        nodes.journal.close()
        nodes.journal = None

    async def stored_logs(self, node: str) -> list[StoredLog]:
        log_dirs = [str(log_dir) for log_dir in self._nodes.log_dirs(node)]
        return await asyncio.to_thread(lambda: list(read_logs(RealDisk(), log_dirs)))

    async def collect(self) -> None:
        """Copy ZooKeeper's transaction logs to ``raw/zookeeper/``, those of a KRaft quorum to ``raw/quorum/``.

        Traces and logs are in place already.
        """
        if not self._nodes.zookeepers:
            for node in self._nodes.controllers or self._nodes.membership.ever:
                log_dir = self._nodes.log_dirs(node)[0]
                await asyncio.to_thread(copy_metadata_log, log_dir, self._nodes.run_directory, node)
        for node in self._nodes.zookeepers:
            await asyncio.to_thread(
                _copy_transaction_logs,
                data_directory(self._nodes.run_directory, node),
                self._nodes.run_directory,
                node,
            )


def _copy_transaction_logs(data: Path, run_directory: Path, node: str) -> None:
    target = run_directory / "raw" / "zookeeper" / node / "version-2"
    target.mkdir(parents=True, exist_ok=True)
    for log in sorted((data / "version-2").glob("log.*")):
        shutil.copy2(log, target / log.name)
