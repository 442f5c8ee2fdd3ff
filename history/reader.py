"""Reading an ingested history: its row groups, single rows.

``history/`` of a run holds ``_manifest.json`` and files ``events-NNNNN.parquet``, to be read in that
order; a manifest may also give the URI of another directory. The schema and the order of rows are
those of ``nemesis.history.schema``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa

from nemesis.history.errors import DamagedHistoryError, ForeignHistoryError, MissingHistoryError
from nemesis.history.manifest import Manifest, read_manifest
from nemesis.history.older_formats import (
    OLDER_SCHEMA,
    READABLE,
    UNCHANGED,
    unchanged_schema,
    upgraded,
)
from nemesis.history.remote import RemotePath, unreadable
from nemesis.history.row_group import RowGroup, Uniform
from nemesis.history.schema import REQUIRED, SCHEMA, completed
from nemesis.history.stored_row_group import OlderRowGroup, StoredRowGroup, parquet_file

_UNSET: Final = Uniform(None)


class History:
    """A history that can be read: ``open_history`` opens a stored history, ``nemesis.history.memory`` builds one from
    events."""

    def __init__(self, manifest: Manifest, row_groups: Sequence[RowGroup]) -> None:
        self.manifest = manifest
        self.row_groups = row_groups

    @property
    def events(self) -> int:
        return self.manifest.events

    @property
    def problems(self) -> tuple[str, ...]:
        return tuple(self.manifest.problems)

    def table(self, columns: Sequence[str] | None = None) -> pa.Table:
        """Return all rows. For reports and tests; checkers read row groups."""
        names = SCHEMA.names if columns is None else list(columns)
        tables = [_read(group, names) for group in self.row_groups]
        return pa.concat_tables(tables) if tables else SCHEMA.empty_table().select(names)

    def rows(self, numbers: Iterable[int]) -> dict[int, dict[str, Any]]:
        """Return the events of these row numbers as dicts, unset columns left out."""
        wanted = np.unique(np.fromiter(numbers, dtype=np.int64))
        event_of_row: dict[int, dict[str, Any]] = {}
        for group in self.row_groups:
            end = group.first_row + group.rows
            inside = wanted[(wanted >= group.first_row) & (wanted < end)]
            if len(inside):
                picked = group.read().take(pa.array(inside - group.first_row)).to_pylist()
                for number, row in zip(inside.tolist(), picked, strict=True):
                    event_of_row[number] = {
                        key: value for key, value in row.items() if value is not None
                    }
        return event_of_row


def _read(group: RowGroup, names: list[str]) -> pa.Table:
    """The rows of a row group with these columns; those that are known to be unset are not decoded."""
    known = group.known()
    kept = [name for name in names if known.uniform(name) != _UNSET]
    return completed(group.read(kept or names)).select(names)


def open_history(directory: Path | RemotePath) -> History:
    """Open ``history/`` of a run, having checked that every file is there, whole, and ours.

    Raises HistoryError with one sentence that names what is missing, foreign or damaged.
    """
    manifest = read_manifest(directory)
    if manifest.files_uri:
        directory = RemotePath(manifest.files_uri)
    groups: list[RowGroup] = []
    first_row = 0
    for entry in manifest.files:
        path = directory / entry.name
        try:
            if not path.exists():
                raise MissingHistoryError(f"{path} is missing from the history")
            with parquet_file(path) as file:
                metadata, schema = file.metadata, file.schema_arrow
        except (OSError, pa.ArrowException) as error:
            raise unreadable(path, error) from None
        if not _is_of(schema, manifest):
            raise ForeignHistoryError(f"{path} does not have the columns of a history")
        if metadata.num_rows != entry.rows:
            raise DamagedHistoryError(
                f"{path} holds {metadata.num_rows} events where {entry.rows} were written"
            )
        for index in range(metadata.num_row_groups):
            rows = metadata.row_group(index).num_rows
            group = StoredRowGroup(path, index, first_row, rows, tuple(manifest.columns))
            groups.append(_as_todays(group, manifest.version))
            first_row += rows
    return History(manifest, groups)


def _as_todays(group: StoredRowGroup, version: int) -> RowGroup:
    """The row group, converted when it is read if it is of an older format."""
    if version in READABLE:
        return OlderRowGroup(group, upgraded)
    return OlderRowGroup(group, completed) if version in UNCHANGED else group


def _is_of(schema: pa.Schema, manifest: Manifest) -> bool:
    """Whether these are the columns of a manifest's files; an older one may lack some of the last older one."""
    version = manifest.version
    if version in UNCHANGED:
        return bool(schema.equals(unchanged_schema(version)))
    if version not in READABLE:
        columns = frozenset(manifest.columns or SCHEMA.names)
        return bool(schema.equals(pa.schema([field for field in SCHEMA if field.name in columns])))
    return all(field in OLDER_SCHEMA for field in schema) and set(schema.names) >= REQUIRED
