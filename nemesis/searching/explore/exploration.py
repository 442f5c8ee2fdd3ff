"""Many seeds, one after the other on several workers: from a range of seeds to a tally.

Seeds are begun in their order. ``is_enough`` may end the exploration early; seeds that were begun by then are
finished, so that the smallest seed that shows a thing is the same with any number of workers.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from time import monotonic

import yaml

from nemesis.faults import plan as plans
from nemesis.mutants.chosen import ChosenMutant
from nemesis.running.simulated.specification import SimulationSpec
from nemesis.running.simulated.wall_clock_limit import limit_s
from nemesis.scenarios.scenario import Scenario
from nemesis.searching.explore.codecs import CodecReport, CodecTask, compare_codecs
from nemesis.searching.explore.crashes import Crash, stored
from nemesis.searching.explore.guide import Candidate, Guide
from nemesis.searching.explore.pool import Crashed, Finished, Pool
from nemesis.searching.explore.seed import SeedReport, SeedTask, run_seed
from nemesis.searching.explore.swarm import vary
from nemesis.searching.explore.tally import Tally

Task = SeedTask | CodecTask
Report = SeedReport | CodecReport


def work(task: Task) -> Report:
    """What a worker does."""
    return run_seed(task) if isinstance(task, SeedTask) else compare_codecs(task)


@dataclass(frozen=True, kw_only=True)
class Exploration:
    """What is explored. ``run`` may be called more than once."""

    scenario: Scenario
    first_seed: int
    seeds: int
    jobs: int
    store: Path
    command_line: tuple[str, ...]
    mutant: ChosenMutant | None = None
    checkers: tuple[str, ...] | None = None
    options: tuple[str, ...] = ()
    """What ``nemesis explore`` must be told besides scenario, mutant and checkers to explore the same."""
    real_codec_every: int = 0
    """Every so many seeds one is run with the real codec too; 0: none is. A guided exploration compares none."""
    guide: Guide | None = None
    """Chooses the runs; None: each seed runs the plan that it draws."""

    @property
    def limit_s(self) -> float:
        """Wall-clock seconds after which a seed is given up."""
        return limit_s(self.scenario, runs=2 if self.real_codec_every else 1)

    def repeats(self, seed: int) -> str:
        """Return the command that runs this seed alone; a guided one is chosen by what ran before it, so all run."""
        words = ["nemesis", "explore", self.scenario.name]
        if self.guide is None:
            words += ["--first-seed", str(seed), "--seeds", "1"]
        else:
            words += ["--guided", "--corpus", str(self.guide.corpus.folder), "--jobs", "1"]
            words += ["--first-seed", str(self.first_seed), "--seeds", str(self.seeds)]
        if self.mutant is not None:
            words += ["--mutant", self.mutant.argument]
        if self.checkers is not None:
            words += ["--checkers", ",".join(self.checkers)]
        return shlex.join([*words, *self.options])

    def task(self, seed: int, so_far: Tally) -> SeedTask:
        """Return what a worker is told to do for this seed; raises ``UsageError`` when no fault fits into its time."""
        chosen = Candidate(seed, None) if self.guide is None else self.guide.choose(seed)
        varied = vary(self.scenario, chosen.seed)
        return SeedTask(
            spec=SimulationSpec(
                scenario=varied.scenario,
                seed=chosen.seed,
                plan=varied.plan if chosen.plan is None else chosen.plan,
                mutant=self.mutant,
                checkers=self.checkers,
                deviation_rate=varied.deviation_rate,
            ),
            store=self.store,
            command_line=self.command_line,
            satisfied=so_far.satisfied,
            keeps_doubtful=so_far.wants_doubtful,
            kinds=self.scenario.faults.kinds,
            guided_number=None if self.guide is None else seed,
        )

    def run(
        self,
        show: Callable[[Tally], None] = lambda _tally: None,
        *,
        is_enough: Callable[[Tally], bool] = lambda _tally: False,
    ) -> Tally:
        """Run the seeds; blocks. Ctrl-C ends the workers and returns what there is, marked as interrupted.

        ``show`` is called whenever a seed is over, and before the first.
        """
        tally = Tally(asked=self.seeds, repeats=self.repeats)
        started = monotonic()
        show(tally)

        def tasks() -> Iterator[Task]:
            every = self.real_codec_every if self.guide is None else 0
            for seed in range(self.first_seed, self.first_seed + self.seeds):
                if is_enough(tally):
                    return
                task = self.task(seed, tally)
                yield task
                if every > 0 and (seed - self.first_seed) % every == 0:
                    yield CodecTask(task.spec)

        try:
            with Pool(work, jobs=self.jobs, limit_s=self.limit_s) as pool:
                for done in pool.run(tasks()):
                    self.take(done, tally)
                    tally.elapsed_s = monotonic() - started
                    show(tally)
        except KeyboardInterrupt:
            tally.is_interrupted = True
        tally.elapsed_s = monotonic() - started
        return tally

    def take(self, done: Finished[Task, Report] | Crashed[Task], tally: Tally) -> None:
        """Add to the tally what a worker came to."""
        if isinstance(done, Crashed):
            self._add_crash(done, tally)
        elif isinstance(done.result, CodecReport):
            tally.add_codecs(done.result)
        else:
            tally.add(done.result)
            if self.guide is not None:
                spec = done.task.spec
                self.guide.learn(spec.seed, spec.plan, done.result.coverage)

    def _add_crash(self, done: Crashed[Task], tally: Tally) -> None:
        """A run that crashes with the real codec differs from one that does not; the seed's own report stands."""
        seed, is_codec = done.task.seed, isinstance(done.task, CodecTask)
        name = f"seed-{seed}-codecs" if is_codec else f"seed-{seed}"
        folder = self.store / self.scenario.name
        crash = stored(
            Crash(done.reason, done.trace, done.output, self._chosen(done.task)),
            name,
            self.repeats(seed),
            folder,
        )
        if is_codec:
            log = "" if crash.file is None else f" ({crash.file})"
            tally.add_codecs(CodecReport(seed=seed, difference=f"crashed: {crash.reason}{log}"))
        else:
            tally.add_crash(seed, crash)

    def _chosen(self, task: Task) -> str:
        """Return seed and plan of a guided run, which nothing else records when it crashes."""
        if self.guide is None:
            return ""
        plan = yaml.safe_dump(plans.encode(task.spec.plan), sort_keys=False)
        return f"seed {task.spec.seed} with the plan:\n{plan}"
