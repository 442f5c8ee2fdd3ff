"""linearizable-register over one register and over a thousand: how long, reading included, and how much memory.

Required (two cores): 20 million operations on one register in under 10 s. The histories are true but for a few stale
reads at known places, all of which must be found. ``scan`` reads the columns that the check asks for, row group by row
group, and does nothing with them. Each pass is the best of ``ROUNDS``.
"""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import replace
from functools import partial
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.figures import MILLION, Figure
from benchmarks.histories.registers import Registers, write
from benchmarks.measuring import best, columns_of, made_apart, scan
from benchmarks.resident_memory import PeakMemory
from nemesis.checkers.checking import check
from nemesis.checkers.framework.engine import Engine
from nemesis.checkers.linearizable.registers import LinearizableRegister
from nemesis.history.reader import open_history
from nemesis.history.spark import context, stop

NAME = "register"
SIZES = (2_000_000, 20_000_000)
REQUIRED_S = 10.0
REQUIRED_OF = 20_000_000
STALE = 3
KEYS = 1_000
ENGINES: tuple[Engine, ...] = ("inline", "spark")


def main(*sizes: int) -> list[Figure]:
    """Measure each number of operations; print a table, return what it holds."""
    figures: list[Figure] = []
    with tempfile.TemporaryDirectory(prefix="nemesis-bench-") as store:
        context()
        for size in sizes or SIZES:
            for name, keys in (("one register", 1), (f"{KEYS:,} registers", KEYS)):
                directory = Path(store) / f"{size}-{keys}"
                figures += measure(directory, name, Registers(size, keys=keys))
                shutil.rmtree(directory)
        stop()
    Console(width=120).print(_table(figures))
    return figures


def measure(directory: Path, name: str, shape: Registers) -> list[Figure]:
    """Make the history, read it and check it with both engines."""
    shape = replace(shape, stale=shape.positions(STALE))
    made_apart(write, directory, shape)
    history = open_history(directory)
    columns = columns_of([LinearizableRegister()])
    scan_s = best(lambda: scan(history, columns))
    is_required = shape.keys == 1 and shape.operations == REQUIRED_OF
    figures = []
    for engine in ENGINES:
        with PeakMemory() as memory:
            check_s = best(partial(judge, directory, engine))
        figures.append(
            Figure(
                benchmark=NAME,
                what=f"{name}, {engine}",
                size=shape.operations,
                unit="operations",
                seconds=check_s,
                scan_s=scan_s,
                required_s=REQUIRED_S if is_required else None,
                peak_bytes=memory.peak_bytes,
            )
        )
    return figures


def judge(directory: Path, engine: Engine) -> None:
    """Check the history; every stale read must be found, and nothing else."""
    outcome = check(directory, [LinearizableRegister()], engine=engine)
    (result,) = outcome.results
    if (result.verdict, result.finding_count) != ("invalid", STALE):
        raise RuntimeError(f"{STALE} stale reads were put in, {result.finding_count} found")


def _table(figures: list[Figure]) -> Table:
    title = (
        f"linearizable-register; required: {REQUIRED_OF:,} operations on one in {REQUIRED_S:.0f} s"
    )
    table = Table("history", "M operations", "scan, s", "check, s", "ratio", "peak MB", title=title)
    for figure in figures:
        table.add_row(
            figure.what,
            f"{figure.size / MILLION:g}",
            f"{figure.scan_s:.2f}",
            f"{figure.seconds:.2f}",
            f"{figure.ratio:.1f}",
            f"{(figure.peak_bytes or 0) / MILLION:,.0f}",
        )
    return table
