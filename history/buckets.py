"""The second step of an ingestion: slices of sorted pieces become Parquet files in the order of the history.

Neighbouring keys make a bucket of about 128 Ki rows; a hot partition makes a bucket of its own. Every piece is sorted,
so the rows of a bucket are one slice of each piece. A long slice of a single piece makes several buckets. A task maps
the slices into memory, sorts them together and writes one Parquet file. Limit: the events of one partition must fit
into memory.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from math import ceil
from pathlib import Path
from typing import Final

import pyarrow as pa

from nemesis.history.drafts import complete_file
from nemesis.history.encoding import EventsFile, row_groups
from nemesis.history.schema import completed, is_in_order, ordered
from nemesis.history.sorted_pieces import Parsed, TopicPartitionKey

BUCKET_ROWS: Final = 128 * 1024
FILE_ROWS: Final = 1024 * 1024
"""Rows of a single piece that are written together; more are several tasks."""

Slice = tuple[Path, int, int]
"""Rows (start, stop) of a parsed file."""


@dataclass(frozen=True, slots=True)
class Bucket:
    """Work for one merging task: a slice of each parsed file that has rows of the bucket."""

    name: str
    slices: list[Slice]
    rows: int


def buckets_of(parsed: list[Parsed]) -> list[Bucket]:
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
    slices: list[list[Slice]] = [[] for _ in sizes]
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
        Bucket(f"events-{number:05d}.parquet", own, sum(stop - start for _, start, stop in own))
        for number, own in enumerate(chain.from_iterable(map(_cut, slices)))
    ]


def _cut(slices: list[Slice]) -> list[list[Slice]]:
    """The slices of a bucket; a long slice of a single piece in equal parts, which are in order as it is."""
    if len(slices) > 1:
        return [slices]
    ((path, start, stop),) = slices
    parts = ceil((stop - start) / FILE_ROWS)
    edges = [start + (stop - start) * part // parts for part in range(parts + 1)]
    return [[(path, first, end)] for first, end in pairwise(edges)]


def write_bucket(directory: Path, columns: Sequence[str], bucket: Bucket) -> None:
    """Sort the rows of a bucket and write its Parquet file, which has these columns (empty: all)."""
    tables = []
    for path, start, stop in bucket.slices:
        rows = pa.ipc.open_file(pa.memory_map(str(path))).read_all()
        tables.append(rows.slice(start, stop - start))
    if len(tables) == 1 and is_in_order(tables[0]):
        (rows,) = tables
    else:
        rows = ordered(pa.concat_tables(map(completed, tables)))
    with (
        complete_file(directory / bucket.name) as draft,
        EventsFile(draft, columns) as file,
    ):
        for group in row_groups(rows):
            file.write(completed(group))
