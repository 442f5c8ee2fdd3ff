"""One simulated run and its verdict, in memory: what exploring, shrinking, replaying and property tests are made of.

``simulate`` depends on its specification alone: the same one gives the same events and the same verdict in any process.
``store_result`` makes a whole run directory of a finished run.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from nemesis import reports
from nemesis.checkers import judged_by_default, select
from nemesis.checkers.checking import check
from nemesis.checkers.framework.model import Outcome
from nemesis.history.events import Event
from nemesis.history.ingest import ingest
from nemesis.history.memory import history_of
from nemesis.history.run_directory import RunDirectory
from nemesis.history.sources import ALL_SOURCES
from nemesis.judging.judge import only
from nemesis.judging.planted import planted_story
from nemesis.mutants.reach import ReachCounts
from nemesis.running.run_directories import create_run_directory
from nemesis.running.simulated.run import Simulation, trace_hash
from nemesis.running.simulated.specification import SimulationSpec
from nemesis.running.simulated.stored import encode_spec, note_end, write_events
from nemesis.simulation.disposal import collected_afterwards
from nemesis.simulation.memory_record import Entry
from nemesis.support.interrupts import unbroken


@dataclass(frozen=True, kw_only=True)
class SimulationResult:
    """A finished run and its verdict."""

    outcome: Outcome
    trace_hash: str
    entries: tuple[Entry, ...]
    """Every event with its file, in the order of time; ZooKeeper's come last."""
    phases: tuple[str, ...]
    issued: tuple[str, ...]
    """The steps of client processes that issued an operation, in order; ``SimulationSpec.operations`` selects some."""
    node_errors: tuple[str, ...]
    """Unexpected exceptions inside of nodes, which they survived: bugs, though no property speaks of them."""
    deviations: int
    """Turns that were late."""
    virtual_s: float
    reach: ReachCounts | None
    """Of the planted bug; None: the run had none."""
    real_s: float
    """Of which the check took ``outcome.seconds``."""

    @property
    def events(self) -> list[Event]:
        return [entry.event for entry in self.entries]


@collected_afterwards()
def simulate(spec: SimulationSpec, *, keeps_unlisted: bool = False) -> SimulationResult:
    """Run a specification on virtual time, and check it (``keeps_unlisted``: see ``check``); blocks.

    Raises ``HarnessError`` or ``RuntimeFailure`` when the harness fails, ``UsageError`` for a configuration that
    cannot be.
    """
    started = time.perf_counter()
    simulation = Simulation(spec)
    simulation.execute()
    entries = tuple(simulation.record.entries)
    by_default = judged_by_default(ALL_SOURCES, spec.scenario.workload.name)
    checkers = by_default if spec.checkers is None else spec.checkers
    history = history_of(entry.event for entry in entries)
    outcome = check(history, select(checkers), keeps_unlisted=keeps_unlisted)
    if spec.checkers is not None:
        outcome = only(outcome, spec.checkers)
    return SimulationResult(
        outcome=outcome,
        trace_hash=trace_hash(entries),
        entries=entries,
        phases=tuple(simulation.record.phases),
        issued=tuple(simulation.permits.issued),
        node_errors=tuple(simulation.logs.errors),
        deviations=simulation.loop.deviations,
        virtual_s=simulation.loop.time(),
        reach=None if simulation.reach is None else simulation.reach.counts(),
        real_s=time.perf_counter() - started,
    )


def store_result(
    simulated: SimulationResult, spec: SimulationSpec, store: Path, command_line: Sequence[str]
) -> RunDirectory:
    """Make a run directory of a finished run, its report included, and return it; raises OSError.

    Ctrl-C and SIGTERM wait for it.
    """
    with unbroken():  # a run that is half there could neither be judged nor replayed
        directory = create_run_directory(spec, store, command_line, simulation=encode_spec(spec))
        try:
            write_events(directory, simulated.entries)
            note_end(directory, simulated.trace_hash, simulated.phases)
            ingest(directory)
            story = planted_story(directory.read_info())
            reports.write(directory, simulated.outcome, story=story)
        except BaseException:
            shutil.rmtree(directory.path, ignore_errors=True)
            raise
    return directory
