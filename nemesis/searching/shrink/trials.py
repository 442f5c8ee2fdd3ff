"""Trying candidates: each is simulated and checked, and counts when it shows the finding.

Candidates are tried in the order given and the first that counts is taken, however many are run at the same time, so
the search takes the same way with any number of workers. No specification is tried twice. The budget is charged for
what one worker would have run: a candidate that was run ahead costs its run when its turn comes, if it comes.

A candidate whose run fails does not count, whatever the error is: a smaller specification may ask for what the
harness cannot do. How many failed is told, with the first reason: a search that fails often may stop too early.

Limit: that a run takes too long or too much memory is noticed by a pool only.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import msgspec

from nemesis.checkers.framework.model import Finding
from nemesis.faults import plan as plans
from nemesis.history.events import Event, Kind
from nemesis.running.simulated.specification import SimulationSpec
from nemesis.searching.explore.pool import Finished, Pool
from nemesis.searching.shrink.signature import Signature
from nemesis.searching.simulate import SimulationResult, simulate


@dataclass(frozen=True, slots=True)
class Budget:
    """Where the search ends, whatever it has reached. With a limit of ``runs`` alone it is repeatable."""

    runs: int = 500
    seconds: float = 900.0


class BudgetSpent(Exception):
    """The search ends here; what was found so far stands. The message says which limit it was."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """What a run that shows the finding is like. Small: it crosses process borders."""

    finding: Finding
    trace_hash: str
    issued: tuple[str, ...]
    """The operations of clients."""
    deviations: int
    late: frozenset[int]
    """Positions in the plan of faults that had not struck when the finding was proved."""
    virtual_s: float


@dataclass(frozen=True, slots=True)
class Size:
    """How large a run is, the most important first."""

    faults: int
    operations: int
    """Of clients."""
    seconds: float
    """Warm-up, faults and heal: ``--time-limit``."""
    deviations: int
    """Turns that were late."""

    @classmethod
    def of(cls, spec: SimulationSpec, evidence: Evidence) -> Size:
        return cls(
            faults=len(spec.plan),
            operations=len(evidence.issued),
            seconds=spec.scenario.time_limit_s,
            deviations=evidence.deviations,
        )


@dataclass(frozen=True, slots=True)
class Trial:
    """What a worker is told."""

    spec: SimulationSpec
    signature: Signature


@dataclass(frozen=True, slots=True)
class Failure:
    """A candidate's run did not come to its end."""

    reason: str
    """One line."""


Answer = Evidence | Failure | None
"""What came of a candidate; None: it ran, and does not count."""


Candidate = tuple[int, SimulationSpec, str]
"""Its index, and its fingerprint."""


class Bench(Protocol):
    """Runs candidates, so many at the same time."""

    width: int

    def run(self, trials: Sequence[Trial]) -> list[Answer]:
        """Return what came of each."""


class InProcessBench:
    """Runs candidates one by one, in this process."""

    width = 1

    def run(self, trials: Sequence[Trial]) -> list[Answer]:
        return [attempt(trial) for trial in trials]


class PoolBench:
    """Runs candidates in a pool of workers."""

    def __init__(self, pool: Pool[Trial, Answer], jobs: int) -> None:
        self.width = jobs
        self._pool = pool

    def run(self, trials: Sequence[Trial]) -> list[Answer]:
        answers = {
            id(done.task): done.result if isinstance(done, Finished) else Failure(done.reason)
            for done in self._pool.run(iter(trials))
        }
        return [answers[id(trial)] for trial in trials]


def attempt(trial: Trial) -> Answer:
    """Simulate it; return what shows the finding."""
    try:
        simulated = simulate(trial.spec)
    except Exception as error:  # noqa: BLE001 - see the module
        return Failure(" ".join(f"{type(error).__name__}: {error}".split()))
    return evidence_of(simulated, trial.signature)


def evidence_of(simulated: SimulationResult, signature: Signature) -> Evidence | None:
    """Return what in the run shows a finding of this signature."""
    finding = signature.find(simulated.outcome)
    if finding is None:
        return None
    return Evidence(
        finding=finding,
        trace_hash=simulated.trace_hash,
        issued=simulated.issued,
        deviations=simulated.deviations,
        late=_late(simulated.events, finding),
        virtual_s=simulated.virtual_s,
    )


