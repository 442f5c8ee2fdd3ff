"""The lifecycle of a simulated cluster."""

from __future__ import annotations

from nemesis.history.stored_logs import StoredLog, read_logs
from nemesis.interfaces.errors import RuntimeFailure
from nemesis.runtimes.simulation.machines import Machines


class SimulationLifecycle:
    """Implements ``nemesis.interfaces.lifecycle.Lifecycle``."""

    def __init__(self, machines: Machines) -> None:
        self._machines = machines

    async def start(self) -> None:
        machines = self._machines
        for node in machines.zookeepers:
            machines.start(node)
        for node in machines.zookeepers:
            await machines.until_it_answers(node)
        for node in machines.brokers:
            machines.start(node)
        for node in machines.brokers:
            if not await machines.until_it_answers(node):
                raise RuntimeFailure(
                    f"{node} did not answer in {machines.config.start_timeout_s:.0f} s"
                )

    async def stop(self) -> None:
        for node in self._machines.nodes.values():
            node.kill()

    async def stored_logs(self, node: str) -> list[StoredLog]:
        log_dirs = self._machines.config.log_dirs_of(node)
        return list(read_logs(self._machines.disks[node], log_dirs))

    async def collect(self) -> None:
        self.collect_now()

    def collect_now(self) -> None:
        """Add ZooKeeper's committed transactions to the record, without waiting. A second call adds nothing."""
        self._machines.record.set_transactions(self._machines.ensemble.transactions())
