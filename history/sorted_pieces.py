"""The first step of an ingestion: a piece of a source becomes an Arrow file of sorted rows.

A piece is 16 MiB of JSON lines, or the table of an external history, or the log of one Kafka broker, or all transaction
logs of ZooKeeper, or all metadata logs of a KRaft quorum. The driver gets only the number of rows of each (topic,
partition). A line that is not an event is a problem, except a torn last line: its writer was killed before any process
could observe the effect.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa

from nemesis.history import raw_lines
from nemesis.history.drafts import complete_file
from nemesis.history.schema import completed, is_in_order, ordered, table
from nemesis.history.znodes import ZnodeEvents
from nemesis.history.zookeeper_ensemble import merge
from nemesis.history.zookeeper_log import read_log

TopicPartitionKey = tuple[str, int]
"""Topic ("" when unset) and partition (−1 when unset): sorts as ``nemesis.history.schema`` orders rows."""


@dataclass(frozen=True, slots=True)
class Piece:
    """Work for one parsing task: a byte range of a file of lines, a table, a broker's log, or all logs of metadata."""

    number: int
    lines: raw_lines.ByteRange | None
    zookeeper: tuple[Path, ...] = ()
    quorum: tuple[Path, ...] = ()
    voters: int = 0
    """How many voters the quorum has, whether their logs are there or not."""
    broker_log: Path | None = None
    table: Path | None = None


@dataclass(frozen=True, slots=True)
class Parsed:
    """A sorted Arrow file; ``runs``: how many rows it has of each key, in order."""

    path: Path
    runs: list[tuple[TopicPartitionKey, int]]
    problems: list[str]
    columns: tuple[str, ...] = ()
    """The columns of a table, in the order of the schema; empty for another source, which may have any."""


def pieces_of(
    sources: Sequence[Path],
    members: tuple[Path, ...],
    quorum: tuple[Path, ...] = (),
    voters: int = 0,
    broker_logs: Sequence[Path] = (),
    tables: Sequence[Path] = (),
) -> list[Piece]:
    """Return the work of the first step: ranges of files of JSON lines, and one piece for each other source."""
    ranges = [piece for source in sources for piece in raw_lines.byte_ranges(source)]
    pieces = [Piece(number, lines) for number, lines in enumerate(ranges)]
    if members:
        pieces.append(Piece(len(pieces), None, members))
    if quorum:
        pieces.append(Piece(len(pieces), None, quorum=quorum, voters=voters))
    pieces += [Piece(len(pieces) + n, None, broker_log=log) for n, log in enumerate(broker_logs)]
    pieces += [Piece(len(pieces) + n, None, table=file) for n, file in enumerate(tables)]
    return pieces


def parse(directory: Path, version: int, piece: Piece) -> Parsed:
    """Sort the events of a piece; ``version`` is the format of the lines."""
    if piece.table is not None:
        rows, problems = _table_rows(piece.table)
        if is_in_order(rows):
            return Parsed(
                piece.table, [(("", -1), rows.num_rows)], problems, tuple(rows.column_names)
            )
        rows = completed(rows)
    elif piece.lines is not None:
        rows, problems = raw_lines.read(piece.lines, version)
    elif piece.quorum:
        rows, problems = _quorum_rows(piece)
    elif piece.broker_log is not None:
        from nemesis.history.broker_logs import read_broker_log  # few runs have any

        events, problems = read_broker_log(piece.broker_log)
        rows = table(events)
    else:
        merged = merge([read_log(member) for member in piece.zookeeper])
        rows, problems = table(ZnodeEvents().events(merged.transactions)), merged.problems
    rows = ordered(rows)
    path = directory / f"{piece.number}.arrow"
    # Most columns are empty in most sources; an empty column would still cost 8 bytes a row.
    used = [name for name in rows.column_names if rows.column(name).null_count < rows.num_rows]
    kept = rows.select(used)
    with (
        complete_file(path) as draft,
        pa.OSFile(str(draft), "wb") as file,
        pa.ipc.new_file(file, kept.schema) as writer,
    ):
        writer.write_table(kept)
    return Parsed(path, _runs(rows), problems)


def _table_rows(path: Path) -> tuple[pa.Table, list[str]]:
    """Return the events of an Arrow file, which is mapped into memory; a file that cannot be read is a problem."""
    try:
        return pa.ipc.open_file(pa.memory_map(str(path))).read_all(), []
    except (pa.ArrowException, OSError) as error:
        return table(()), [f"{path} is damaged: {error}"]


def _quorum_rows(piece: Piece) -> tuple[pa.Table, list[str]]:
    """Return the events of what the quorum has committed; records that cannot be read are a problem."""
    from nemesis.history.quorum_events import QuorumEvents  # few runs have any
    from nemesis.history.quorum_log import committed, read_quorum_log

    try:
        log = committed([read_quorum_log(voter) for voter in piece.quorum], piece.voters)
        return table(QuorumEvents().events(log.batches)), list(log.problems)
    except (ValueError, KeyError) as error:
        return table(()), [f"the metadata logs of the quorum cannot be read: {error!r}"]


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
