"""Spark's early start: context, Python workers and the checkers' imports, beside the end of a run or its ingestion.

Together they take seconds that would otherwise be added to the checks'. Workers are used again, so what
one task has imported is there for the next.
"""

from __future__ import annotations

import threading
from contextlib import suppress

from nemesis.checkers.framework import engine
from nemesis.history import spark, spark_cluster
from nemesis.history.errors import SparkError


def warm_spark(master: str | None) -> threading.Thread:
    """Start in the background; a failure shows when the checks start Spark again."""
    thread = threading.Thread(target=_warm, args=(master,), name="spark", daemon=True)
    thread.start()
    return thread


def _warm(master: str | None) -> None:
    with suppress(SparkError):
        context = spark.context(master)
        # Machines of a real cluster do not have this module, and their workers are not ours to warm.
        if spark_cluster.is_local(context.master):
            spark.run_all(context, touch, range(context.defaultParallelism))


def touch(number: int) -> tuple[int, str, str]:
    """What a task does to have everything imported."""
    from nemesis.history import ingest  # this process needs it only if there are raw files

    return number, engine.__name__, ingest.__name__