def _late(events: Iterable[Event], finding: Finding) -> frozenset[int]:
    """The faults that struck after the last timed event of the proof: they did not cause it."""
    proved = max((event.get("time", -1) for event in finding.events), default=-1)
    if proved < 0:
        return frozenset()
    return frozenset(
        event.fault_id
        for event in events
        if event.kind == Kind.FAULT_INVOKE and event.fault_id is not None and event.time > proved
    )


class Trials:
    """The best specification so far, and how it is bettered."""

    def __init__(
        self,
        spec: SimulationSpec,
        evidence: Evidence,
        *,
        bench: Bench,
        budget: Budget,
        show: Callable[[Trials], None] = lambda _: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """``spec`` shows the finding, as ``evidence`` says. ``show`` is called after every batch."""
        self.spec = spec
        self.evidence = evidence
        self.step = ""
        """What is being made smaller, for people."""
        self.runs = 0
        """How many candidates were run, those ahead of their turn left out."""
        self.failures: list[str] = []
        """Why some of them did not come to their end."""
        self._signature = Signature.of(evidence.finding)
        self._bench = bench
        self._budget = budget
        self._show = show
        self._clock = clock
        self._started = clock()
        self._known: dict[str, Answer] = {fingerprint(spec): evidence}
        self._charged = set(self._known)

    @property
    def size(self) -> Size:
        return Size.of(self.spec, self.evidence)

    @property
    def elapsed_s(self) -> float:
        return self._clock() - self._started

    def takes(self, candidate: SimulationSpec) -> bool:
        """Try one candidate; if it counts, it is the best from now on."""
        return self.first([candidate]) is not None

    def first(self, candidates: Iterable[SimulationSpec]) -> int | None:
        """Try candidates until one counts; it is the best from now on. Returns its index, None when none counts.

        Raises ``BudgetSpent``.
        """
        batch: list[Candidate] = []
        fresh = 0
        for index, candidate in enumerate(candidates):
            key = fingerprint(candidate)
            batch.append((index, candidate, key))
            fresh += key not in self._known
            if fresh >= self._bench.width or isinstance(self._known.get(key), Evidence):
                if (result := self._settle(batch)) is not None:
                    return result
                batch, fresh = [], 0
        return self._settle(batch)

    def _settle(self, batch: Sequence[Candidate]) -> int | None:
        affordable = self._affordable(batch)
        new = {
            key: Trial(spec, self._signature)
            for _, spec, key in affordable
            if key not in self._known
        }
        if new:
            if self.elapsed_s >= self._budget.seconds:
                raise BudgetSpent(f"{self._budget.seconds:g} seconds")
            self._known.update(zip(new, self._bench.run(list(new.values())), strict=True))
        for index, spec, key in affordable:
            self._charge(key)
            if isinstance(answer := self._known[key], Evidence):
                self.spec, self.evidence = spec, answer
                self._show(self)
                return index
        if len(affordable) < len(batch):
            raise BudgetSpent(f"{self._budget.runs} runs")
        self._show(self)
        return None

    def _affordable(self, batch: Sequence[Candidate]) -> list[Candidate]:
        """Return as many of the batch, from its start, as the budget of runs has room for."""
        room = self._budget.runs - self.runs
        fresh: set[str] = set()
        affordable = []
        for candidate in batch:
            if candidate[2] not in self._charged:
                fresh.add(candidate[2])
            if len(fresh) > room:
                break
            affordable.append(candidate)
        return affordable

    def _charge(self, key: str) -> None:
        if key in self._charged:
            return
        self._charged.add(key)
        self.runs += 1
        if isinstance(answer := self._known[key], Failure):
            self.failures.append(answer.reason)


def fingerprint(spec: SimulationSpec) -> str:
    """Return what two specifications share exactly if they are equal."""
    plain = {
        **vars(replace(spec, plan=())),
        "plan": plans.encode(spec.plan),
        "operations": None if spec.operations is None else sorted(spec.operations),
    }
    return hashlib.blake2b(msgspec.json.encode(plain), digest_size=16).hexdigest()
