"""A generated history, into a directory or into memory.

``Part``s make the rows of records (``brokers.rows`` is one); for each stretch of records the rows of all parts are
merged by time. So another kind of process is another part.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pyarrow as pa

from benchmarks.histories import brokers, columns, control
from benchmarks.histories.anomalies import ANOMALIES, Anomaly, Injected, Injector, TableKind
from benchmarks.histories.client_anomalies import CLIENT_ANOMALIES
from benchmarks.histories.shape import Partition, Shape, Stretch, stretches
from benchmarks.histories.writer import HistoryWriter
from nemesis.history.manifest import Manifest
from nemesis.history.memory import MemoryRowGroup
from nemesis.history.reader import History
from nemesis.history.schema import ordered, table

RowsOfStretch = Callable[[Stretch], pa.Table]


def _no_ending(_shape: Shape, _partition: Partition) -> Iterator[pa.Table]:
    yield from ()


@dataclass(frozen=True, slots=True)
class Part:
    """What one kind of process leaves in a history."""

    has_cluster_rows: bool
    """Whether what ZooKeeper and controllers say of partitions goes with it."""
    rows: RowsOfStretch
    """The rows that a stretch of records makes, sorted by time, all within the stretch's own time."""
    ending: Callable[[Shape, Partition], Iterator[pa.Table]] = _no_ending
    """The rows that stand at the end of a partition (final reads), sorted by time, a table at a time. One part at most
    has any.
    """


BROKERS: Final = Part(True, brokers.rows)
KNOWN: Final = {**ANOMALIES, **CLIENT_ANOMALIES}


def write(
    directory: Path,
    shape: Shape,
    anomalies: Sequence[Anomaly] = (),
    parts: Sequence[Part] = (BROKERS,),
) -> list[Injected]:
    """Write the history into a directory that does not exist yet; return where the anomalies are."""
    injector = Injector(anomalies, KNOWN)
    with HistoryWriter(directory) as writer:
        for rows in _tables(shape, parts, injector):
            if rows is None:
                writer.end_partition()
            else:
                writer.write(rows)
    return injector.injected()


def in_memory(
    shape: Shape,
    anomalies: Sequence[Anomaly] = (),
    parts: Sequence[Part] = (BROKERS,),
) -> tuple[History, list[Injected]]:
    """Return the history as one row group in memory, and where the anomalies are. For small ones."""
    injector = Injector(anomalies, KNOWN)
    rows = pa.concat_tables([rows for rows in _tables(shape, parts, injector) if rows is not None])
    all_rows = rows.unify_dictionaries().combine_chunks()
    manifest = Manifest(events=all_rows.num_rows, files=[])
    return History(manifest, [MemoryRowGroup(all_rows)]), injector.injected()


def _tables(shape: Shape, parts: Sequence[Part], injector: Injector) -> Iterator[pa.Table | None]:
    """Yield the tables of a history in order, and ``None`` at the end of each partition."""
    yield injector.spoil(ordered(table(control.cluster(shape))), TableKind.CLUSTER)
    yield None
    for partition in shape.all_partitions():
        if partition.index == 0:
            yield injector.spoil(table([control.topic(shape, partition)]), TableKind.CLUSTER)
        for position, rows in _partition(shape, parts, partition):
            yield injector.spoil(rows, position, partition)
        yield None


def _partition(
    shape: Shape, parts: Sequence[Part], partition: Partition
) -> Iterator[tuple[TableKind, pa.Table]]:
    has_cluster_rows = any(part.has_cluster_rows for part in parts)
    if has_cluster_rows:
        yield TableKind.STATES, ordered(table(control.states(shape, partition)))
    for term in range(shape.terms):
        if has_cluster_rows:
            yield TableKind.ELECTIONS, ordered(table(control.elections(shape, partition, term)))
        for stretch in stretches(shape, partition, term):
            yield TableKind.RECORDS, columns.by_time([part.rows(stretch) for part in parts])
    for part in parts:
        for rows in part.ending(shape, partition):
            yield TableKind.ENDING, rows
