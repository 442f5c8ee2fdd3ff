"""Dependency cycles over lists and over registers: how long, reading included, and how much memory.

Required (two cores): 4 million transactions in under 15 s. The histories are correct but for a few write skews at known
places, all of which must be found, under the strictest model, and nothing else. ``scan`` reads the columns that the
check asks for, row group by row group, and does nothing with them. Each pass is the best of ``ROUNDS``.
"""

from __future__ import annotations

import multiprocessing
import shutil
import sys
import tempfile
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.bench_check import best, scan
from benchmarks.histories.transactions import Shape, write
from checkers.cycles import MODELS, ListAppend, RwRegister
from checkers.cycles.check import Transactional
from checkers.engine import Engine, check
from checkers.segment import ALWAYS
from history.reader import open_history
from history.schema import SCHEMA
from history.spark import context, stop

SIZES = (1_000_000, 4_000_000)
REQUIRED_S = 15.0
REQUIRED_OF = 4_000_000
SKEWS = 3
STRICT = MODELS["strict-serializable"]


@dataclass(frozen=True, slots=True)
class Measured:
    """Seconds."""

    name: str
    transactions: int
    rows: int
    scan_s: float
    check_s: dict[Engine, float]


def main(*sizes: int) -> None:
    """Measure each number of transactions, print a table."""
    measured: list[Measured] = []
    with tempfile.TemporaryDirectory(prefix="nemesis-bench-") as store:
        context()
        for size in sizes or SIZES:
            for lists in (True, False):
                directory = Path(store) / f"{size}-{lists}"
                measured.append(measure(directory, Shape(size, lists=lists)))
                shutil.rmtree(directory)
        stop()
    Console(width=100).print(_table(measured))


def measure(directory: Path, shape: Shape) -> Measured:
    """Make the history, read it and check it with both engines."""
    shape = Shape(shape.count, lists=shape.lists, skews=shape.places(SKEWS))
    maker = multiprocessing.get_context("spawn").Process(target=write, args=(directory, shape))
    maker.start()
    maker.join()
    history = open_history(directory)
    checker = ListAppend(STRICT) if shape.lists else RwRegister(STRICT)
    wanted = {*ALWAYS, *checker.columns}
    columns = [name for name in SCHEMA.names if name in wanted]
    scan_s = best(lambda: scan(history, columns))
    engines: tuple[Engine, ...] = ("inline", "spark")
    check_s = {}
    for engine in engines:
        check_s[engine] = best(partial(judge, directory, checker, engine))
    return Measured(checker.name, shape.count, history.events, scan_s, check_s)


def judge(directory: Path, checker: Transactional, engine: Engine) -> None:
    """Check the history; every write skew must be found, and nothing else."""
    outcome = check(directory, [checker], engine=engine)
    found = {one.property: one.finding_count for one in outcome.results if one.finding_count}
    if found != {"G2-item": SKEWS}:
        raise RuntimeError(f"{SKEWS} write skews were put in, {found} found")


def _table(measured: list[Measured]) -> Table:
    title = f"dependency cycles; required: {REQUIRED_OF:,} transactions in {REQUIRED_S:.0f} s"
    table = Table("history", "M transactions", "pass", "seconds", "ratio to scan", title=title)
    for one in measured:
        millions = f"{one.transactions / 1e6:g}"
        table.add_row(one.name, millions, "raw pyarrow scan", f"{one.scan_s:.2f}", "1.0")
        for engine, seconds in one.check_s.items():
            table.add_row(
                "", "", f"check, {engine}", f"{seconds:.2f}", f"{seconds / one.scan_s:.1f}"
            )
    return table


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
