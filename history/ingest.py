"""From the files that processes wrote during a run to ordered Parquet.

Two steps, each a map over independent pieces, by Spark tasks or in this process:

1. *parse*: each piece of a source (16 MiB of JSON lines, or all transaction logs of ZooKeeper)
   becomes an Arrow file of sorted rows. The driver learns only how many rows each (topic,
   partition) has in it.
2. *merge*: neighbouring keys make a bucket of about 128 Ki rows, a hot partition one of its own.
   Because every parsed file is sorted, a bucket's rows are one slice of each; a task maps the
   slices into memory, sorts them together and writes one Parquet file.

Few raw files are read in this process even if there are to be tasks: Spark may start meanwhile.

Nothing is dropped or sampled, but for a torn last line: a process that was killed while writing had
not yet shown anybody the effect. Any other line that is not an event is a *problem*, as is a broker
without a file and a run without ZooKeeper's log; the rest of the history is still ingested.

The result appears under its name only when it is whole, and so does every file of it: a cluster may run a
task twice, even at the same time. Limits: one partition's events must fit into memory.
"""

from __future__ import annotations

import os
import shutil
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from socket import gethostname
from typing import TYPE_CHECKING, Final

import msgspec
import numpy as np
import psutil
import pyarrow as pa

from nemesis.history import raw_lines
from nemesis.history.encoding import EventsFile, row_groups
from nemesis.history.errors import HistoryError, MissingHistoryError
from nemesis.history.reader import (
    MANIFEST,
    FileEntry,
    History,
    Manifest,
    open_history,
    read_manifest,
)
from nemesis.history.run_directory import RunDirectory, write_atomically
from nemesis.history.schema import SCHEMA, ordered, table
from nemesis.history.spark import run_all
from nemesis.history.znodes import PROCESS, ZnodeEvents
from nemesis.history.zookeeper_ensemble import merge
from nemesis.history.zookeeper_log import read_log

if TYPE_CHECKING:
    from pyspark import SparkContext

BUCKET_ROWS: Final = 128 * 1024
FEW_BYTES: Final = 64_000_000
"""Raw files that are parsed in less time than Spark takes to start."""
DRAFT: Final = ".history-"
"""Followed by the number of the process that writes it."""

Spark = Callable[[], "SparkContext"]
"""Returns Spark's context when it has started; raises SparkError."""
TopicPartitionKey = tuple[str, int]
"""Topic ("" when unset) and partition (−1 when unset): sorts as ``nemesis.history.schema`` orders rows."""


@dataclass(frozen=True, slots=True)
class IngestReport:
    events: int
    problems: tuple[str, ...]
    seconds: float


@dataclass(frozen=True, slots=True)
class Piece:
    """Work for one parsing task: a byte range of a file of lines, or the members' transaction logs."""

    number: int
    lines: raw_lines.ByteRange | None
    zookeeper: tuple[Path, ...] = ()


@dataclass(frozen=True, slots=True)
class Parsed:
    """A sorted Arrow file; ``runs``: how many rows it has of each key, in order."""

    path: Path
    runs: list[tuple[TopicPartitionKey, int]]
    problems: list[str]


@dataclass(frozen=True, slots=True)
class Bucket:
    """Work for one merging task: a slice (start, stop) of each parsed file that has rows of the
    bucket.
    """

    name: str
    slices: list[tuple[Path, int, int]]
    rows: int


