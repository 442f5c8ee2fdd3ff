"""What the benchmarks of checks share: histories made in a process of their own, scans to compare with, best times."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from nemesis.checkers.framework.property import Check
from nemesis.checkers.framework.segment import ALWAYS
from nemesis.history.reader import History
from nemesis.history.row_group import RowGroup
from nemesis.history.schema import SCHEMA
from nemesis.history.spark import run_all

if TYPE_CHECKING:
    from pyspark import SparkContext

ROUNDS: Final = 3


def best(action: Callable[[], object]) -> float:
    """Seconds of the fastest of a few rounds."""
    times = []
    for _ in range(ROUNDS):
        started = time.perf_counter()
        action()
        times.append(time.perf_counter() - started)
    return min(times)


def made_apart(write: Callable[..., object], *arguments: Any) -> None:
    """Make a history in a process of its own, whose memory is not counted and goes with it. Raises RuntimeError."""
    maker = multiprocessing.get_context("spawn").Process(target=write, args=arguments)
    maker.start()
    maker.join()
    if maker.exitcode:
        raise RuntimeError(f"no history was made: the process ended with {maker.exitcode}")


def columns_of(checks: Iterable[Check]) -> list[str]:
    """Return the columns that these checks are given, in the order of the schema."""
    wanted = {*ALWAYS, *(name for check in checks for name in check.columns)}
    return [name for name in SCHEMA.names if name in wanted]


def scan(history: History, columns: Sequence[str], spark: SparkContext | None = None) -> None:
    """Decode these columns, row group by row group, here or in Spark's tasks, and do nothing with them."""
    run_all(spark, partial(_decode, tuple(columns)), history.row_groups)


def _decode(columns: Sequence[str], group: RowGroup) -> int:
    return int(group.read(columns).num_rows)
