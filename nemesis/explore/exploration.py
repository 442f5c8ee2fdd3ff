"""Many seeds, one after the other on several workers: from a range of seeds to a tally.

Seeds are begun in their order. ``is_enough`` may end the exploration early; seeds that were begun by then are
finished, so that the smallest seed that shows a thing is the same with any number of workers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Final

from nemesis.explore.pool import Finished, Pool
from nemesis.explore.seed import SeedTask, run_seed
from nemesis.explore.swarm import vary
from nemesis.explore.tally import Tally
from nemesis.scenario import Scenario
from nemesis.simulation.order import SimulationOrder

LEAST_LIMIT_S: Final = 300.0
LIMIT_FACTOR: Final = 5.0
"""A seed may take so many times its simulated time before it counts as hung; it should take a small part of it."""


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
    real_codec_every: int = 0
    """Every so many seeds one is run with the real codec too; 0: none is."""

    @property
    def limit_s(self) -> float:
        """Wall-clock seconds after which a seed is given up."""
        phases = self.scenario.phases
        simulated_s = self.scenario.time_limit_s + phases.quiet_s + phases.final_reads_s
        runs = 2 if self.real_codec_every else 1
        return max(LEAST_LIMIT_S, LIMIT_FACTOR * runs * (simulated_s + phases.convergence_s))

    def task(self, seed: int, satisfied: frozenset[str]) -> SeedTask:
        """Return what a worker is told to do for this seed; raises ``UsageError`` when no fault fits into its time."""
        varied = vary(self.scenario, seed)
        every = self.real_codec_every
        return SeedTask(
            order=SimulationOrder(
                scenario=varied.scenario,
                seed=seed,
                plan=varied.plan,
                mutant=self.mutant,
                checkers=self.checkers,
                deviation_rate=varied.deviation_rate,
            ),
            store=self.store,
            command_line=self.command_line,
            satisfied=satisfied,
            compares_codecs=every > 0 and (seed - self.first_seed) % every == 0,
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
        tally = Tally(asked=self.seeds)
        started = monotonic()
        show(tally)

        def tasks() -> Iterator[SeedTask]:
            for seed in range(self.first_seed, self.first_seed + self.seeds):
                if is_enough(tally):
                    return
                yield self.task(seed, tally.satisfied)

        try:
            with Pool(run_seed, jobs=self.jobs, limit_s=self.limit_s) as pool:
                for done in pool.run(tasks()):
                    if isinstance(done, Finished):
                        tally.add(done.result)
                    else:
                        tally.add_crash(done.task.seed, done.reason)
                    tally.elapsed_s = monotonic() - started
                    show(tally)
        except KeyboardInterrupt:
            tally.is_interrupted = True
        tally.elapsed_s = monotonic() - started
        return tally
