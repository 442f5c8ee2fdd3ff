"""One simulated run, from an order to an outcome: the same ``Run``, workload, faults and checkers as everywhere.

``simulate`` depends on its order alone: the same order gives the same events in the same order, in any process.
``store`` makes of it a run directory as a real run leaves it, which ``nemesis check`` and ``report`` understand.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec

from checkers import select
from checkers.engine import check
from checkers.model import Outcome
from history.events import Event
from history.memory import history_of
from history.run_directory import RunDirectory, RunInfo
from history.znodes import PROCESS as ZOOKEEPER
from nemesis.faults import plan as plans
from nemesis.faults.plan import Plan
from nemesis.judge import only
from nemesis.mutants import MUTANTS
from nemesis.progress import Status
from nemesis.run import Run
from nemesis.runtimes.simulation.runtime import SimulationRuntime, SimulationRuntimeConfig
from nemesis.scenario import Scenario
from nemesis.simulation.guard import real_world_forbidden
from nemesis.simulation.loop import Schedule, SimulationLoop
from nemesis.simulation.memory_record import Entry, MemoryRecord
from nemesis.simulation.trace_hash import TraceHash

DEVIATION_RATE: Final = 0.02
"""Of a process's turns, how many are late; see ``nemesis.simulation.loop``."""


@dataclass(frozen=True, kw_only=True)
class SimulationOrder:
    """Everything that decides a simulated run."""

    scenario: Scenario
    seed: int
    plan: Plan
    mutant: str | None = None
    checkers: tuple[str, ...] | None = None
    deviation_rate: float = DEVIATION_RATE
    deviate_until_s: float = math.inf
    """Virtual seconds from the start of the run; later turns are first in, first out."""
    max_operations: int | None = None
    """Of the workload's client processes, in the order in which they are due."""
    operations: frozenset[str] | None = None
    """Those steps of client processes that issue an operation, as ``producer-1/17``; all when None."""
    real_codec: bool = False


@dataclass(frozen=True, kw_only=True)
class Simulated:
    """What came of an order."""

    outcome: Outcome
    trace_hash: str
    entries: tuple[Entry, ...]
    """Every event with its file, in the order of time; ZooKeeper's come last."""
    phases: tuple[str, ...]
    issued: tuple[str, ...]
    """The steps of client processes that issued an operation, in order: what ``SimulationOrder.operations`` selects from."""
    deviations: int
    """Turns that were late."""
    virtual_s: float
    real_s: float
    """Of which the check took ``outcome.seconds``."""

    @property
    def events(self) -> list[Event]:
        return [entry.event for entry in self.entries]


def simulate(
    order: SimulationOrder, *, show: Callable[[Status], None] | None = None
) -> Simulated:
    """Run it on virtual time, and check it; blocks.

    Raises ``HarnessError`` or ``RuntimeFailure`` when the harness fails, ``UsageError`` for a configuration that
    cannot be.
    """
    started = time.perf_counter()
    loop = SimulationLoop(
        Schedule(order.seed, order.deviation_rate, deviate_until_s=order.deviate_until_s)
    )
    record = MemoryRecord(loop.clock_ns)
    permits = _Permits(order)
    planted = nullcontext() if order.mutant is None else MUTANTS[order.mutant].planted()
    try:
        with planted, real_world_forbidden():
            runtime = SimulationRuntime(runtime_config(order), loop, record)
            run = Run(
                record,
                order.scenario,
                seed=order.seed,
                plan=order.plan,
                runtime=runtime,
                show=show,
                permits=permits,
            )
            loop.run_until_complete(run.execute())
        virtual_s, deviations = loop.time(), loop.deviations
    finally:
        loop.close()
    outcome = check(history_of(entry.event for entry in record.entries), select(order.checkers))
    if order.checkers is not None:
        outcome = only(outcome, order.checkers)
    return Simulated(
        outcome=outcome,
        trace_hash=trace_hash(record.entries),
        entries=tuple(record.entries),
        phases=tuple(record.phases),
        issued=tuple(permits.issued),
        deviations=deviations,
        virtual_s=virtual_s,
        real_s=time.perf_counter() - started,
    )


def runtime_config(order: SimulationOrder) -> SimulationRuntimeConfig:
    """Return the cluster of an order; raises ``UsageError`` when it cannot be."""
    scenario = order.scenario
    return SimulationRuntimeConfig(
        broker_count=scenario.brokers,
        client_count=scenario.clients,
        zookeeper_count=scenario.zookeepers,
        broker_properties=scenario.broker,
        zookeeper_tick_time_ms=scenario.zookeeper.tick_time_ms,
        seed=order.seed,
        target=scenario.target,
        real_codec=order.real_codec,
    )


def trace_hash(entries: Sequence[Entry]) -> str:
    """Return the hash over all events in their order, ZooKeeper's included."""
    encode = msgspec.json.Encoder().encode
    hashed = TraceHash()
    for entry in entries:
        hashed.add(encode(entry.event))
    return hashed.hexdigest()


class _Permits:
    """Which steps of client processes issue an operation."""

    def __init__(self, order: SimulationOrder) -> None:
        self._wanted = order.operations
        self._limit = math.inf if order.max_operations is None else order.max_operations
        self.issued: list[str] = []

    def __call__(self, process: str, step: int) -> bool:
        name = f"{process}/{step}"
        if len(self.issued) >= self._limit:
            return False
        if self._wanted is not None and name not in self._wanted:
            return False
        self.issued.append(name)
        return True
