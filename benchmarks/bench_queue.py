"""The queue anomalies over what clients record of a hundred million records, each sent and read twice.

Required (two cores): 5 million records/s through Spark ``local[2]``, one hot partition included. One history has a
single partition and nothing wrong with it; the other has half of its records in one of a hundred partitions, and an
anomaly of every kind at a known place in that one, each of which must be named.

``scan`` reads the columns that row groups are asked for, in the same Spark tasks, and does nothing with them. Each pass
is the best of ``ROUNDS``, after one over a small history that has started Spark's workers. The histories are made in a
process of their own.
"""

from __future__ import annotations

import multiprocessing
import shutil
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

from benchmarks.histories.anomalies import Anomaly
from benchmarks.histories.client_anomalies import CLIENT_ANOMALIES
from benchmarks.histories.clients import CLIENTS
from benchmarks.histories.generate import write
from benchmarks.histories.shape import Shape
from checkers.engine import check
from checkers.log import ClientLog
from checkers.model import Outcome, Verdict
from history.reader import RowGroup, open_history
from history.spark import context, run_all, stop

if TYPE_CHECKING:
    from pyspark import SparkContext

SIZES = (10_000_000, 100_000_000)
REQUIRED_PER_S = 5_000_000
ROUNDS = 3
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


@dataclass(frozen=True, slots=True)
class Measured:
    name: str
    records: int
    events: int
    scan_s: float
    check_s: float

    @property
    def per_s(self) -> float:
        return self.records / self.check_s


def main(*sizes: int) -> None:
    """Measure each number of records, print a table. Raises AssertionError if a verdict is wrong."""
    measured: list[Measured] = []
    with tempfile.TemporaryDirectory(prefix="nemesis-bench-") as store:
        spark = context()
        measure(Path(store) / "warm-up", "warm-up", Shape(WARM_UP_RECORDS), [], spark)
        for size in sizes or SIZES:
            spread = Shape(size, topics=4, partitions=PARTITIONS // 4, hot_share=0.5)
            for name, shape, anomalies in (
                ("one partition, clean", Shape(size), []),
                (f"{PARTITIONS} partitions, broken", spread, everywhere(size // 2)),
            ):
                place = Path(store) / f"{size}-{name}"
                measured.append(measure(place, name, shape, anomalies, spark))
        stop()
    Console(width=120).print(_table(measured))


def everywhere(records: int) -> list[Anomaly]:
    """An anomaly of each kind, spread over the first partition, which has so many records."""
    step = records // (len(CLIENT_ANOMALIES) + 1)
    return [
        Anomaly(name, 0, number * step + 3) for number, name in enumerate(CLIENT_ANOMALIES, start=1)
    ]


def measure(
    directory: Path, name: str, shape: Shape, anomalies: list[Anomaly], spark: SparkContext
) -> Measured:
    """Make the history, read it and check it, and remove it."""
    arguments = directory, shape, anomalies, [CLIENTS]
    maker = multiprocessing.get_context("spawn").Process(target=write, args=arguments)
    maker.start()
    maker.join()
    history = open_history(directory)
    scan_s = best(lambda: run_all(spark, scan, history.row_groups))
    outcomes: list[Outcome] = []
    check_s = best(lambda: outcomes.append(check(directory, [ClientLog()], engine="spark")))
    _expect(outcomes[-1], shape, anomalies)
    shutil.rmtree(directory)
    return Measured(name, shape.records, history.events, scan_s, check_s)


def _expect(outcome: Outcome, shape: Shape, anomalies: list[Anomaly]) -> None:
    results = {result.property: result for result in outcome.results}
    assert results["lost-write"].checked >= shape.records - len(anomalies)
    for anomaly in anomalies:
        named = CLIENT_ANOMALIES[anomaly.name].property
        assert results[named].findings, f"{anomaly} was not found"
    if not anomalies:
        assert {one.verdict for one in results.values()} == {Verdict.VALID}


def scan(group: RowGroup) -> int:
    return int(group.read(SCANNED).num_rows)


def best(action: Callable[[], object]) -> float:
    """Seconds of the fastest of a few rounds."""
    times = []
    for _ in range(ROUNDS):
        started = time.perf_counter()
        action()
        times.append(time.perf_counter() - started)
    return min(times)


def _table(measured: list[Measured]) -> Table:
    table = Table(title="Queue anomalies, Spark local[2]")
    for column in ("history", "records", "events", "scan s", "check s", "ratio", "M records/s"):
        table.add_column(column, justify="left" if column == "history" else "right")
    for one in measured:
        table.add_row(
            one.name,
            f"{one.records:,}",
            f"{one.events:,}",
            f"{one.scan_s:.2f}",
            f"{one.check_s:.2f}",
            f"{one.check_s / one.scan_s:.1f}",
            f"{one.per_s / 1e6:.2f}",
        )
    table.caption = f"required: {REQUIRED_PER_S / 1e6:.0f} M records/s"
    return table


if __name__ == "__main__":
    main()
