"""The core invariants together, over histories of any size: all events in one partition, and spread over many.

Required (two cores): 10 million events/s through Spark ``local[2]``, less than 4 GB in all processes together, a time
that grows with the size. The histories hold what brokers trace of records, which is what these checks look at; what
clients do would only be passed over. They are made in a process of their own, whose memory is not counted.

``scan`` reads the columns that most row groups are asked for, in the same Spark tasks, and does nothing with them.
Each pass is the best of ``ROUNDS``, after one over a small history that has started Spark's workers.
"""

from __future__ import annotations

import multiprocessing
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

from benchmarks.histories import brokers
from benchmarks.histories.generate import write
from benchmarks.histories.shape import Shape
from benchmarks.resident_memory import PeakMemory
from checkers import select
from checkers.engine import check
from checkers.model import Verdict
from history.reader import RowGroup, open_history
from history.spark import context, run_all, stop

if TYPE_CHECKING:
    from pyspark import SparkContext

CORE = (
    "single-controller",
    "controller-epoch-grows",
    "stale-controller-fenced",
    "broker-epoch-fenced",
    "leader-epoch-grows",
    "one-leader-per-epoch",
    "leader-from-isr",
    "legal-transition",
    "hw-bounded",
    "hw-grows",
)
SIZES = (10_000_000, 100_000_000)
REQUIRED_PER_S = 10_000_000
ALLOWED_BYTES = 4_000_000_000
ROUNDS = 3
WARM_UP_EVENTS = 300_000
PARTITIONS = 100
SCANNED = (
    "kind",
    "topic",
    "topic_id",
    "partition",
    "node",
    "incarnation",
    "role",
    "leader_epoch",
    "high_watermark",
    "log_end_offset",
    "maximal_isr",
)


@dataclass(frozen=True, slots=True)
class Measured:
    """Seconds and bytes."""

    name: str
    events: int
    scan_s: float
    check_s: float
    peak_bytes: int

    @property
    def per_s(self) -> float:
        return self.events / self.check_s


def main(*sizes: int) -> None:
    """Measure each size, hot and spread, print a table."""
    measured: list[Measured] = []
    with tempfile.TemporaryDirectory(prefix="nemesis-bench-") as store:
        spark = context()
        measure(Path(store) / "warm-up", "warm-up", Shape(_records(WARM_UP_EVENTS)), spark)
        for size in sizes or SIZES:
            records = _records(size)
            for name, shape in (
                ("one partition", Shape(records)),
                (f"{PARTITIONS} partitions", Shape(records, topics=4, partitions=PARTITIONS // 4)),
            ):
                measured.append(measure(Path(store) / f"{size}-{name}", name, shape, spark))
        stop()
    Console(width=120).print(_table(measured))


def _records(events: int) -> int:
    return round(events / brokers.events_per_record(3))


def measure(directory: Path, name: str, shape: Shape, spark: SparkContext) -> Measured:
    """Make the history, read it and check it, and remove it."""
    maker = multiprocessing.get_context("spawn").Process(target=write, args=(directory, shape))
    maker.start()
    maker.join()
    history = open_history(directory)
    scan_s = best(lambda: run_all(spark, scan, history.row_groups))
    with PeakMemory() as memory:
        check_s = best(lambda: judge(directory))
    for path in directory.iterdir():
        path.unlink()
    return Measured(name, history.events, scan_s, check_s, memory.peak_bytes)


def judge(directory: Path) -> None:
    """Check the history, its opening included; anything but ``valid`` would be an error of the benchmark."""
    outcome = check(directory, select(CORE), engine="spark")
    if outcome.verdict is not Verdict.VALID:
        raise RuntimeError(f"a correct history is {outcome.verdict}: {outcome.broken()[:1]}")


def scan(group: RowGroup) -> int:
    """Decode the columns that the checks decode of most row groups."""
    return int(group.read(SCANNED).num_rows)


def best(action: Callable[[], object]) -> float:
    """Seconds of the fastest of a few rounds."""
    times = []
    for _ in range(ROUNDS):
        started = time.perf_counter()
        action()
        times.append(time.perf_counter() - started)
    return min(times)


def _table(measured: Sequence[Measured]) -> Table:
    table = Table(
        "events",
        "in",
        "scan, s",
        "check, s",
        "M events/s",
        "ratio to scan",
        "most memory",
        f"{REQUIRED_PER_S / 1e6:.0f} M/s",
        f"under {ALLOWED_BYTES / 1e9:.0f} GB",
        title=f"{len(CORE)} core invariants, Spark local[2]",
    )
    for one in measured:
        table.add_row(
            f"{one.events:,}",
            one.name,
            f"{one.scan_s:.2f}",
            f"{one.check_s:.2f}",
            f"{one.per_s / 1e6:.1f}",
            f"{one.check_s / one.scan_s:.2f}",
            f"{one.peak_bytes / 1e9:.2f} GB",
            "yes" if one.per_s >= REQUIRED_PER_S else "NO",
            "yes" if one.peak_bytes < ALLOWED_BYTES else "NO",
        )
    return table


if __name__ == "__main__":
    main()
