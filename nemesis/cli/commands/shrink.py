"""``nemesis shrink``: from a simulated run that broke a property to the smallest one that still breaks it.

Exit codes: 0 the smaller run is in the store, or there is none; 254 and 255 as everywhere. Ctrl-C ends the search:
what was found so far is stored, and the exit code is 255.
"""

from __future__ import annotations

import shlex
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.spinner import Spinner
from rich.text import Text

from nemesis.checkers import CHECKERS
from nemesis.cli.console import err, out, say_json
from nemesis.cli.options import (
    Jobs,
    Json,
    RunPath,
    Store,
    number,
    require_range,
    whole_number,
    workers,
)
from nemesis.cli.pasted import command
from nemesis.history.run_directory import RunDirectory
from nemesis.running.simulated.stored import read_spec
from nemesis.scenarios import scenario
from nemesis.searching.shrink import Budget, Shrunk, Size, shrink
from nemesis.searching.shrink.shrinker import INTERRUPT
from nemesis.searching.shrink.stored import compared, store_shrunk
from nemesis.searching.shrink.trials import Trials
from nemesis.support.choices import one_of
from nemesis.support.errors import EXIT_CRASH, UsageError
from nemesis.support.interrupts import terminable
from nemesis.support.live_display import LiveDisplay
from nemesis.support.paths import short

MAX_RUNS: Final = 1_000_000


def shrink_run(
    path: RunPath,
    name: Annotated[
        str | None,
        typer.Option(
            "--property",
            metavar="NAME",
            help="Keep this one broken. Default: the first in the report.",
        ),
    ] = None,
    runs: Annotated[
        int,
        typer.Option(
            "--runs", metavar="N", parser=whole_number, help="Try at most this many runs."
        ),
    ] = Budget().runs,
    seconds: Annotated[
        float,
        typer.Option(
            "--seconds", metavar="S", parser=number, help="Search at most this many seconds."
        ),
    ] = Budget().seconds,
    jobs: Jobs = None,
    store: Store = Path("store"),
    as_json: Json = False,
) -> None:
    """Make a simulated run that broke a property as small as possible."""
    require_range("--runs", runs, 1, MAX_RUNS)
    if not 0 < seconds <= scenario.MAX_TIME_LIMIT_S:
        raise UsageError(
            f"--seconds is {seconds:g}: allowed are more than 0, up to {scenario.MAX_TIME_LIMIT_S:g}"
        )
    if name is not None:
        one_of("property", name, CHECKERS)
    jobs = workers(jobs)
    origin = RunDirectory.open(path)
    spec, _ = read_spec(origin)
    with terminable(), ShrinkProgress() as progress:
        shrunk = shrink(
            spec, name=name, budget=Budget(runs, seconds), jobs=jobs, show=progress.show
        )
    run = (
        store_shrunk(shrunk, origin, store, ["nemesis", *sys.argv[1:]])
        if shrunk.is_smaller
        else None
    )
    _say(shrunk, run, as_json=as_json)
    if shrunk.stopped_by == INTERRUPT:
        raise typer.Exit(EXIT_CRASH)


def _say(shrunk: Shrunk, run: RunDirectory | None, *, as_json: bool) -> None:
    """``run``: the smaller one in the store, None when there is none."""
    replay = None if run is None else shlex.join(["nemesis", "replay", short(run.path)])
    finding = shrunk.evidence.finding
    if as_json:
        said = {
            "run": None if run is None else str(run.path),
            "report": None if run is None else str(run.report_file),
            "replay": replay,
            "property": finding.property,
            "key": finding.key,
            "sentence": finding.sentence,
            "before": asdict(shrunk.before),
            "after": asdict(shrunk.after),
            "runs": shrunk.runs,
            "failures": list(shrunk.failures),
            "seconds": shrunk.seconds,
            "stopped_by": shrunk.stopped_by,
        }
        say_json(said)
        return
    out.print(f"{finding.property}: {finding.key}: {finding.sentence}")
    tried = f"{shrunk.runs} runs in {shrunk.seconds:.0f} s"
    out.print(f"{compared(shrunk.before, shrunk.after)}; {tried}")
    if shrunk.failures:
        out.print(f"{len(shrunk.failures)} of the runs failed; the first: {shrunk.failures[0]}")
    if shrunk.stopped_by is not None:
        out.print(f"the search ended after {shrunk.stopped_by}; a smaller run may exist")
    if run is None:
        out.print("nothing smaller was found, so no run was stored")
    else:
        again = command(["replay", short(run.path)])
        out.print(f"shrunk; report: {short(run.report_file)}; replay: {again}")


class ShrinkProgress(LiveDisplay):
    """Shows what is tried and how small it is."""

    def __init__(self) -> None:
        self._spinner = Spinner("dots", "the run itself, once more")
        super().__init__(err, self._spinner)
        self._before: Size | None = None

    def show(self, trials: Trials) -> None:
        """Show how far it is."""
        self._before = self._before or trials.size
        line = f"{trials.step}: {compared(self._before, trials.size)}; {trials.runs} runs"
        self._spinner.update(text=Text(line))
        self.update(self._spinner, line)
