"""``nemesis explore``: many seeds of a scenario in simulation, each with a variation of its own."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from nemesis import scenario
from nemesis.commands.options import (
    Checkers,
    FaultNames,
    Json,
    MutantName,
    ScenarioName,
    Store,
    TimeLimit,
    whole,
)
from nemesis.commands.speech import err, note, out, say_json
from nemesis.errors import EXIT_CRASH, UsageError
from nemesis.explore.display import ExplorationProgress, summary
from nemesis.explore.exploration import Exploration
from nemesis.explore.tally import Tally
from nemesis.interrupts import terminable
from nemesis.paths import short
from nemesis.preflight import RunOptions, prepare

MAX_SEEDS = 1_000_000
MAX_JOBS = 256

Seeds = Annotated[
    int, typer.Option("--seeds", metavar="N", parser=whole, help="How many, one run each.")
]
Jobs = Annotated[
    int | None,
    typer.Option("--jobs", metavar="J", parser=whole, help="Workers. Default: one per core."),
]


def explore(
    scenario_name: ScenarioName,
    seeds: Seeds = 100,
    jobs: Jobs = None,
    first_seed: Annotated[
        int, typer.Option("--first-seed", metavar="K", parser=whole, help="Where to begin.")
    ] = 1,
    mutant: MutantName = None,
    faults: FaultNames = None,
    time_limit: TimeLimit = None,
    checkers: Checkers = None,
    stop_on_first: Annotated[
        bool, typer.Option("--stop-on-first/--collect", help="Stop at a finding, or collect all.")
    ] = False,
    real_codec_every: Annotated[
        int,
        typer.Option(
            "--real-codec-every",
            metavar="N",
            parser=whole,
            help="Run the first seed and every Nth after it with the real codec too, and compare; 0: never.",
        ),
    ] = 50,
    store: Store = Path("store"),
    is_verbose: Annotated[
        bool, typer.Option("--verbose", help="Tell everything that was reached, with its counts.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Run many seeds in simulation, and tell which properties broke."""
    require_range("--seeds", seeds, 1, MAX_SEEDS)
    require_range("--first-seed", first_seed, 0, scenario.MAX_SEED - seeds)
    require_range("--real-codec-every", real_codec_every, 0, MAX_SEEDS)
    jobs = workers(jobs)
    order = prepare(
        RunOptions(
            scenario=scenario_name,
            store=store,
            runtime=scenario.SIMULATION,
            seed=first_seed,
            time_limit_s=time_limit,
            faults=faults,
            mutant=mutant,
            checkers=checkers,
            engine="inline",
        )
    )
    exploration = Exploration(
        scenario=order.scenario,
        first_seed=first_seed,
        seeds=seeds,
        jobs=jobs,
        store=store.absolute(),
        command_line=("nemesis", *sys.argv[1:]),
        mutant=mutant,
        checkers=None if order.checkers is None else tuple(order.checkers),
        options=repeat_options(faults, time_limit),
        real_codec_every=real_codec_every,
    )
    last_seed = first_seed + seeds - 1
    note(f"exploring {order.scenario.name}: seeds {first_seed} to {last_seed}, {jobs} at a time")
    with terminable(), ExplorationProgress(err) as progress:
        tally = exploration.run(
            progress.show, is_enough=lambda so_far: stop_on_first and bool(so_far.found)
        )
    _say(tally, exploration, is_verbose=is_verbose, as_json=as_json)
    raise typer.Exit(tally.exit_code)


def require_range(option: str, value: int, low: int, high: int) -> None:
    """Raise ``UsageError`` when the value of an option is out of range."""
    if not low <= value <= high:
        raise UsageError(f"{option} is {value}: allowed are {low} to {high}")


def repeat_options(faults: str | None, time_limit: float | None) -> tuple[str, ...]:
    """Return the options that change the scenario, as they have to be given again."""
    return (
        *(() if faults is None else ("--faults", faults)),
        *(() if time_limit is None else ("--time-limit", f"{time_limit:g}")),
    )


def workers(jobs: int | None) -> int:
    """Return the number of workers; raises ``UsageError``."""
    if jobs is None:
        return len(os.sched_getaffinity(0))
    require_range("--jobs", jobs, 1, MAX_JOBS)
    return jobs


def _say(tally: Tally, exploration: Exploration, *, is_verbose: bool, as_json: bool) -> None:
    if as_json:
        asked = {
            "scenario": exploration.scenario.name,
            "mutant": exploration.mutant,
            "first_seed": exploration.first_seed,
            "jobs": exploration.jobs,
        }
        say_json({**asked, **tally.as_json()})
        return
    for line in summary(tally, short, is_verbose=is_verbose):
        out.print(line)
    out.print(_last_line(tally))


def _last_line(tally: Tally) -> str:
    what = tally.verdict.value
    if tally.is_interrupted:
        what = f"interrupted; so far {what}"
    elif tally.exit_code == EXIT_CRASH:
        what = "no verdict: the harness failed"
    runs = [found.first_run for found in tally.found.values() if found.first_run is not None]
    if not runs:
        return f"{what}; {tally.done} seeds"
    _, run = min(runs)
    replay = shlex.join(["nemesis", "replay", short(Path(run))])
    return f"{what}; {tally.done} seeds; replay: {replay}; shrink: {replay.replace('replay', 'shrink', 1)}"
