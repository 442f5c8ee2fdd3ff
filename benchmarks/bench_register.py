"""linearizable-register over one register and over a thousand: how long, reading included, and how much memory.

Required (two cores): 20 million operations on one register in under 10 s. The histories are true but for a few stale
reads at known places, all of which must be found. ``scan`` reads the columns that the check asks for, row group by row
group, and does nothing with them. Each pass is the best of ``ROUNDS``.
"""

from __future__ import annotations

import multiprocessing
import shutil
import tempfile
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.bench_check import best, scan
from benchmarks.histories.registers import Registers, write
from benchmarks.resident_memory import PeakMemory
from checkers.engine import Engine, check
from checkers.linearizable import LinearizableRegister
from checkers.segment import ALWAYS
from history.reader import open_history
from history.schema import SCHEMA
from history.spark import context, stop

SIZES = (2_000_000, 20_000_000)
REQUIRED_S = 10.0
REQUIRED_OF = 20_000_000
STALE = 3
KEYS = 1_000
ENGINES: tuple[Engine, ...] = ("inline", "spark")


@dataclass(frozen=True, slots=True)
class Measured:
    """Seconds and bytes."""

    name: str
    operations: int
    scan_s: float
    check_s: dict[Engine, float]
    peak_bytes: dict[Engine, int]


def main(*sizes: int) -> None:
    """Measure each number of operations, print a table."""
    measured: list[Measured] = []
    with tempfile.TemporaryDirectory(prefix="nemesis-bench-") as store:
        context()
        for size in sizes or SIZES:
            for name, keys in (("one register", 1), (f"{KEYS:,} registers", KEYS)):
                directory = Path(store) / f"{size}-{keys}"
                measured.append(measure(directory, name, Registers(size, keys=keys)))
                shutil.rmtree(directory)
        stop()
    Console(width=120).print(_table(measured))


def measure(directory: Path, name: str, shape: Registers) -> Measured:
    """Make the history, read it and check it with both engines."""
    shape = replace(shape, stale=shape.places(STALE))
    maker = multiprocessing.get_context("spawn").Process(target=write, args=(directory, shape))
    maker.start()
    maker.join()
    history = open_history(directory)
    wanted = {*ALWAYS, *LinearizableRegister.columns}
    columns = [one for one in SCHEMA.names if one in wanted]
    scan_s = best(lambda: scan(history, columns))
    check_s: dict[Engine, float] = {}
    peak_bytes: dict[Engine, int] = {}
    for engine in ENGINES:
        with PeakMemory() as memory:
            check_s[engine] = best(partial(judge, directory, engine))
        peak_bytes[engine] = memory.peak_bytes
    return Measured(name, shape.operations, scan_s, check_s, peak_bytes)


def judge(directory: Path, engine: Engine) -> None:
    """Check the history; every stale read must be found, and nothing else."""
    outcome = check(directory, [LinearizableRegister()], engine=engine)
    (result,) = outcome.results
    if (result.verdict, result.finding_count) != ("invalid", STALE):
        raise RuntimeError(f"{STALE} stale reads were put in, {result.finding_count} found")


def _table(measured: list[Measured]) -> Table:
    title = (
        f"linearizable-register; required: {REQUIRED_OF:,} operations on one in {REQUIRED_S:.0f} s"
    )
    table = Table(
        "history", "M operations", "pass", "seconds", "ratio to scan", "peak MB", title=title
    )
    for one in measured:
        millions = f"{one.operations / 1e6:g}"
        table.add_row(one.name, millions, "raw pyarrow scan", f"{one.scan_s:.2f}", "1.0", "")
        for engine, seconds in one.check_s.items():
            ratio, peak = seconds / one.scan_s, one.peak_bytes[engine] / 1e6
            table.add_row(
                "", "", f"check, {engine}", f"{seconds:.2f}", f"{ratio:.1f}", f"{peak:,.0f}"
            )
    return table
