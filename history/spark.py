"""Spark, as histories use it: a context, and one function that maps over items in tasks.

Rows never travel through Spark: a task is told which bytes or row groups to read and reads them
itself with pyarrow, which is four times faster than having Spark hand rows to Python (measured on
two cores).

Starting Spark takes seconds, mostly of the JVM; ``context`` may be called early from a thread, and later callers get
the same one. A session for SQL on top of it would take as long again, and nobody here speaks SQL. What a cluster of
other machines needs is in ``nemesis.history.spark_cluster``.
"""

from __future__ import annotations

import os
import sys
import tempfile
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Generic, TypeVar

from nemesis.history import class_archive, interruptible, spark_cluster
from nemesis.history.errors import HistoryError, SparkError
from nemesis.history.freed_memory import keep_freed_memory
from nemesis.history.java_locale import java_locale
from nemesis.history.spark_cluster import is_local

if TYPE_CHECKING:
    import psutil
    from pyspark import SparkContext

Item = TypeVar("Item")
Answer = TypeVar("Answer")

DEFAULT_MASTER: Final = "local[2]"
DRIVER_MEMORY: Final = "1g"
EXECUTOR_MEMORY: Final = "512m"
"""Of a worker's JVM, through which only tasks and summaries pass; what tasks read is Python's."""
PYTHON_OF_WORKERS: Final = "PYSPARK_PYTHON"
DAEMON_OF_WORKERS: Final = "nemesis.history.worker_daemon"
JVM_OPTIONS: Final = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
"""Of our own JVM, which hands out tasks and passes their answers on: never enough for the second compiler to pay, nor
for several threads that collect garbage.
"""
JVM_MARKER: Final = "_PYSPARK_DRIVER_CONN_INFO_PATH"
"""The variable that PySpark gives its JVM, which passes it on to the Python workers."""
KILL_TIMEOUT_S: Final = 5.0
KILL_ATTEMPTS: Final = 3
_lock = threading.Lock()
_running: list[SparkContext] = []
"""The one context, if it was started."""


def context(
    master: str | None = None, *, java_options: Sequence[str] | None = None
) -> SparkContext:
    """Return the process's Spark context, starting it if there is none. Safe to call from any
    thread. ``java_options`` are for its JVM, in the place of those that let it start fast.

    Once a context runs, it is returned whatever ``master`` says: a process has one. Raises
    SparkError when Spark cannot start (no Java, an unreachable master) or no worker can run our tasks.
    """
    return interruptible.call(_context, master or DEFAULT_MASTER, java_options)


def _context(master: str, java_options: Sequence[str] | None) -> SparkContext:
    with _lock:
        if not _running:
            chosen = class_archive.options() if java_options is None else java_options
            _running.append(_started(master, chosen))
        return _running[0]


def stop() -> None:
    """End the context, if there is one. Use this and not ``SparkContext.stop``, which we do not see."""
    with _lock:
        while _running:
            _running.pop().stop()


def kill() -> None:
    """Kill Spark's processes, those of a start that is under way too; returns when they are gone.

    For a process that was interrupted and ends: Spark cannot be used afterwards.
    """
    import psutil  # checks without Spark do not need it

    for _ in range(KILL_ATTEMPTS):  # a process may be forked while its parent is killed
        children = psutil.Process().children(recursive=True)
        if not (processes := [child for child in children if _is_sparks(child)]):
            return
        for process in processes:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        psutil.wait_procs(processes, timeout=KILL_TIMEOUT_S)


def _is_sparks(process: psutil.Process) -> bool:
    import psutil

    try:
        return process.status() != psutil.STATUS_ZOMBIE and JVM_MARKER in process.environ()
    except psutil.Error:
        return False


