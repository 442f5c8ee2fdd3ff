"""How much checking costs beyond reading: all checkers against a raw pyarrow scan of the same Parquet.

Both engines and the scan read the same files in the same process, each best of three, after a first pass
has warmed the page cache and Spark's workers. The scan decodes the columns that the checkers ask for, row
group by row group, on one core; ``ratio`` is a pass's time over the scan's.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.generate import write
from benchmarks.measuring import best, columns_of, scan
from nemesis.checkers import select
from nemesis.checkers.checking import check
from nemesis.history.ingest import ingest
from nemesis.history.reader import open_history
from nemesis.history.spark import context, stop

EVENTS = 300_000


def main(events: int = EVENTS) -> None:
    """Generate a history, time the passes over it, print a table."""
    checks = select()
    columns = columns_of(checks)
    with tempfile.TemporaryDirectory(prefix="nemesis-bench-") as store:
        run = write(Path(store), events)
        raw_bytes = sum(path.stat().st_size for path in run.raw.glob("*.jsonl"))
        inline_ingest_s = ingest(run).seconds
        started = time.perf_counter()
        spark = context()
        start_s = time.perf_counter() - started
        ingest(run, lambda: spark)
        spark_ingest_s = ingest(run, lambda: spark).seconds
        history = open_history(run.history)
        scan_s = best(lambda: scan(history, columns))
        inline_s = best(lambda: check(history, checks, engine="inline"))
        check(history, checks, engine="spark")
        spark_s = best(lambda: check(history, checks, engine="spark"))
        stop()
    rows = [
        ("raw pyarrow scan", scan_s),
        ("check, inline", inline_s),
        ("check, Spark local[2]", spark_s),
        ("ingest, inline", inline_ingest_s),
        ("ingest, Spark local[2]", spark_ingest_s),
    ]
    title = (
        f"{history.events:,} events, {raw_bytes / 1e6:.0f} MB of JSON lines, {len(checks)} checks"
    )
    table = Table("pass", "seconds", "M events/s", "ratio to scan", title=title)
    for name, seconds in rows:
        rate = history.events / seconds / 1e6
        table.add_row(name, f"{seconds:.2f}", f"{rate:.2f}", f"{seconds / scan_s:.1f}")
    Console(width=100).print(table)
    Console(width=100).print(f"Spark's start took {start_s:.1f} s, once per run and in its shadow.")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else EVENTS)
