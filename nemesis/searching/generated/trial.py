"""One run in a process of its own: of a mutant, or of the unmodified reference with its line coverage.

Both return values that can be pickled. A run of the reference must have no finding: a mutant's finding under the same
scenario and seed would prove nothing.
"""

from __future__ import annotations

import mmap
import time
from collections.abc import Callable
from contextlib import suppress

import msgspec

from nemesis.checkers.exceptions import NO_UNFORESEEN_EXCEPTION
from nemesis.mutants.generated.line_coverage import recorded_lines
from nemesis.mutants.generated.mutation import Mutation
from nemesis.mutants.generated.planting import planted
from nemesis.mutants.probe import Probe
from nemesis.running.simulated.specification import SimulationSpec
from nemesis.scenarios.scenario import Scenario
from nemesis.searching.explore.seed import broken, doubts
from nemesis.searching.explore.swarm import vary
from nemesis.searching.simulate import SimulationResult, simulate

MAX_SENTENCE = 300
Simulator = Callable[[SimulationSpec], SimulationResult]


class Pair(msgspec.Struct, frozen=True):
    """What decides a run, the mutant aside."""

    scenario: str
    seed: int


class BaselineReport(msgspec.Struct, frozen=True, kw_only=True):
    """The unmodified reference under one scenario and seed."""

    pair: Pair
    cpu_s: float
    trace_hash: str
    findings: tuple[str, ...]
    """Sentences; any of them is a bug of the reference, a checker or the simulation."""
    doubts: tuple[str, ...]
    lines: dict[str, list[int]]
    """Where executed statements and branches begin, by module (``controller/election``)."""

    def covers(self, mutation: Mutation) -> bool:
        """Return whether the position that the mutant changes was executed."""
        return mutation.unit in self.lines.get(mutation.module, ())

    def rank(self, mutation: Mutation) -> tuple[int, int, float]:
        """Return a smaller value for a run that executes more of the mutated module, then of the reference, then costs
        less: it is more likely to show what the mutant changes.
        """
        in_module = len(self.lines.get(mutation.module, ()))
        return -in_module, -sum(map(len, self.lines.values())), self.cpu_s


class TrialReport(msgspec.Struct, frozen=True, kw_only=True):
    """One run of a mutant that came to its end, or that an exception ended."""

    reached: int
    effective: int
    trace_hash: str | None
    properties: tuple[str, ...]
    """The broken ones, in the sequence of reports."""
    sentence: str = ""
    """The first finding."""
    node_errors: int = 0
    """Unforeseen exceptions inside brokers."""
    error: str = ""
    """The first of them; or what ended the run."""
    has_failed: bool = False
    """Whether an exception of the harness ended the run."""
    doubts: tuple[str, ...] = ()
    cpu_s: float = 0.0


def specification(scenario: Scenario, seed: int) -> SimulationSpec:
    """Return the run of a scenario under a seed, with the faults and the load that the swarm draws for it."""
    varied = vary(scenario, seed)
    return SimulationSpec(
        scenario=varied.scenario,
        seed=seed,
        plan=varied.plan,
        deviation_rate=varied.deviation_rate,
    )


def run_baseline(scenario: Scenario, seed: int) -> BaselineReport:
    """Run the unmodified reference, and record its lines; blocks. Raises what ``simulate`` raises."""
    started = time.process_time()
    with recorded_lines() as lines:
        result = simulate(specification(scenario, seed))
        executed = lines()
    return BaselineReport(
        pair=Pair(scenario.name, seed),
        cpu_s=time.process_time() - started,
        trace_hash=result.trace_hash,
        findings=tuple(f"{f.property}: {f.key}: {f.sentence}" for f in broken(result.outcome)),
        doubts=(*doubts(result.outcome), *result.node_errors),
        lines=executed,
    )


def run_mutant(
    mutation: Mutation,
    scenario: Scenario,
    seed: int,
    flags: Flags | None = None,
    simulator: Simulator = simulate,
) -> TrialReport:
    """Run a mutant; blocks. ``flags`` outlive a process that has to be killed. Raises ``MutantError``."""
    probe = Probe() if flags is None else Probe(flags.note)
    started = time.process_time()
    result: SimulationResult | None = None
    error = ""
    with planted(mutation, probe):
        try:
            result = simulator(specification(scenario, seed))
        except Exception as problem:  # noqa: BLE001 - the mutant may break the harness in any way
            error = f"{type(problem).__name__}: {' '.join(str(problem).split())}"[:MAX_SENTENCE]
    cpu_s = round(time.process_time() - started, 2)
    if result is None:
        return TrialReport(
            reached=probe.reached,
            effective=probe.effective,
            trace_hash=None,
            properties=(),
            error=error,
            has_failed=True,
            cpu_s=cpu_s,
        )
    # An exception in a broker is counted apart (``node_errors``): it is not a kill.
    findings = [f for f in broken(result.outcome) if f.property != NO_UNFORESEEN_EXCEPTION.name]
    first = f"{findings[0].key}: {findings[0].sentence}" if findings else ""
    return TrialReport(
        reached=probe.reached,
        effective=probe.effective,
        trace_hash=result.trace_hash,
        properties=tuple(finding.property for finding in findings),
        sentence=first[:MAX_SENTENCE],
        node_errors=len(result.node_errors),
        error=result.node_errors[0][:MAX_SENTENCE] if result.node_errors else "",
        doubts=tuple(text[:MAX_SENTENCE] for text in doubts(result.outcome)[:2]),
        cpu_s=cpu_s,
    )


class Flags:
    """Two flags in memory that a forked process shares with its parent: reached, effective."""

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, 2)

    def note(self, probe: Probe) -> None:
        """Remember what the probe has counted so far."""
        self._memory[0] = int(probe.reached > 0)
        self._memory[1] = int(probe.effective > 0)

    @property
    def is_reached(self) -> bool:
        return bool(self._memory[0])

    @property
    def is_effective(self) -> bool:
        return bool(self._memory[1])

    def close(self) -> None:
        """Give the memory back."""
        with suppress(BufferError):
            self._memory.close()
