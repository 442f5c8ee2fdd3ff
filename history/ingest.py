"""From the files that processes wrote during a run to ordered Parquet.

Two steps, each a map over independent parts, by Spark tasks or in this process: sort the pieces of the sources
(``nemesis.history.sorted_pieces``), then merge them into buckets of neighbouring keys (``nemesis.history.buckets``).
A small run is read in this process even if Spark is available: Spark may start meanwhile.

Nothing is dropped or sampled. Damaged lines and missing sources are problems in the manifest; the rest of the history
is ingested. ``history/`` appears under its name only when it is complete (``nemesis.history.drafts``).
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from nemesis.history.buckets import buckets_of, write_bucket
from nemesis.history.drafts import draft_directory, remove_drafts
from nemesis.history.errors import MissingHistoryError
from nemesis.history.manifest import MANIFEST, FileEntry, Manifest
from nemesis.history.raw_sources import RawSources, no_events
from nemesis.history.run_directory import RunDirectory, write_atomically
from nemesis.history.sorted_pieces import parse, pieces_of
from nemesis.history.spark import run_all

if TYPE_CHECKING:
    from pyspark import SparkContext

FEW_BYTES: Final = 64_000_000
"""Raw files that are parsed in less time than Spark takes to start."""

WRITERS: Final = 2
"""Threads that write Parquet files in this process: pyarrow lets go of Python's lock."""

Spark = Callable[[], "SparkContext"]
"""Returns Spark's context when it has started; raises SparkError."""


@dataclass(frozen=True, slots=True)
class IngestReport:
    events: int
    problems: tuple[str, ...]
    seconds: float


def ingest(run: RunDirectory, spark: Spark | None = None) -> IngestReport:
    """Build ``history/`` of a run from its raw files, replacing an earlier one.

    Raises MissingHistoryError when there is nothing to ingest, OSError when the run cannot be
    written, SparkError when Spark cannot start; the earlier history is then still there.
    """
    started = time.monotonic()
    sources = RawSources.of(run)
    if sources.is_empty:
        raise MissingHistoryError(no_events(run))
    tasks = spark() if spark is not None and sources.size_bytes > FEW_BYTES else None
    remove_drafts(run)
    draft = draft_directory(run)
    (draft / "parsed").mkdir(parents=True)
    try:
        manifest = _write_files(draft, sources, tasks)
        if spark is not None:
            spark()
        shutil.rmtree(run.history, ignore_errors=True)
        draft.rename(run.history)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return IngestReport(manifest.events, tuple(manifest.problems), time.monotonic() - started)


def _write_files(draft: Path, sources: RawSources, tasks: SparkContext | None) -> Manifest:
    """Write the events and the manifest into a directory."""
    run = sources.run
    info = run.read_info()
    pieces = pieces_of(
        sources.lines,
        sources.members,
        sources.voters,
        info.controllers or info.brokers,
        sources.broker_logs,
        sources.tables,
    )
    parsed = run_all(tasks, partial(parse, draft / "parsed", info.events_format), pieces)
    buckets = buckets_of(parsed)
    # To write a column that is unset in all rows takes as long as to write another one.
    columns = parsed[0].columns if len(parsed) == 1 else ()
    run_all(tasks, partial(write_bucket, draft, columns), buckets, threads=WRITERS)
    shutil.rmtree(draft / "parsed")
    manifest = Manifest(
        events=sum(bucket.rows for bucket in buckets),
        files=[FileEntry(bucket.name, bucket.rows) for bucket in buckets],
        problems=[*sources.missing(), *(problem for part in parsed for problem in part.problems)],
        sources={str(path.relative_to(run.path)): path.stat().st_size for path in sources.files},
        columns=list(columns),
    )
    write_atomically(draft / MANIFEST, msgspec.json.format(msgspec.json.encode(manifest)))
    return manifest
