"""The core invariants together, over histories of any size: all events in one partition, and spread over many.

Required (two cores): 10 million events/s through Spark ``local[2]`` of 100 million events, less than 4 GB in all
processes together, a time that grows with the size. The histories hold what brokers trace of records, which is what
these checks look at; what clients do would only be passed over. They are made in a process of their own, whose memory
is not counted.

``scan`` reads the columns that most row groups are asked for, in the same Spark tasks, and does nothing with them.
Each pass is the best of ``ROUNDS``, after one over a small history that has started Spark's workers.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

from benchmarks.figures import GIGABYTE, MILLION, Figure
from benchmarks.histories import brokers
from benchmarks.histories.generate import write
from benchmarks.histories.shape import Shape
from benchmarks.measuring import best, made_apart, scan
from benchmarks.resident_memory import PeakMemory
from nemesis.checkers import select
from nemesis.checkers.checking import check
from nemesis.checkers.framework.model import Verdict
from nemesis.history.reader import open_history
from nemesis.history.spark import context, stop

if TYPE_CHECKING:
    from pyspark import SparkContext

NAME = "core"
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
REQUIRED_EVENTS = 100_000_000
"""The rate is required from here on: a small history takes the time that it takes to begin."""
ALLOWED_BYTES = 4_000_000_000
WARM_UP_EVENTS = 300_000
PARTITIONS = 100
TOPICS = 4
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


def main(*sizes: int) -> list[Figure]:
    """Measure each size, hot and spread; print a table, return what it holds."""
    figures: list[Figure] = []
    with tempfile.TemporaryDirectory(prefix="nemesis-bench-") as store:
        spark = context()
        measure(Path(store) / "warm-up", "warm-up", WARM_UP_EVENTS, spark)
        for size in sizes or SIZES:
            for name, partitions in (
                ("one partition", 1),
                (f"{PARTITIONS} partitions", PARTITIONS),
            ):
                directory = Path(store) / f"{size}-{partitions}"
                figures.append(measure(directory, name, size, spark, partitions=partitions))
        stop()
    Console(width=120).print(_table(figures))
    return figures


def measure(
    directory: Path, name: str, events: int, spark: SparkContext, *, partitions: int = 1
) -> Figure:
    """Make a history of about so many events, read it and check it, and remove it."""
    records = round(events / brokers.events_per_record(3))
    topics = 1 if partitions == 1 else TOPICS
    made_apart(write, directory, Shape(records, topics=topics, partitions=partitions // topics))
    history = open_history(directory)
    scan_s = best(lambda: scan(history, SCANNED, spark))
    with PeakMemory() as memory:
        check_s = best(lambda: judge(directory))
    shutil.rmtree(directory)
    return Figure(
        benchmark=NAME,
        what=f"core invariants, {name}",
        size=events,
        unit="events",
        seconds=check_s,
        scan_s=scan_s,
        required_per_s=REQUIRED_PER_S if events >= REQUIRED_EVENTS else None,
        peak_bytes=memory.peak_bytes,
        allowed_bytes=ALLOWED_BYTES,
    )


def judge(directory: Path) -> None:
    """Check the history, its opening included; anything but ``valid`` would be an error of the benchmark."""
    outcome = check(directory, select(CORE), engine="spark")
    if outcome.verdict is not Verdict.VALID:
        raise RuntimeError(f"a correct history is {outcome.verdict}: {outcome.broken()[:1]}")


def _table(figures: Sequence[Figure]) -> Table:
    table = Table(
        "events",
        "in",
        "scan, s",
        "check, s",
        "M events/s",
        "ratio to scan",
        "most memory",
        "as required",
        title=f"{len(CORE)} core invariants, Spark local[2]",
    )
    table.caption = (
        f"required: {REQUIRED_PER_S / MILLION:.0f} M/s of {REQUIRED_EVENTS / MILLION:.0f} M events or more, "
        f"under {ALLOWED_BYTES / GIGABYTE:.0f} GB"
    )
    for figure in figures:
        table.add_row(
            f"{figure.size:,}",
            figure.what,
            f"{figure.scan_s:.2f}",
            f"{figure.seconds:.2f}",
            f"{figure.size / figure.seconds / MILLION:.1f}",
            f"{figure.ratio:.2f}",
            f"{(figure.peak_bytes or 0) / GIGABYTE:.2f} GB",
            "yes" if figure.is_met else "NO",
        )
    return table


if __name__ == "__main__":
    main()
