"""What a page shows of a history. No verdict changes it, so it can be read while the checks still run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from nemesis.checkers.framework.segment import Segment
from nemesis.history.reader import History, open_history
from nemesis.reports import clients, figures, series
from nemesis.reports.charts.panel import Chart


@dataclass(frozen=True, slots=True)
class Shown:
    """The events that a page counts and draws."""

    history: History
    rows: Segment
    run: series.RunSeries
    operations: Mapping[str, clients.Operations]
    rates: Mapping[str, Chart | None]
    """The chart of each function's operations."""


def read(history: Path) -> Shown:
    """Return what a page shows of an ingested history. Raises HistoryError when it cannot be read."""
    opened = open_history(history)
    rows = series.read(opened)
    run = series.extract(rows)
    operations = clients.operations(rows, run.origin_ns)
    rates = {
        name: figures.operations(name, calls, run.duration_s) for name, calls in operations.items()
    }
    return Shown(opened, rows, run, operations, rates)