def _started(master: str, java_options: Sequence[str]) -> SparkContext:
    # Workers must run in this virtual environment, whatever the PATH says; other machines may have theirs elsewhere.
    if is_local(master):
        os.environ[PYTHON_OF_WORKERS] = sys.executable
    else:
        os.environ.setdefault(PYTHON_OF_WORKERS, sys.executable)
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    spark = _start(master, java_options)
    if not is_local(master):
        try:
            spark_cluster.prepare(spark)
        except BaseException:
            spark.stop()
            raise
    return spark


def _start(master: str, java_options: Sequence[str]) -> SparkContext:
    from pyspark import SparkConf, SparkContext
    from pyspark.java_gateway import launch_gateway

    settings = {
        "spark.app.name": "nemesis",
        "spark.master": master,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.memory": DRIVER_MEMORY,
        "spark.driver.extraJavaOptions": " ".join(
            f'"{option}"' for option in (*JVM_OPTIONS, *java_options)
        ),
        "spark.executor.memory": EXECUTOR_MEMORY,
        # Said in either case: a JVM remembers what an earlier context was told.
        "spark.python.daemon.module": DAEMON_OF_WORKERS if is_local(master) else "pyspark.daemon",
    }
    address = "127.0.0.1" if is_local(master) else spark_cluster.driver_address(master)
    if address is not None:
        settings |= {"spark.driver.host": address, "spark.driver.bindAddress": address}
    conf = SparkConf(loadDefaults=False)
    for name, value in settings.items():
        conf.set(name, value)
    # The JVM greets on stderr, where a run shows its progress; what it says matters only when it fails.
    with tempfile.TemporaryFile() as jvm_stderr:
        try:
            # PySpark keeps the JVM of an earlier context, and mixes two of them up.
            with java_locale():
                gateway = SparkContext._gateway or launch_gateway(  # noqa: SLF001
                    conf, popen_kwargs={"stderr": jvm_stderr}
                )
            started = SparkContext(
                gateway=gateway, conf=SparkConf(_jvm=gateway.jvm).setAll(settings.items())
            )
        except Exception as error:
            jvm_stderr.seek(0)
            words = jvm_stderr.read().decode(errors="replace").split("\n")
            said = [line.strip() for line in words if line.strip()]
            telling = [line for line in said if "rror" in line or "xception" in line] or said[-1:]
            reason = telling[0] if telling else " ".join(str(error).split())
            raise SparkError(f"Spark cannot start with master {master}: {reason[:300]}") from error
    started.setLogLevel("ERROR")
    return started


def run_all(
    spark: SparkContext | None,
    function: Callable[[Item], Answer],
    items: Sequence[Item],
    threads: int = 1,
) -> list[Answer]:
    """Return ``[function(item) for item in items]``, computed by Spark tasks, or here without
    Spark, in this number of threads.

    The function and the items must be picklable. A HistoryError in a task is raised here as itself,
    the first in the order of the items. Raises SparkError when a cluster fails.
    """
    if not items:
        return []
    if spark is None:
        keep_freed_memory()
        if min(threads, len(items)) == 1:
            return [function(item) for item in items]
        with ThreadPoolExecutor(threads) as workers:
            return list(workers.map(function, items))
    return interruptible.call(_run_on, spark, function, items)


def _run_on(
    spark: SparkContext, function: Callable[[Item], Answer], items: Sequence[Item]
) -> list[Answer]:
    slices = min(len(items), 8 * spark.defaultParallelism)
    job = spark.parallelize(list(items), slices).map(_Guarded(function))
    if is_local(spark.master):
        answers = job.collect()
    else:
        with spark_cluster.patience(spark):
            answers = job.collect()
    for answer in answers:
        if isinstance(answer, HistoryError):
            raise answer
    return list(answers)


@dataclass(frozen=True)
class _Guarded(Generic[Item, Answer]):
    """Carries our own errors home as values: Spark would wrap them in pages of Java."""

    function: Callable[[Item], Answer]

    def __call__(self, item: Item) -> Answer | HistoryError:
        keep_freed_memory()
        try:
            return self.function(item)
        except HistoryError as error:
            return error