def ingest(run: RunDirectory, spark: Spark | None = None) -> IngestReport:
    """Build ``history/`` of a run from its raw files, replacing an earlier one.

    Raises MissingHistoryError when there is nothing to ingest, OSError when the run cannot be
    written, SparkError when Spark cannot start; then the earlier one is still there.
    """
    started = time.monotonic()
    sources = sorted(run.raw.glob("*.jsonl"))
    members = tuple(sorted(run.zookeeper.glob("*/version-2")))
    if not _has_sources(run):
        raise MissingHistoryError(_nothing(run))
    pieces = _pieces(sources, members)
    tasks = spark() if spark is not None and _size(sources, members) > FEW_BYTES else None
    _remove_drafts(run)
    work = run.path / f"{DRAFT}{os.getpid()}"
    (work / "parsed").mkdir(parents=True)
    try:
        parsed = run_all(
            tasks, partial(_parse, work / "parsed", run.read_info().events_format), pieces
        )
        buckets = _buckets(parsed)
        run_all(tasks, partial(_merge, work), buckets)
        shutil.rmtree(work / "parsed")
        problems = _missing_sources(run, sources, members)
        problems += [problem for part in parsed for problem in part.problems]
        manifest = Manifest(
            events=sum(bucket.rows for bucket in buckets),
            files=[FileEntry(bucket.name, bucket.rows) for bucket in buckets],
            problems=problems,
            sources={str(path.relative_to(run.path)): path.stat().st_size for path in sources},
        )
        write_atomically(work / MANIFEST, msgspec.json.format(msgspec.json.encode(manifest)))
        if spark is not None:
            spark()
        shutil.rmtree(run.history, ignore_errors=True)
        work.rename(run.history)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return IngestReport(manifest.events, tuple(problems), time.monotonic() - started)


def _remove_drafts(run: RunDirectory) -> None:
    """Remove what processes have left that were killed while they ingested; another may be at it right now."""
    for draft in run.path.glob(f"{DRAFT}*"):
        owner = draft.name.removeprefix(DRAFT)
        is_own = owner == str(os.getpid())
        if is_own or not (owner.isdigit() and psutil.pid_exists(int(owner))):
            shutil.rmtree(draft, ignore_errors=True)


def load(run: RunDirectory, spark: Spark | None = None) -> History:
    """Open the run's history, ingesting it first if that has not been done (an interrupted run)."""
    if not (run.history / MANIFEST).exists():
        ingest(run, spark)
    return open_history(run.history)


def renew(run: RunDirectory, spark: Spark | None = None) -> None:
    """Make ``history/`` from the raw files, or, if they are gone, see that the one that is there can be read.

    So a run is judged years later, by a version that has other columns. Raises HistoryError when neither is possible.
    """
    if _has_sources(run):
        ingest(run, spark)
        return
    try:
        read_manifest(run.history)
    except MissingHistoryError:
        raise MissingHistoryError(_nothing(run)) from None
    except HistoryError as error:
        raise type(error)(f"{error}, and {run.raw} holds no events to make it from again") from None


def _size(sources: list[Path], members: tuple[Path, ...]) -> int:
    """How many bytes there are to parse."""
    logs = [log for member in members for log in member.glob("log.*")]
    return sum(path.stat().st_size for path in [*sources, *logs])


def _has_sources(run: RunDirectory) -> bool:
    return any(run.raw.glob("*.jsonl")) or any(run.zookeeper.glob("*/version-2"))


def _nothing(run: RunDirectory) -> str:
    return f"{run.raw} holds no events: nothing was recorded"


def _pieces(sources: list[Path], members: tuple[Path, ...]) -> list[Piece]:
    ranges = [piece for source in sources for piece in raw_lines.byte_ranges(source)]
    pieces = [Piece(number, lines) for number, lines in enumerate(ranges)]
    return [*pieces, Piece(len(pieces), None, members)] if members else pieces


def _missing_sources(
    run: RunDirectory, sources: list[Path], members: tuple[Path, ...]
) -> list[str]:
    """Only our own reference writes traces; ZooKeeper's log comes with every target, but not with a foreign history."""
    info = run.read_info()
    if info.foreign:
        return list(info.foreign["problems"])
    present = {source.stem for source in sources}
    expected = [f"broker-{number}" for number in range(1, info.brokers + 1)]
    if info.target != "reference":
        expected = []
    problems = [
        f"{run.raw_file(process)} is missing: nothing is known of what {process} did"
        for process in expected
        if process not in present
    ]
    # A simulated ZooKeeper records its changes itself, as any process does.
    if PROCESS not in present and len(members) <= info.zookeepers // 2:
        problems.append(f"{run.zookeeper} lacks the transaction logs of a majority of the servers")
    return problems


