"""A run of a minute, checked and reported from its raw files by the command line: start of Python and Spark included.

Required: less than 15 s. The history has about as many events as 60 s of a local cluster under the default workload
leave; ``nemesis check`` ingests it, runs every check, writes results and report.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.figures import Figure
from benchmarks.generate import write
from nemesis.history.run_directory import RunDirectory

NAME = "small"
EVENTS = 60_000
ALLOWED_S = 15.0
ROUNDS = 3
NOT_BROKEN = (0, 2)
"""Exit codes: no faults struck, so that what speaks of them saw nothing."""


def main(events: int = EVENTS) -> list[Figure]:
    """Time the command with either engine; print a table, return what it holds."""
    figures = []
    table = Table(
        "engine", "seconds, median", f"under {ALLOWED_S:.0f} s", title=f"about {events:,} events"
    )
    for engine in ("spark", "inline"):
        with tempfile.TemporaryDirectory(prefix="nemesis-bench-") as store:
            times = sorted(
                seconds(write(Path(store) / str(number), events), engine)
                for number in range(ROUNDS)
            )
        figure = Figure(
            benchmark=NAME,
            what=f"checked and reported, {engine}",
            size=events,
            unit="events",
            seconds=times[ROUNDS // 2],
            required_s=ALLOWED_S,
        )
        table.add_row(engine, f"{figure.seconds:.1f}", "yes" if figure.is_met else "NO")
        figures.append(figure)
    Console(width=100).print(table)
    return figures


def seconds(run: RunDirectory, engine: str) -> float:
    """How long ``nemesis check`` takes; raises RuntimeError if it does not leave a report."""
    command = [sys.executable, "-m", "nemesis", "check", str(run.path), "--engine", engine]
    started = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    taken = time.perf_counter() - started
    if done.returncode not in NOT_BROKEN or not run.report_file.exists():
        raise RuntimeError(f"{' '.join(command)} ended with {done.returncode}: {done.stderr}")
    return taken
