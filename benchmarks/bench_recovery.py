"""How long a log of 1 GB takes to open after a kill.

A process of its own writes the log as a leader does, one idempotent producer's batches, and is killed (SIGKILL) with
the last of them in the page cache only. Then ``LogManager`` opens it as a broker that starts does, each time in a new
process. What is walked depends on the checkpoint of recovery points, which a broker writes once a minute:

``no checkpoint``    the worst case: every batch is read and its CRC compared
``at the last roll`` what lies in segments that were rolled was synced, and is not walked

Small batches cost most, so the log is written in batches of 64 kB, of 16 kB and of one record. Required: under 5 s.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from multiprocessing.queues import SimpleQueue
from pathlib import Path
from statistics import median
from uuid import UUID

from rich.console import Console
from rich.table import Table

from nemesis.reference.__main__ import collect_garbage_seldom
from nemesis.reference.adapters.disk import RealDisk
from nemesis.reference.kafka_config import KafkaConfig
from nemesis.reference.log.log_manager import LogManager
from nemesis.reference.model import TopicPartition
from nemesis.workloads.kafka.record_batch import Producer, build

LOG_BYTES = 1_000_000_000
RECORD_BYTES = 1_000
RECORDS_PER_APPEND = 64
ROUNDS = 3
ALLOWED_S = 5.0
KAFKAS_SEGMENT_BYTES = 1 << 30
KEY = TopicPartition("t", 0)
TOPIC_ID = UUID(int=1)

_SPAWN = multiprocessing.get_context("spawn")


@dataclass(frozen=True, slots=True)
class Case:
    """How a log is written, and what is left of it."""

    records_per_batch: int
    segment_bytes: int
    is_checkpointed: bool = False
    """At each roll."""
    is_stopped: bool = False
    """In order, instead of a kill."""


@dataclass(frozen=True, slots=True)
class Opening:
    """Seconds."""

    elapsed: float
    processor: float


CASES = (
    Case(64, KAFKAS_SEGMENT_BYTES),
    Case(16, KAFKAS_SEGMENT_BYTES),
    Case(1, KAFKAS_SEGMENT_BYTES),
    Case(64, 100_000_000),
    Case(64, 100_000_000, is_checkpointed=True),
    Case(1, 100_000_000, is_checkpointed=True),
    Case(64, KAFKAS_SEGMENT_BYTES, is_stopped=True),
)


def main() -> None:
    """Write and open each log, print a table."""
    table = Table(
        "batches of",
        "segments of",
        "stopped by",
        "recovery point",
        "seconds, median",
        "range",
        "of it processor",
        f"under {ALLOWED_S:g} s",
        title=f"one log of {LOG_BYTES / 1e9:g} GB, {ROUNDS} times",
    )
    for case in CASES:
        openings = measure(case)
        took = [opening.elapsed for opening in openings]
        table.add_row(
            f"{case.records_per_batch * RECORD_BYTES / 1e3:g} kB",
            f"{case.segment_bytes / 1e6:,.0f} MB",
            "itself" if case.is_stopped else "a kill",
            "at the last roll" if case.is_checkpointed else "no checkpoint",
            f"{median(took):.2f}",
            f"{min(took):.2f} to {max(took):.2f}",
            f"{median(opening.processor for opening in openings):.2f}",
            "yes" if median(took) < ALLOWED_S else "NO",
        )
    Console(width=120).print(table)


def measure(case: Case) -> list[Opening]:
    """Return what every opening took."""
    with tempfile.TemporaryDirectory(prefix="nemesis-bench-") as directory:
        _in_new_process(_write, Path(directory), case)
        rounds = 1 if case.is_stopped else ROUNDS  # the mark of a clean stop is taken away
        return [_opened(Path(directory), case) for _ in range(rounds)]


def _in_new_process(work: object, *arguments: object) -> None:
    process = _SPAWN.Process(target=work, args=arguments)  # type: ignore[arg-type]
    process.start()
    process.join()
    if process.exitcode not in (0, -signal.SIGKILL):
        raise RuntimeError(f"the process of the benchmark ended with {process.exitcode}")


def _opened(directory: Path, case: Case) -> Opening:
    times = _SPAWN.SimpleQueue()
    _in_new_process(_open, directory, case, times)
    return Opening(*times.get())


def _open(directory: Path, case: Case, times: SimpleQueue[tuple[float, float]]) -> None:
    collect_garbage_seldom()  # as a broker does
    manager = _manager(directory, case)
    started, used = time.perf_counter(), time.process_time()
    manager.load_logs()
    took = time.perf_counter() - started, time.process_time() - used
    log = manager.all_logs()[KEY]
    if log.size_in_bytes < LOG_BYTES or not log.producer_state_manager.active_producers:
        raise RuntimeError(f"{log.size_in_bytes} bytes were found")
    times.put(took)


def _write(directory: Path, case: Case) -> None:
    manager = _manager(directory, case)
    manager.load_logs()
    log = manager.get_or_create_log(KEY, TOPIC_ID, is_new=True)
    batches = _batches(case.records_per_batch)
    while log.size_in_bytes < LOG_BYTES:
        count = len(log.segments)
        log.append_as_leader(
            b"".join(next(batches) for _ in range(RECORDS_PER_APPEND // case.records_per_batch)), 0
        )
        if len(log.segments) > count and case.is_checkpointed:
            manager.checkpoint_recovery_points()
    if case.is_stopped:
        manager.close()
    else:
        os.kill(os.getpid(), signal.SIGKILL)


def _batches(records: int) -> Iterator[bytes]:
    sequence, now_ms = 0, time.time_ns() // 1_000_000
    value = os.urandom(RECORD_BYTES)
    while True:
        yield build([(None, value)] * records, now_ms, Producer(1, 0, sequence))
        sequence += records


def _manager(directory: Path, case: Case) -> LogManager:
    config = KafkaConfig.from_properties(
        {
            "broker.id": 1,
            "listeners": "PLAINTEXT://127.0.0.1:9092",
            "zookeeper.connect": "127.0.0.1:2181",
            "log.dirs": (str(directory),),
            "log.segment.bytes": case.segment_bytes,
        }
    )
    return LogManager(config, RealDisk(), wall_clock=lambda: time.time_ns() // 1_000_000)


if __name__ == "__main__":
    main()
