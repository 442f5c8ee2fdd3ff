"""From the start of a cluster to its record."""

from __future__ import annotations

from typing import Protocol

from nemesis.history.stored_logs import StoredLog


class Lifecycle(Protocol):
    """Starts and stops a cluster. All coroutines raise ``RuntimeFailure`` when the harness breaks."""

    async def start(self) -> None:
        """Bring ZooKeeper and every broker up; returns once each broker's port answers.

        Raises ``MissingRequirement`` when the machine lacks something; nothing is left behind then.
        """

    async def stop(self) -> None:
        """End everything that ``start`` began, in any state. Idempotent."""

    async def stored_logs(self, node: str) -> list[StoredLog]:
        """Return the content of a broker's log files, once the cluster is stopped; raises OSError or ValueError."""

    async def collect(self) -> None:
        """Add traces, logs and ZooKeeper's transaction log to the run's record, once the cluster is stopped."""
