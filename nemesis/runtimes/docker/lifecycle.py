"""The lifecycle of a cluster of containers.

Order of the start: journal, network, containers (``cluster`` has the details), packet rules, ZooKeeper, brokers.
Whatever fails on the way is undone before the error leaves ``start``. The end stops the nodes, copies what they
recorded, and removes everything that carries the run's label; the journal goes last, and stays when anything could not
be removed.
"""

from __future__ import annotations

import asyncio

from nemesis.history.stored_logs import StoredLog, read_logs
from nemesis.interfaces.cluster import voters_of
from nemesis.interfaces.errors import NodeExited, RuntimeFailure
from nemesis.reference.adapters.disk import RealDisk
from nemesis.runtimes.docker.collect import Uncollected, logs_at_home
from nemesis.runtimes.docker.engine_calls import EngineRefused, together
from nemesis.runtimes.docker.nodes import DockerNodes
from nemesis.runtimes.docker.packets.kernel import Feature
from nemesis.runtimes.docker.packets.packet_rules import PacketRules
from nemesis.runtimes.last_words import raise_if_refused
from nemesis.runtimes.metadata_logs import copy_metadata_log
from nemesis.support.errors import MissingRequirement
from nemesis.support.journal import Journal


class DockerLifecycle:
    """Implements ``nemesis.interfaces.lifecycle.Lifecycle``."""

    def __init__(self, nodes: DockerNodes, features: frozenset[Feature]) -> None:
        """``features`` are what this machine's kernel can do to packets."""
        self._nodes = nodes
        self._features = features
        self._journal: Journal | None = None
        self._not_copied = Uncollected()

    async def start(self) -> None:
        """Raises ``MissingRequirement`` (no engine, no image, no subnet, no space), ``UsageError`` when a broker does
        not accept its configuration, or ``RuntimeFailure``.
        """
        if self._journal is not None:
            raise RuntimeFailure("this cluster was started already")
        self._journal = Journal.create(self._nodes.run_directory)
        self._journal.add_engine_run(self._nodes.run_id)
        try:
            await self._start(self._journal)
        except EngineRefused as error:
            await self._give_up()
            raise MissingRequirement(str(error)) from error
        except NodeExited as exited:
            await self._give_up()
            raise_if_refused(exited)
            raise
        except BaseException:
            await self._give_up()
            raise

    async def _give_up(self) -> None:
        await self.stop()
        self._not_copied = Uncollected()  # nothing was recorded that could be missed

    async def _start(self, journal: Journal) -> None:
        nodes = self._nodes
        kafkas = [*nodes.controllers, *nodes.brokers]
        nodes.clocks.create([*nodes.zookeepers, *kafkas])
        nodes.addresses = await nodes.containers.create(nodes.names, nodes.describe)
        nodes.rules = PacketRules(
            nodes.packet_nodes(nodes.addresses),
            pid_of=nodes.pid,
            harness_host=nodes.addresses.gateway,
            features=self._features,
            journal=journal,
            log=nodes.run_directory / "logs" / "packets.log",
            seed=nodes.config.seed,
        )
        for role in (nodes.zookeepers, kafkas):
            await together(nodes.begin(node) for node in role)
            for node in role:
                if not await nodes.until_it_answers(node):
                    raise RuntimeFailure(
                        f"{node} did not answer in {nodes.config.start_timeout_s:.0f} s: "
                        f"{await nodes.node(node).last_words()}"
                    )

    async def stop(self) -> None:
        """End everything, and copy what the nodes recorded. Idempotent.

        Raises ``RuntimeFailure`` when something could not be removed; the journal then stays for ``nemesis clean``.
        """
        if self._journal is None:
            return
        await self._nodes.containers.stop()
        failures: list[RuntimeFailure] = []
        for end in (self._clear_rules, self._copy_records, self._nodes.containers.remove):
            try:
                await end()
            except RuntimeFailure as error:  # the rest is to be ended all the same
                failures.append(error)
        if failures:
            raise failures[0]
        self._journal.close()
        self._journal = None

    async def stored_logs(self, node: str) -> list[StoredLog]:
        """Return the content of the copied log files."""
        if (why_not := self._not_copied.data.get(node)) is not None:
            raise OSError(why_not)
        log_dir = str(logs_at_home(self._nodes.run_directory, node))
        return await asyncio.to_thread(lambda: list(read_logs(RealDisk(), [log_dir])))

    async def collect(self) -> None:
        """All records were copied before the containers went; raises ``RuntimeFailure`` when one was not.

        The metadata logs of a KRaft quorum came with the logs of the brokers; they are copied to ``raw/quorum/``.
        """
        nodes = self._nodes
        for node in () if nodes.zookeepers else voters_of(nodes):
            if node not in self._not_copied.data:
                log_dir = logs_at_home(nodes.run_directory, node)
                await asyncio.to_thread(copy_metadata_log, log_dir, nodes.run_directory, node)
        if self._not_copied.records:
            raise RuntimeFailure("; ".join(self._not_copied.records))

    async def _clear_rules(self) -> None:
        rules, self._nodes.rules = self._nodes.rules, None
        if rules is not None:
            await rules.clear()

    async def _copy_records(self) -> None:
        self._not_copied = await self._nodes.containers.bring_home()
