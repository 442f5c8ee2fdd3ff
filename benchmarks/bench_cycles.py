"""Dependency cycles over lists and over registers: how long, reading included, and how much memory.

Required (two cores): 4 million transactions in under 15 s. The histories are correct but for a few write skews at known
places, all of which must be found, under the strictest model, and nothing else. ``scan`` reads the columns that the
check asks for, row group by row group, and does nothing with them. Each pass is the best of ``ROUNDS``.
"""

from __future__ import annotations

import shutil
import tempfile
from functools import partial
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.figures import MILLION, Figure
from benchmarks.histories.transactions import Shape, write
from benchmarks.measuring import best, columns_of, made_apart, scan
from nemesis.checkers.checking import check
from nemesis.checkers.cycles.check import ListAppend, RwRegister, Transactional
from nemesis.checkers.cycles.models import MODELS
from nemesis.checkers.framework.engine import Engine
from nemesis.history.reader import open_history
from nemesis.history.spark import context, stop

NAME = "cycles"
SIZES = (1_000_000, 4_000_000)
REQUIRED_S = 15.0
REQUIRED_OF = 4_000_000
SKEWS = 3
ENGINES: tuple[Engine, ...] = ("inline", "spark")
STRICT = MODELS["strict-serializable"]


def main(*sizes: int) -> list[Figure]:
    """Measure each number of transactions; print a table, return what it holds."""
    figures: list[Figure] = []
    with tempfile.TemporaryDirectory(prefix="nemesis-bench-") as store:
        context()
        for size in sizes or SIZES:
            for lists in (True, False):
                directory = Path(store) / f"{size}-{lists}"
                figures += measure(directory, Shape(size, lists=lists))
                shutil.rmtree(directory)
        stop()
    Console(width=100).print(_table(figures))
    return figures


def measure(directory: Path, shape: Shape) -> list[Figure]:
    """Make the history, read it and check it with both engines."""
    shape = Shape(shape.count, lists=shape.lists, skews=shape.positions(SKEWS))
    made_apart(write, directory, shape)
    history = open_history(directory)
    checker = ListAppend(STRICT) if shape.lists else RwRegister(STRICT)
    columns = columns_of([checker])
    scan_s = best(lambda: scan(history, columns))
    return [
        Figure(
            benchmark=NAME,
            what=f"{checker.name}, {engine}",
            size=shape.count,
            unit="transactions",
            seconds=best(partial(judge, directory, checker, engine)),
            scan_s=scan_s,
            required_s=REQUIRED_S if shape.count == REQUIRED_OF else None,
        )
        for engine in ENGINES
    ]


def judge(directory: Path, checker: Transactional, engine: Engine) -> None:
    """Check the history; every write skew must be found, and nothing else."""
    outcome = check(directory, [checker], engine=engine)
    finding_counts = {
        result.property: result.finding_count for result in outcome.results if result.finding_count
    }
    if finding_counts != {"G2-item": SKEWS}:
        raise RuntimeError(f"{SKEWS} write skews were put in, {finding_counts} found")


def _table(figures: list[Figure]) -> Table:
    title = f"dependency cycles; required: {REQUIRED_OF:,} transactions in {REQUIRED_S:.0f} s"
    table = Table("history", "M transactions", "scan, s", "check, s", "ratio", title=title)
    for figure in figures:
        table.add_row(
            figure.what,
            f"{figure.size / MILLION:g}",
            f"{figure.scan_s:.2f}",
            f"{figure.seconds:.2f}",
            f"{figure.ratio:.1f}",
        )
    return table
