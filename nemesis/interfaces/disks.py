"""The part ``disks``: the disks of brokers fill up and fail.

What not every disk can do is a smaller part: fail in one log directory, lose power, damage unsynced ends of logs. All
coroutines raise ``RuntimeFailure``; what they return is what was measured, for the history.
"""

from __future__ import annotations

from typing import Any, Protocol

from nemesis.interfaces.unsupported import Unsupported


class Disks(Protocol):
    """The disks of the brokers, by the names of their nodes."""

    @property
    def log_dirs(self) -> LogDirs | Unsupported:
        """Lets one of several log directories fail."""

    @property
    def power(self) -> PowerSupply | Unsupported:
        """Lets a disk lose what was not synced."""

    @property
    def log_tails(self) -> LogTails | Unsupported:
        """Damages what was written and not synced."""

    async def fill(self, node: str) -> dict[str, Any]:
        """Let the node's disk accept no more data until ``heal``.

        Returns the error that a probe of the disk meets, by operation:
        ``{"read": None, "write": "ENOSPC", "fsync": None}``.
        """

    async def fail(self, node: str) -> dict[str, Any]:
        """Let every operation on the node's disk fail with EIO until ``heal``; returns what ``fill`` returns."""

    async def heal(self, node: str) -> dict[str, Any]:
        """End all disk faults of the node; returns what ``fill`` returns.

        Where failed calls are counted, ``refused`` has their number by error. A broker that has survived a failed disk
        may be killed: files that it has open stay broken.
        """


class LogDirs(Protocol):
    """Log directories that fail one by one."""

    async def fail(self, node: str, number: int) -> dict[str, Any]:
        """Let the log directory ``number`` (modulo their count) fail with EIO until ``Disks.heal``.

        Returns what ``Disks.fill`` returns, the directory's path as ``log_dir``, and under ``others`` the errors that
        probes of the other directories meet.
        """


class PowerSupply(Protocol):
    """The power of a broker's machine."""

    async def cut(self, node: str) -> dict[str, Any]:
        """Kill the node, and let its disk lose what was not synced.

        Returns what ``Processes.kill`` returns, and what was lost: ``lost_bytes``, ``lost_names`` and so on.
        """

    async def cut_stopped(self, node: str) -> dict[str, Any]:
        """Let the disk of a node whose process has ended lose what was not synced; returns what was lost."""


class LogTails(Protocol):
    """The ends of a broker's logs, behind the last sync."""

    async def unsynced_bytes(self, node: str) -> int:
        """Return how many bytes at the ends of a broker's logs are not synced."""

    async def corrupt(self, node: str) -> dict[str, Any]:
        """Damage the ends of a dead broker's logs behind the last sync (``nemesis.support.log_damage``).

        Returns what was done, under ``damaged``, and the ``lost_bytes``.
        """
