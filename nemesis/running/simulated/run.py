"""The execution of one simulated run: the same ``Run``, workload and faults as everywhere, on virtual time.

``Simulation`` keeps what happened in memory (``nemesis.searching.simulate`` judges it there). ``simulate_into`` writes
the events into a run directory as a real run leaves them, so that ``nemesis check`` and ``report`` need not know.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Final

import msgspec

from nemesis.history.events import Kind
from nemesis.history.run_directory import RunDirectory
from nemesis.mutants.reach import Reach
from nemesis.running.lateness import no_load
from nemesis.running.progress import Status
from nemesis.running.run import Run
from nemesis.running.simulated.specification import SimulationSpec
from nemesis.running.simulated.status_display import StatusObserver
from nemesis.running.simulated.stored import note_end, write_events, write_logs
from nemesis.running.simulated.wall_clock_limit import limit_s, limited
from nemesis.runtimes.simulation import SimulationRuntime, SimulationRuntimeConfig
from nemesis.simulation.clock import EPOCH_MS
from nemesis.simulation.guard import real_world_forbidden
from nemesis.simulation.links import LATENCIES
from nemesis.simulation.loop import Schedule, SimulationLoop
from nemesis.simulation.memory_record import Entry, MemoryRecord
from nemesis.simulation.node_logs import NodeLogs, node_logs
from nemesis.simulation.trace_hash import TraceHash
from nemesis.support.errors import HarnessError

LAG_PROBE_INTERVAL_S: Final = 0.25
STRIKE_WITHIN_ACTIONS: Final = 20
"""A produce of one record makes about five; a turn of a busy broker serves several."""
MEASURED: Final = frozenset({Kind.FAULT_APPLIED.value, Kind.FAULT_HEALED.value})


class Simulation:
    """A run that has not happened yet. ``execute`` once; ``record`` then holds what happened, also after a failure."""

    def __init__(self, spec: SimulationSpec, show: Callable[[Status], None] | None = None) -> None:
        """``show`` is called a few times per real second, if anybody looks."""
        self._spec = spec
        self.loop = SimulationLoop(
            Schedule(spec.seed, spec.deviation_rate, deviate_until_s=spec.deviate_until_s)
        )
        observer = None if show is None else StatusObserver(show)
        self.record = MemoryRecord(self.loop.clock_ns, observer)
        self.permits = Permits(spec)
        self.logs = NodeLogs(logging.ERROR)
        self.reach: Reach | None = None

    def execute(self, log_level: int = logging.ERROR) -> None:
        """Run it on virtual time; blocks. Raises ``HarnessError`` or ``RuntimeFailure`` when the harness fails.

        What nodes print from ``log_level`` on is in ``logs`` afterwards.
        """
        spec = self._spec
        planted = nullcontext(None) if spec.mutant is None else spec.mutant.load().planted()
        try:
            with planted as self.reach, node_logs(log_level) as self.logs, real_world_forbidden():
                runtime = SimulationRuntime(runtime_config(spec), self.loop, self.record)
                run = Run(
                    self.record,
                    spec.scenario,
                    seed=spec.seed,
                    plan=spec.plan,
                    runtime=runtime,
                    epoch_ms=EPOCH_MS,
                    show=None,
                    permits=self.permits,
                    redraws=spec.redraws,
                    lag_probe_s=LAG_PROBE_INTERVAL_S,
                    load=no_load,
                )
                try:
                    self.loop.run_until_complete(run.execute())
                except BaseException:
                    runtime.lifecycle.collect_now()  # of a run that is broken off, too, ZooKeeper's log is the backbone
                    raise
        finally:
            self.record.seal()
            self.loop.close()
        if self.record.wrong_event is not None:
            raise HarnessError(f"an event was recorded wrongly: {self.record.wrong_event}")


def simulate_into(
    directory: RunDirectory, spec: SimulationSpec, show: Callable[[Status], None]
) -> None:
    """Run a specification and leave its events in the directory, whatever happens; blocks.

    Raises as ``simulate`` does, and ``StillAtWork`` when it takes too much real time."""
    simulation = Simulation(spec, show)
    hash_of_trace: str | None = None
    try:
        with limited(limit_s(spec.scenario)):
            simulation.execute(logging.INFO)
        hash_of_trace = trace_hash(simulation.record.entries)
    finally:
        write_events(directory, simulation.record.entries)
        write_logs(directory, simulation.logs.lines)
        note_end(directory, hash_of_trace, simulation.record.phases)


def runtime_config(spec: SimulationSpec) -> SimulationRuntimeConfig:
    """Return the cluster of a specification; raises ``UsageError`` when it is not possible."""
    scenario = spec.scenario
    return SimulationRuntimeConfig(
        broker_count=scenario.brokers,
        client_count=scenario.clients,
        zookeeper_count=scenario.zookeepers,
        broker_properties=scenario.broker_properties,
        zookeeper_tick_time_ms=scenario.zookeeper.tick_time_ms,
        log_dirs=scenario.log_dirs,
        seed=spec.seed,
        target=scenario.target,
        latency=LATENCIES[scenario.simulation.latency],
        real_codec=spec.real_codec,
        strike_within_actions=STRIKE_WITHIN_ACTIONS if spec.deviation_rate else 0,
    )


def trace_hash(entries: Sequence[Entry], *, with_sizes: bool = True) -> str:
    """Return the hash over all events in their order, ZooKeeper's included.

    Without sizes it is the same for either codec: what faults measured (bytes held, for instance) is left out.
    """
    events = [entry.event for entry in entries]
    if not with_sizes:
        events = [
            msgspec.structs.replace(event, detail=None) if event.kind in MEASURED else event
            for event in events
        ]
    hashed = TraceHash()
    hashed.add_events(events)
    return hashed.hexdigest()


class Permits:
    """Which steps of client processes issue an operation."""

    def __init__(self, spec: SimulationSpec) -> None:
        self._wanted = spec.operations
        self._limit = math.inf if spec.max_operations is None else spec.max_operations
        self.issued: list[str] = []

    def __call__(self, process: str, step: int) -> bool:
        name = f"{process}/{step}"
        if len(self.issued) >= self._limit:
            return False
        if self._wanted is not None and name not in self._wanted:
            return False
        self.issued.append(name)
        return True
