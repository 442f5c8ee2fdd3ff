"""The client processes of a run: faults kill and pause them as they do brokers.

Clients live in the harness on every runtime, so the workload offers them and not the runtime. A workload that offers
none lacks this part (``Unsupported``), and preflight refuses the faults that need it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class ClientState(Protocol):
    """What can be seen of a process. The counts include what former processes of the name have done."""

    @property
    def is_alive(self) -> bool:
        """Whether the process has not ended; a paused process is alive."""

    @property
    def is_paused(self) -> bool:
        """Whether a step of the process is held, or would be."""

    @property
    def steps(self) -> int:
        """How many steps its code has taken, each from one ``await`` to the next."""

    @property
    def frames(self) -> int:
        """How many requests it has sent."""

    @property
    def connections(self) -> int:
        """How many connections it has open."""


class ClientProcesses(Protocol):
    """The client processes of a workload, by their names. All of them end with the workload."""

    @property
    def names(self) -> Sequence[str]:
        """The names of all processes, also before they are started."""

    @property
    def groups(self) -> Sequence[str]:
        """The names of the groups of consumers to which processes belong."""

    async def kill(self, name: str) -> None:
        """End a process as SIGKILL does: its connections are closed, its operations in flight are ``info``.

        Returns when the process has ended, or after a few seconds.
        """

    def start(self, name: str) -> None:
        """Start a killed process again, under its name and with a new client."""

    def pause(self, name: str) -> None:
        """Hold a process as SIGSTOP does: it sends nothing, and what arrives for it waits."""

    def resume(self, name: str) -> None:
        """Let a paused process go on where it was."""

    def state(self, name: str) -> ClientState:
        """Return what can be seen of a process; one that was never started is not alive."""

    def group_leader(self, group: str) -> str | None:
        """Return the living process whose member leads the newest generation of a group; None if it is not known."""
