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

from nemesis.running.simulated.specification import SimulationSpec
from nemesis.running.simulated.wall_clock_limit import limit_s
from nemesis.scenarios.scenario import Scenario
from nemesis.searching.explore.codecs import CodecReport, CodecTask, compare_codecs
from nemesis.searching.explore.crashes import Crash, stored
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
    mutant: str | None = None
    checkers: tuple[str, ...] | None = None
    options: tuple[str, ...] = ()
    """What ``nemesis explore`` must be told besides scenario, mutant and checkers to explore the same."""
    real_codec_every: int = 0
    """Every so many seeds one is run with the real codec too; 0: none is."""

    @property
    def limit_s(self) -> float:
        """Wall-clock seconds after which a seed is given up."""
        return limit_s(self.scenario, runs=2 if self.real_codec_every else 1)

    def repeats(self, seed: int) -> str:
        """Return the command that runs this seed alone."""
        words = ["nemesis", "explore", self.scenario.name]
        words += ["--first-seed", str(seed), "--seeds", "1"]
        if self.mutant is not None:
            words += ["--mutant", self.mutant]
        if self.checkers is not None:
            words += ["--checkers", ",".join(self.checkers)]
        return shlex.join([*words, *self.options])

    def task(self, seed: int, so_far: Tally) -> SeedTask:
        """Return what a worker is told to do for this seed; raises ``UsageError`` when no fault fits into its time."""
        varied = vary(self.scenario, seed)
        return SeedTask(
            spec=SimulationSpec(
                scenario=varied.scenario,
                seed=seed,
                plan=varied.plan,
                mutant=self.mutant,
                checkers=self.checkers,
                deviation_rate=varied.deviation_rate,
            ),
            store=self.store,
            command_line=self.command_line,
            satisfied=so_far.satisfied,
            keeps_doubtful=so_far.wants_doubtful,
            kinds=self.scenario.faults.kinds,
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
            every = self.real_codec_every
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

    def _add_crash(self, done: Crashed[Task], tally: Tally) -> None:
        """A run that crashes with the real codec differs from one that does not; the seed's own report stands."""
        seed, is_codec = done.task.seed, isinstance(done.task, CodecTask)
        name = f"seed-{seed}-codecs" if is_codec else f"seed-{seed}"
        folder = self.store / self.scenario.name
        crash = stored(
            Crash(done.reason, done.trace, done.output),
            name,
            self.repeats(seed),
            folder,
        )
        if is_codec:
            log = "" if crash.file is None else f" ({crash.file})"
            tally.add_codecs(CodecReport(seed=seed, difference=f"crashed: {crash.reason}{log}"))
        else:
            tally.add_crash(seed, crash)
