"""How long the report takes and how large it is, against a raw pyarrow scan of the columns that it reads.

One generated history; scan and report are each the best of three in the same process.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.generate import write
from benchmarks.measuring import best, scan
from nemesis import reports
from nemesis.checkers import select
from nemesis.checkers.checking import check
from nemesis.history.ingest import ingest
from nemesis.history.reader import open_history
from nemesis.reports.series import COLUMNS

EVENTS = 300_000


def main(events: int = EVENTS) -> None:
    """Generate a history, time scan and report, print a table."""
    with tempfile.TemporaryDirectory(prefix="nemesis-bench-") as store:
        run = write(Path(store), events)
        ingest(run)
        history = open_history(run.history)
        outcome = check(history, select())
        scan_s = best(lambda: scan(history, list(COLUMNS)))
        report_s = best(lambda: reports.write(run, outcome))
        size_mb = run.report_file.stat().st_size / 1e6
    table = Table("pass", "seconds", "ratio to scan", title=f"{history.events:,} events")
    table.add_row("raw pyarrow scan", f"{scan_s:.2f}", "1.0")
    table.add_row("report", f"{report_s:.2f}", f"{report_s / scan_s:.1f}")
    Console(width=100).print(table)
    Console(width=100).print(f"The page has {size_mb:.1f} MB.")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else EVENTS)
