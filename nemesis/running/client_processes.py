"""The client processes that a workload offers to faults, if it does."""

from __future__ import annotations

from nemesis.interfaces.clients import ClientProcesses
from nemesis.interfaces.unsupported import Unsupported
from nemesis.workloads import Workload


def processes_of(workload: Workload, name: str) -> ClientProcesses | Unsupported:
    """Return the processes of the workload of this name."""
    offered: ClientProcesses | None = getattr(workload, "processes", None)
    if offered is None:
        return Unsupported(f"the workload {name} offers no client processes")
    return offered
