"""A stored history that is cut into row groups, and the part of an outcome that may not depend on the cuts."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import msgspec
import pyarrow.parquet as pq

from nemesis.checkers.framework.model import Outcome
from nemesis.history.events import Event
from nemesis.history.manifest import MANIFEST, FileEntry, Manifest
from nemesis.history.schema import ordered, table


def history_of(directory: Path, events: list[Event], cuts: list[int]) -> Path:
    """Write a history whose row groups end at these cuts, one file per row group."""
    rows = ordered(table(events))
    bounds = sorted({0, rows.num_rows, *(cut for cut in cuts if cut < rows.num_rows)})
    files = []
    for number, (start, stop_) in enumerate(pairwise(bounds)):
        name = f"events-{number:05d}.parquet"
        pq.write_table(rows.slice(start, stop_ - start), directory / name)
        files.append(FileEntry(name, stop_ - start))
    manifest = Manifest(events=rows.num_rows, files=files)
    (directory / MANIFEST).write_bytes(msgspec.json.encode(manifest))
    return directory


def same(outcome: Outcome) -> object:
    """What may not depend on the engine."""
    return outcome.verdict, outcome.results, outcome.events, outcome.problems
