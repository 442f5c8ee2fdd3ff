"""What people see of an exploration: one line while it lasts, the findings and what was reached at its end."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from nemesis.searching.explore.mutant_reach import summed
from nemesis.searching.explore.tally import FoundProperty, Tally
from nemesis.support.live_display import LiveDisplay

SEEDS_SHOWN: Final = 12
RUNS_SHOWN: Final = 10
CRASHES_SHOWN: Final = 3


class ExplorationProgress(LiveDisplay):
    """Shows how many seeds are over."""

    def __init__(self, console: Console) -> None:
        self._bar = Progress(
            TextColumn("{task.completed}/{task.total} seeds"),
            BarColumn(bar_width=20),
            TextColumn("{task.description}"),
            TimeRemainingColumn(),
            console=console,
        )
        self._seeds = self._bar.add_task("", total=None)
        super().__init__(console, self._bar)

    def show(self, tally: Tally) -> None:
        """Show how far it is."""
        now = pace(tally)
        self._bar.update(self._seeds, completed=tally.over, total=tally.asked, description=now)
        self.update(self._bar, f"{tally.over}/{tally.asked} seeds; {now}")


def pace(tally: Tally) -> str:
    """Return speed and findings in one line."""
    parts = [
        _speed(tally),
        ", ".join(f"{name} {len(result.seeds)}" for name, result in tally.properties_found.items())
        or "no findings",
    ]
    if tally.crashed:
        parts.append(f"{len(tally.crashed)} crashed")
    return "; ".join(parts)


def _speed(tally: Tally) -> str:
    elapsed_s = max(tally.elapsed_s, 1e-9)
    return (
        f"{tally.over / elapsed_s:.2f} seeds/s; "
        f"{tally.virtual_s / elapsed_s:.1f} simulated s per real s"
    )


def summary(
    tally: Tally, shorten: Callable[[Path], str] = str, *, is_verbose: bool = False
) -> Iterator[str]:
    """Yield the lines of the final summary, the most important last; the very last line is the command's.

    ``shorten`` says how paths are written; ``is_verbose``: everything that was reached, with its counts.
    """
    yield from _reached(tally, is_verbose=is_verbose)
    per_worker = tally.virtual_s / tally.simulating_s if tally.simulating_s else 0.0
    yield (
        f"{tally.done} of {tally.asked} seeds in {tally.elapsed_s:.0f} s: {_speed(tally)}, "
        f"{per_worker:.1f} on each worker; {tally.events:,} events"
    )
    if tally.reaches:
        yield f"planted bug: {summed(tally.reaches.values())}"
    if tally.codecs_compared:
        same = tally.codecs_compared - len(tally.mismatches)
        yield f"codec: {same} of {tally.codecs_compared} seeds gave the same trace with the real one"
    yield from _listed("not kept", dict(sorted(tally.not_kept.items())))
    yield from _listed("crashed", {seed: c.reason for seed, c in sorted(tally.crashed.items())})
    for seed, crash in sorted(tally.crashed.items())[:CRASHES_SHOWN]:
        log = "" if crash.file is None else f"  # see {shorten(Path(crash.file))}"
        yield f"  repeat: {tally.repeats(seed)}{log}"
    if tally.done and tally.unseen:
        yield f"in no seed was anything observed by {', '.join(tally.unseen)}"
    for kind, count in sorted(tally.faults.items()):
        if count.skipped:
            yield f"skipped: {count.skipped} of {count.due} faults of kind {kind}"
    yield from _listed("unknown", {seed: why[0] for seed, why in sorted(tally.doubts.items())})
    for seed, run in sorted(tally.doubtful_runs.items()):
        yield f"  seed {seed}: nemesis replay {shlex.quote(shorten(Path(run)))}"
    yield from _listed(
        "THE SIMULATOR IS NOT TO BE BELIEVED: with the real codec", dict(tally.mismatches)
    )
    yield from _findings(tally, shorten)


def _reached(tally: Tally, *, is_verbose: bool) -> Iterator[str]:
    coverage = tally.coverage
    if not coverage.runs:
        yield "reached: nothing, no run came to its end"
        return
    yield f"reached in {coverage.in_runs}{':' if is_verbose else ' (--verbose: what, and how often):'}"
    yield from (f"  {line}" for line in (coverage.lines() if is_verbose else coverage.table()))
    yield from coverage.missed()


def _findings(tally: Tally, shorten: Callable[[Path], str]) -> Iterator[str]:
    if not tally.properties_found:
        return
    width = max(len(name) for name in tally.properties_found)
    yield f"{'property':<{width}}  seeds"
    for name, result in tally.properties_found.items():
        yield f"{name:<{width}}  {_seeds(result)}"
        yield f"{'':<{width}}  seed {result.first_seed}: {result.first.key}: {result.first.sentence}"
        if result.first_run is not None:
            yield f"{'':<{width}}  nemesis replay {shlex.quote(shorten(Path(result.first_run[1])))}"


def _seeds(result: FoundProperty) -> str:
    seeds = sorted(result.seeds)
    shown = ", ".join(map(str, seeds[:SEEDS_SHOWN]))
    more = f" and {len(seeds) - SEEDS_SHOWN} more" if len(seeds) > SEEDS_SHOWN else ""
    return f"{len(seeds)}: {shown}{more}"


def _listed(title: str, reasons: dict[int, str]) -> Iterator[str]:
    if not reasons:
        return
    yield f"{title}: {len(reasons)} {'seed' if len(reasons) == 1 else 'seeds'}"
    for seed, reason in list(reasons.items())[:RUNS_SHOWN]:
        yield f"  seed {seed}: {reason}"
    if len(reasons) > RUNS_SHOWN:
        yield f"  and {len(reasons) - RUNS_SHOWN} more: --json names all"
