"""The part ``processes``: the nodes of a cluster that the harness started end, stop and start again.

A cluster that the harness did not start has none. All coroutines raise ``RuntimeFailure``; what they return is what
was measured, for the history.
"""

from __future__ import annotations

from typing import Any, Protocol

from nemesis.interfaces.traces import Traces
from nemesis.interfaces.unsupported import Unsupported


class Processes(Protocol):
    """The processes of brokers and ZooKeeper servers, by the names of their nodes."""

    @property
    def membership(self) -> BrokerMembership | Unsupported:
        """Lets brokers join and leave."""

    @property
    def traces(self) -> Traces | Unsupported:
        """Reports what brokers trace while they run."""

    async def kill(self, node: str) -> dict[str, Any]:
        """Send SIGKILL; returns ``{"pid": ..., "dead": True}`` once the process is gone."""

    async def terminate(self, node: str, *, grace_s: float) -> dict[str, Any]:
        """Send SIGTERM, and SIGKILL when the process has not ended after ``grace_s`` seconds.

        Returns what ``kill`` returns, and under ``ended_by`` the name of the signal.
        """

    async def restart(self, node: str) -> dict[str, Any]:
        """Start a dead node again on the same data; returns ``{"pid": ..., "answered": bool}``.

        ``answered`` is False when the node lives but did not answer in time: a broker that is cut from ZooKeeper waits
        for it before it listens. Raises ``NodeExited`` when the node exits.
        """

    async def pause(self, node: str) -> dict[str, Any]:
        """Send SIGSTOP or freeze; returns ``{"paused": True}`` once the kernel reports that it is stopped."""

    async def resume(self, node: str) -> dict[str, Any]:
        """Undo ``pause``; returns ``{"paused": False}`` once the kernel reports that it runs."""

    def is_alive(self, node: str) -> bool:
        """Return whether the node's process exists (a paused one does)."""


class BrokerMembership(Protocol):
    """Brokers that join the cluster and leave it."""

    @property
    def next_broker(self) -> str | None:
        """The name of the next broker that may join; None when no address is left for it."""

    async def add_broker(self, node: str) -> dict[str, Any]:
        """Let ``next_broker`` belong to the cluster from now on, and start it on an empty disk.

        It has the next id, and an address, links, a wall clock, a trace and a log as any other broker. Returns what
        ``Processes.restart`` returns.
        """

    def retire(self, node: str) -> None:
        """Remove a dead broker from the cluster. Its name is not given again; what it recorded stays."""
