"""Many mutants on several processes: from a draw to a file of results.

Each mutant's examination (``examine``) asks for one thing at a time; what several ask for at once, a run of the
unmodified reference, is done once. Runs of the reference are kept on disk, by the state of the code.
"""

from __future__ import annotations

import gc
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import msgspec

from nemesis.history.run_directory import write_atomically
from nemesis.mutants.generated.line_coverage import prepare
from nemesis.mutants.generated.mutation import Mutation
from nemesis.scenarios.scenario import Scenario
from nemesis.searching.generated.children import Children, Ended, Limits
from nemesis.searching.generated.examine import (
    BaselineTask,
    Examination,
    Task,
    TrialTask,
    examine,
)
from nemesis.searching.generated.results import MutantRecord, ResultFile
from nemesis.searching.generated.trial import (
    BaselineReport,
    Pair,
    TrialReport,
    run_baseline,
    run_mutant,
)
from nemesis.support.errors import HarnessError

Answer = BaselineReport | Ended[TrialReport]


@dataclass(frozen=True, kw_only=True)
class Campaign:
    """What is to be done."""

    mutations: Sequence[Mutation]
    scenarios: Mapping[str, Scenario]
    first_seed: int
    seeds: int
    """The most runs of one mutant."""
    jobs: int
    results: ResultFile
    baselines: Path
    """Directory of the unmodified reference's runs."""
    limits: Limits = field(default_factory=Limits)

    def run(
        self, show: Callable[[MutantRecord], None] = lambda _record: None
    ) -> list[MutantRecord]:
        """Examine the mutants that have no result yet; return the records of all of them. Blocks.

        Raises ``HarnessError`` when the unmodified reference has a finding: then nothing can be measured.
        """
        known = self.results.read()
        prepare()
        gc.collect()
        gc.freeze()  # what the parent has is shared with its children: nothing walks through it
        try:
            with Children[int](self.limits) as children:
                work = _Work(self, children)
                for record in work.examined(m for m in self.mutations if m.name not in known):
                    self.results.append(record)
                    known[record.name] = record
                    show(record)
        finally:
            gc.unfreeze()
        return [known[m.name] for m in self.mutations if m.name in known]

    def baseline_file(self, pair: Pair) -> Path:
        """Return where a run of the unmodified reference is kept."""
        return self.baselines / f"{self.results.header.code}-{pair.scenario}-{pair.seed}.json"


@dataclass(slots=True)
class _Work:
    """The examinations under way."""

    campaign: Campaign
    children: Children[int]
    baselines: dict[Pair, BaselineReport] = field(default_factory=dict)
    _active: dict[int, Examination] = field(default_factory=dict)
    _waiting: dict[Pair, list[int]] = field(default_factory=lambda: defaultdict(list))
    """Examinations that wait for a run of the reference."""
    _next: deque[tuple[int, Answer | None]] = field(default_factory=deque)
    """Examinations that can go on, with what they asked for."""
    _tasks: dict[int, Task] = field(default_factory=dict)

    def examined(self, mutations: Iterable[Mutation]) -> Iterable[MutantRecord]:
        """Yield each record when it is complete."""
        numbered = enumerate(mutations)
        item = next(numbered, None)
        while True:
            while item is not None and len(self._active) < self.campaign.jobs:
                number, mutation = item
                item = next(numbered, None)
                self._active[number] = examine(
                    mutation,
                    list(self.campaign.scenarios),
                    first_seed=self.campaign.first_seed,
                    runs=self.campaign.seeds,
                )
                self._next.append((number, None))
            while self._next:
                record = self._advance(*self._next.popleft())
                if record is not None:
                    yield record
            if not self._active and item is None:
                return
            if len(self.children):
                for number, ended in self.children.ended():
                    self._take(number, ended)

    def _advance(self, number: int, answer: Answer | None) -> MutantRecord | None:
        examination = self._active[number]
        try:
            task = next(examination) if answer is None else examination.send(answer)
        except StopIteration as stop:
            del self._active[number]
            return cast("MutantRecord", stop.value)
        if isinstance(task, TrialTask):
            self._tasks[number] = task
            scenario = self.campaign.scenarios[task.pair.scenario]
            self.children.start(
                number, lambda: run_mutant(task.mutation, scenario, task.pair.seed, task.flags)
            )
            return None
        self._need_baseline(number, task)
        return None

    def _need_baseline(self, number: int, task: BaselineTask) -> None:
        pair = task.pair
        stored = self.baselines.get(pair) or self._stored(pair)
        if stored is not None:
            self._next.append((number, stored))
            return
        self._waiting[pair].append(number)
        if len(self._waiting[pair]) == 1:
            self._tasks[number] = task
            scenario = self.campaign.scenarios[pair.scenario]
            self.children.start(number, lambda: run_baseline(scenario, pair.seed))

    def _stored(self, pair: Pair) -> BaselineReport | None:
        path = self.campaign.baseline_file(pair)
        if not path.exists():
            return None
        return self._known(msgspec.json.decode(path.read_bytes(), type=BaselineReport))

    def _known(self, report: BaselineReport) -> BaselineReport:
        """Return the run of the reference, from now on known; raises ``HarnessError`` when it has a finding."""
        if report.findings:
            raise HarnessError(
                f"the unmodified reference has a finding on {report.pair.scenario} with seed {report.pair.seed}, "
                f"so mutants cannot be judged there: {report.findings[0]}"
            )
        self.baselines[report.pair] = report
        return report

    def _take(self, number: int, ended: Ended[object]) -> None:
        task = self._tasks.pop(number)
        if isinstance(task, TrialTask):
            self._next.append((number, cast("Ended[TrialReport]", ended)))
            return
        if not isinstance(ended.result, BaselineReport):
            raise HarnessError(
                f"the unmodified reference cannot be run on {task.pair.scenario} with seed {task.pair.seed}: "
                f"{ended.error}"
            )
        path = self.campaign.baseline_file(task.pair)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, msgspec.json.encode(ended.result))
        report = self._known(ended.result)
        self._next.extend((waiting, report) for waiting in self._waiting.pop(task.pair))


def batch_of(mutations: Sequence[Mutation], number: int, count: int) -> list[Mutation]:
    """Return one of ``count`` batches, numbered from 1: every ``count``-th mutant, so that all batches are alike."""
    return list(mutations[number - 1 :: count])


def with_time_limit(scenario: Scenario, time_limit_s: float | None) -> Scenario:
    """Return the scenario with another time limit, if one is given."""
    if time_limit_s is None:
        return scenario
    return msgspec.structs.replace(scenario, time_limit_s=time_limit_s)