def _parse(directory: Path, version: int, piece: Piece) -> Parsed:
    """Sort the events of a piece; ``version`` is the format of the lines."""
    if piece.lines is not None:
        rows, problems = raw_lines.read(piece.lines, version)
    else:
        merged = merge([read_log(member) for member in piece.zookeeper])
        rows, problems = table(ZnodeEvents().events(merged.transactions)), merged.problems
    rows = ordered(rows)
    path = directory / f"{piece.number}.arrow"
    # Most columns are empty in most sources; an empty column would still cost 8 bytes a row.
    used = [name for name in rows.column_names if rows.column(name).null_count < rows.num_rows]
    kept = rows.select(used)
    with (
        _whole(path) as draft,
        pa.OSFile(str(draft), "wb") as file,
        pa.ipc.new_file(file, kept.schema) as writer,
    ):
        writer.write_table(kept)
    return Parsed(path, _runs(rows), problems)


def _runs(rows: pa.Table) -> list[tuple[TopicPartitionKey, int]]:
    """The keys of sorted rows and how many rows each has."""
    if not rows.num_rows:
        return []
    partition = rows.column("partition").fill_null(-1).to_numpy()
    topics = rows.column("topic").combine_chunks()
    topics = topics.chunk(0) if isinstance(topics, pa.ChunkedArray) else topics
    words = [*topics.dictionary.to_pylist(), ""]
    codes = topics.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    change = np.flatnonzero((np.diff(codes) != 0) | (np.diff(partition) != 0)) + 1
    cuts = [0, *change.tolist(), rows.num_rows]
    return [((words[codes[a]], int(partition[a])), b - a) for a, b in pairwise(cuts)]


def _buckets(parsed: list[Parsed]) -> list[Bucket]:
    """Cut the keys into consecutive buckets and find each bucket's slice of every parsed file."""
    totals: dict[TopicPartitionKey, int] = defaultdict(int)
    for part in parsed:
        for key, rows in part.runs:
            totals[key] += rows
    bucket_of: dict[TopicPartitionKey, int] = {}
    sizes: list[int] = []
    for key in sorted(totals):
        if not sizes or sizes[-1] + totals[key] > BUCKET_ROWS:
            sizes.append(0)
        bucket_of[key] = len(sizes) - 1
        sizes[-1] += totals[key]
    slices: list[list[tuple[Path, int, int]]] = [[] for _ in sizes]
    for part in parsed:
        spans: dict[int, tuple[int, int]] = {}
        position = 0
        for key, rows in part.runs:
            bucket = bucket_of[key]
            start, _ = spans.get(bucket, (position, position))
            position += rows
            spans[bucket] = (start, position)
        for bucket, (start, stop) in spans.items():
            slices[bucket].append((part.path, start, stop))
    return [
        Bucket(f"events-{number:05d}.parquet", slices[number], size)
        for number, size in enumerate(sizes)
    ]


def _merge(directory: Path, bucket: Bucket) -> None:
    tables = []
    for path, start, stop in bucket.slices:
        rows = pa.ipc.open_file(pa.memory_map(str(path))).read_all().slice(start, stop - start)
        columns = [
            rows.column(field.name)
            if field.name in rows.column_names
            else pa.nulls(rows.num_rows, field.type)
            for field in SCHEMA
        ]
        tables.append(pa.Table.from_arrays(columns, schema=SCHEMA))
    with (
        _whole(directory / bucket.name) as draft,
        EventsFile(draft) as file,
    ):
        for group in row_groups(ordered(pa.concat_tables(tables))):
            file.write(group)


@contextmanager
def _whole(path: Path) -> Iterator[Path]:
    """Yield a name of this task's own to write under; the file has its name when it is written."""
    if not path.parent.is_dir():
        raise MissingHistoryError(
            f"{path.parent} is not there on {gethostname()}: all machines of a Spark cluster must see a run "
            "under the same path"
        )
    draft = path.with_name(f"{path.name}.{gethostname()}-{os.getpid()}")
    yield draft
    draft.replace(path)
