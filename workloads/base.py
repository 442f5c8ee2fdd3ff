"""The interface between a run and its workload."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random  # noqa: TID251 - the type only; the instance comes from the seed
from typing import Any, Protocol

from nemesis.history.recorder import Recorder
from nemesis.workloads.kafka import codec as wire_format
from nemesis.workloads.kafka.codec import Codec


class WorkloadError(Exception):
    """The workload could not do what it must (its topics could not be created, an option is wrong).

    Raised to the run, which reports a failure of the harness; never a verdict about the cluster.
    """


class NotReadyError(WorkloadError):
    """The cluster did not become ready for the workload in time, though it answered and no fault was applied.

    That is a finding about the cluster: the run records it as a failed convergence check.
    """


@dataclass(frozen=True, slots=True)
class WorkloadContext:
    """What a workload is given."""

    bootstrap: list[tuple[str, int]]
    """Advertised (host, port) of the brokers."""
    client_hosts: list[str]
    """Source addresses that clients may bind, one per client node of the runtime."""
    recorder: Callable[[str], Recorder]
    """Process name → the recorder that writes its operations."""
    rng: Random
    codec: Codec = wire_format
    """How the clients turn requests into frames and frames into responses."""
    epoch_ms: int = 0
    """Milliseconds since 1970 at which the loop's time was zero: records are stamped with the time of day."""
    permits: Callable[[str, int], bool] = lambda _process, _step: True
    """Whether a client process (its name) may issue the operation of its n-th step; otherwise it lets the step pass.
    A counterexample is made smaller by asking for fewer."""


class Workload(Protocol):
    """A set of client processes. One object serves one run."""

    async def setup(self, timeout_s: float) -> None:
        """Create the initial topics and wait until every partition has a leader; raises ``NotReadyError``."""

    def start(self) -> None:
        """Start the client processes as tasks."""

    async def stop(self) -> None:
        """End them; operations in flight are recorded as ``info``."""

    async def final_reads(self, timeout_s: float) -> None:
        """Read every partition from its start to the leader's high watermark, recording ``final-read`` each."""

    @property
    def replication_factor(self) -> int:
        """Of the topics it creates: that many brokers it needs."""

    @property
    def operations(self) -> int:
        """Operations completed so far, whatever their outcome."""

    def topic_partitions(self) -> list[tuple[str, int]]:
        """Every partition that the workload knows of."""


WorkloadFactory = Callable[[WorkloadContext, Mapping[str, Any]], Workload]
"""Makes a workload from its context and the scenario's options; raises ``WorkloadError`` on a bad option."""
