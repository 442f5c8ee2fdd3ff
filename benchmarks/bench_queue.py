"""The queue anomalies over what clients record of a hundred million records, each sent and read twice.

Required (two cores): 5 million records/s through Spark ``local[2]``, one hot partition included. One history has a
single partition and nothing wrong with it; the other has half of its records in one of a hundred partitions, and an
anomaly of every kind at a known place in that one, each of which must be named.

``scan`` reads the columns that row groups are asked for, in the same Spark tasks, and does nothing with them. Each pass
is the best of ``ROUNDS``, after one over a small history that has started Spark's workers. The histories are made in a
process of their own.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

from benchmarks.figures import MILLION, Figure
from benchmarks.histories.anomalies import Anomaly
from benchmarks.histories.client_anomalies import CLIENT_ANOMALIES, NEEDS_TRACES
from benchmarks.histories.clients import CLIENTS
from benchmarks.histories.generate import write
from benchmarks.histories.shape import Shape
from benchmarks.measuring import best, made_apart, scan
from nemesis.checkers.checking import check
from nemesis.checkers.framework.model import Outcome, Verdict
from nemesis.checkers.log import ClientLog
from nemesis.history.reader import open_history
from nemesis.history.spark import context, stop

if TYPE_CHECKING:
    from pyspark import SparkContext

NAME = "queue"
SIZES = (10_000_000, 100_000_000)
REQUIRED_PER_S = 5_000_000
REQUIRED_RECORDS = 100_000_000
"""The rate is required from here on: a small history takes the time that it takes to begin."""
WARM_UP_RECORDS = 200_000
PARTITIONS = 100
SCANNED = (
    "time",
    "process",
    "kind",
    "op",
    "f",
    "value",
    "values",
    "offsets",
    "acks",
    "topic",
    "partition",
    "offset",
    "high_watermark",
)


def main(*sizes: int) -> list[Figure]:
    """Measure each number of records; print a table, return what it holds. Raises AssertionError for a wrong one."""
    figures: list[Figure] = []
    with tempfile.TemporaryDirectory(prefix="nemesis-bench-") as store:
        spark = context()
        measure(Path(store) / "warm-up", "warm-up", Shape(WARM_UP_RECORDS), [], spark)
        for size in sizes or SIZES:
            spread = Shape(size, topics=4, partitions=PARTITIONS // 4, hot_share=0.5)
            for name, shape, anomalies in (
                ("one partition, clean", Shape(size), []),
                (f"{PARTITIONS} partitions, broken", spread, everywhere(size // 2)),
            ):
                directory = Path(store) / f"{size}-{name}"
                figures.append(measure(directory, name, shape, anomalies, spark))
        stop()
    Console(width=120).print(_table(figures))
    return figures


def everywhere(records: int) -> list[Anomaly]:
    """An anomaly of each kind that clients alone show, spread over the first partition, which has so many records."""
    names = [name for name in CLIENT_ANOMALIES if name not in NEEDS_TRACES]
    step = records // (len(names) + 1)
    return [Anomaly(name, 0, number * step + 3) for number, name in enumerate(names, start=1)]


def measure(
    directory: Path, name: str, shape: Shape, anomalies: list[Anomaly], spark: SparkContext
) -> Figure:
    """Make the history, read it and check it, and remove it."""
    made_apart(write, directory, shape, anomalies, [CLIENTS])
    history = open_history(directory)
    scan_s = best(lambda: scan(history, SCANNED, spark))
    outcomes: list[Outcome] = []
    check_s = best(lambda: outcomes.append(check(directory, [ClientLog()], engine="spark")))
    _expect(outcomes[-1], shape, anomalies)
    shutil.rmtree(directory)
    return Figure(
        benchmark=NAME,
        what=f"queue anomalies, {name}",
        size=shape.records,
        unit="records",
        seconds=check_s,
        scan_s=scan_s,
        required_per_s=REQUIRED_PER_S if shape.records >= REQUIRED_RECORDS else None,
    )


def _expect(outcome: Outcome, shape: Shape, anomalies: list[Anomaly]) -> None:
    results = {result.property: result for result in outcome.results}
    assert results["lost-write"].checked >= shape.records - len(anomalies)
    for anomaly in anomalies:
        named = CLIENT_ANOMALIES[anomaly.name].property
        assert results[named].findings, f"{anomaly} was not found"
    if not anomalies:
        assert {result.verdict for result in results.values()} == {Verdict.VALID}


def _table(figures: list[Figure]) -> Table:
    table = Table(title="Queue anomalies, Spark local[2]")
    for column in ("history", "records", "scan s", "check s", "ratio", "M records/s"):
        table.add_column(column, justify="left" if column == "history" else "right")
    for figure in figures:
        table.add_row(
            figure.what,
            f"{figure.size:,}",
            f"{figure.scan_s:.2f}",
            f"{figure.seconds:.2f}",
            f"{figure.ratio:.1f}",
            f"{figure.size / figure.seconds / MILLION:.2f}",
        )
    table.caption = f"required: {REQUIRED_PER_S / MILLION:.0f} M/s of {REQUIRED_RECORDS / MILLION:.0f} M or more"
    return table


if __name__ == "__main__":
    main()
