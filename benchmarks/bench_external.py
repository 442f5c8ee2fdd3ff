"""External histories: from a file to the verdict of ``nemesis check``, beside Porcupine in the same run.

Required (two cores): a million transactions over lists in under 20 s; a million operations on registers in 1,000 keys
in under 10 s, and faster than Porcupine; for compare-and-set registers checking within 1.5 times, and file to verdict
within 3 times, of Porcupine. *File to verdict* is the whole process: start, reading, checking, report. *Checking* is
the part that judges the events, or calls Porcupine's ``CheckOperations``. Kernels and Python's byte code are compiled
before, with a smaller file, as after an installation. Each is the best of ``ROUNDS``, or of three in one process.
Without Go the columns of Porcupine say so.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.table import Table

from benchmarks.figures import MILLION, Figure
from benchmarks.histories.jepsen import write
from benchmarks.measuring import best, made_apart
from benchmarks.porcupine_program import (
    WORKLOADS,
    FileAnswer,
    PorcupineMissing,
    build,
    judge_file,
)
from nemesis.checkers import select_foreign
from nemesis.checkers.checking import check

NAME: Final = "external"
SIZE: Final = MILLION
SMALL: Final = 20_000
"""Operations of the file with which kernels are compiled."""
REQUIRED_S: Final = {"list-append": 20.0, "register": 10.0}
ROUNDS: Final = 4
TIMES_FILE: Final = 3.0
TIMES_CHECK: Final = 1.5
CAS: Final = "cas-register"
MEASURED: Final = ("list-append", "register", CAS)
"""The workloads that are measured."""


@dataclass(frozen=True, slots=True)
class Measured:
    """How long a history took, in seconds."""

    workload: str
    size: int
    file_s: float
    check_s: float
    porcupine: FileAnswer | None
    porcupine_file_s: float | None

    def figures(self) -> list[Figure]:
        """What was measured beside what is required."""
        required_file_s, required_check_s = (
            REQUIRED_S.get(self.workload) if self.size == SIZE else None,
            None,
        )
        if self.workload == CAS and self.porcupine and self.porcupine_file_s:
            required_file_s = TIMES_FILE * self.porcupine_file_s
            required_check_s = TIMES_CHECK * self.porcupine.check_s
        elif self.workload == "register" and self.porcupine and self.porcupine_file_s:
            required_file_s = min(required_file_s or self.porcupine_file_s, self.porcupine_file_s)
            required_check_s = self.porcupine.check_s
        parts = (
            ("file to verdict", self.file_s, required_file_s),
            ("checking", self.check_s, required_check_s),
        )
        return [
            Figure(
                benchmark=NAME,
                what=f"{self.workload} of a file, {part}",
                size=self.size,
                unit="operations",
                seconds=seconds,
                required_s=required_s,
            )
            for part, seconds, required_s in parts
        ]


def main(size: int = SIZE) -> list[Figure]:
    """Measure each workload; print a table, return what it holds."""
    with tempfile.TemporaryDirectory(prefix="nemesis-bench-") as name:
        directory = Path(name)
        try:
            program, why = build(directory), ""
        except PorcupineMissing as missing:
            program, why = None, str(missing)
        measured = [measure(directory, workload, size, program) for workload in MEASURED]
    Console(width=120).print(_table(measured, why))
    return [figure for result in measured for figure in result.figures()]


def measure(directory: Path, workload: str, size: int, program: Path | None) -> Measured:
    """Write the history of a workload, and judge it by both."""
    file, small = directory / f"{workload}.edn", directory / f"{workload}-small.edn"
    made_apart(write, small, workload, SMALL)
    made_apart(write, file, workload, size)
    run_command(small, workload, directory / "small")
    stores = [directory / f"{workload}-{number}" for number in range(ROUNDS)]
    peer = program if workload in WORKLOADS else None
    # In turns: how fast a shared machine is changes from minute to minute.
    times, answers = [], []
    for store in stores:
        times.append(run_command(file, workload, store))
        if peer is not None:
            answers.append(_porcupine(peer, file, workload))
    (history,) = stores[0].glob(f"{workload}/*Z/history")
    check_s = best(lambda: check(history, select_foreign(workload), engine="inline"))
    if not answers:
        return Measured(workload, size, min(times), check_s, None, None)
    answer = min((answer for _, answer in answers), key=lambda answer: answer.check_s)
    peer_s = min(taken for taken, _ in answers)
    return Measured(workload, size, min(times), check_s, answer, peer_s)


def _porcupine(program: Path, file: Path, workload: str) -> tuple[float, FileAnswer]:
    """Return the seconds of Porcupine's whole process, and its answer. Raises RuntimeError if that is wrong."""
    started = time.perf_counter()
    answer = judge_file(program, file, workload)
    taken = time.perf_counter() - started
    if answer.verdict != "ok":
        raise RuntimeError(f"Porcupine says {answer.verdict} of a correct history")
    return taken, answer


def run_command(file: Path, workload: str, store: Path) -> float:
    """Return the seconds of ``nemesis check``; raises RuntimeError if the verdict is not valid."""
    command = [sys.executable, "-m", "nemesis", "check", str(file), "--workload", workload]
    # An installation has byte code; a checkout whose environment forbids it would compile all modules each time.
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": str(file.parent / "bytecode")}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    started = time.perf_counter()
    done = subprocess.run(
        [*command, "--store", str(store)],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
    )
    taken = time.perf_counter() - started
    if done.returncode:
        raise RuntimeError(f"nemesis ended with {done.returncode}: {done.stdout}{done.stderr}")
    return taken


def _table(measured: list[Measured], why: str) -> Table:
    title = "Seconds from file to verdict and of checking alone"
    table = Table(
        *("workload", "M operations", "file to verdict", "checking", "Porcupine: file to verdict"),
        *("checking", "ratio, file", "ratio, checking"),
        title=title,
        caption=f"Porcupine was not measured: {why}" if why else None,
    )
    for result in measured:
        porcupine_times = ["–"] * 4
        if result.porcupine is not None and result.porcupine_file_s is not None:
            porcupine_times = [
                f"{result.porcupine_file_s:.1f} (reading {result.porcupine.read_s:.1f})",
                f"{result.porcupine.check_s:.2f}",
                f"{result.file_s / result.porcupine_file_s:.1f}",
                f"{result.check_s / result.porcupine.check_s:.2f}",
            ]
        table.add_row(
            result.workload,
            f"{result.size / MILLION:g}",
            f"{result.file_s:.1f}",
            f"{result.check_s:.2f}",
            *porcupine_times,
        )
    return table
