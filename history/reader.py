"""Reading an ingested history: its manifest, its row groups, single rows.

``history/`` of a run holds ``_manifest.json`` and files ``events-NNNNN.parquet``, to be read in that
order; a manifest may also say that the files lie elsewhere. The schema and the order of rows are
those of ``nemesis.history.schema``. Pages carry checksums, which are verified.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from nemesis.history.dependencies import NOTHING, Follows
from nemesis.history.errors import (
    DamagedHistoryError,
    ForeignHistoryError,
    HistoryError,
    MissingHistoryError,
)
from nemesis.history.older_formats import OLDER_SCHEMA, READABLE, upgraded
from nemesis.history.remote import RemotePath, brief
from nemesis.history.schema import FORMAT_VERSION, REQUIRED, SCHEMA, WORD
from nemesis.history.statistics import Lists, Says, Told, Words

FORMAT: Final = "nemesis-history"
_LISTS: Final = frozenset(field.name for field in SCHEMA if pa.types.is_list(field.type))
"""Their statistics are of their items: a list without any may be empty or unset."""
_SHORT: Final = frozenset(
    field.name for field in SCHEMA if pa.types.is_integer(field.type) or field.type == WORD
)
"""Columns of which statistics tell the least and the greatest value whole."""
MANIFEST: Final = "_manifest.json"


class FileEntry(msgspec.Struct, frozen=True):
    name: str
    rows: int


class Manifest(msgspec.Struct, kw_only=True, frozen=True):
    """What a history consists of."""

    format: str = FORMAT
    version: int = FORMAT_VERSION
    events: int
    files: list[FileEntry]
    problems: list[str] = []
    """What was wrong with the sources; each makes verdicts ``unknown``."""
    sources: dict[str, int] = {}
    """Bytes read per source file: a source that has another size now was not ingested as it is."""
    at: str = ""
    """The URI of the directory of the files, if they are not beside the manifest."""


class RowGroup(Protocol):
    """A stretch of rows that is read at once; picklable, so that tasks can be given it."""

    @property
    def first_row(self) -> int: ...

    @property
    def rows(self) -> int: ...

    def read(self, columns: Sequence[str] | None = None) -> pa.Table:
        """Return the rows, all columns or some."""

    def known(self) -> Known:
        """Return what is known of the rows without reading them."""

    @property
    def is_far(self) -> bool:
        """Whether to read takes long to begin, so that columns had better be read together."""


class Known(Protocol):
    """What is known of the rows of a row group without reading them."""

    def uniform(self, column: str) -> Uniform | None:
        """Return what all rows say in a column, if that is known."""

    def extent(self, column: str) -> tuple[int, int] | None:
        """Return the least and the greatest number of a column of numbers or of lists, if that is known."""

    def uniform_list(self, column: str, kind: str) -> list[int] | None:
        """Return the list that all rows of a kind have in a column, if that is known."""

    def words(self, column: str) -> list[Says] | None:
        """Return what the rows of each kind and node say in a column, if that is known."""

    def follows(self) -> Follows:
        """Return which columns are known to follow from others."""


class Uniform(NamedTuple):
    """What all rows of a row group say in a column; ``None``: it is unset in all of them."""

    value: Any


@dataclass(frozen=True, slots=True)
class StoredRowGroup:
    """A row group of a Parquet file."""

    path: Path | RemotePath
    index: int
    first_row: int
    rows: int

    @property
    def is_far(self) -> bool:
        """Whether the file is not on this machine."""
        return not isinstance(self.path, Path)

    def read(self, columns: Sequence[str] | None = None) -> pa.Table:
        """Return the rows, all columns or some. Raises DamagedHistoryError naming the file."""
        try:
            wanted = None if columns is None else list(columns)
            return _open_file(self.path).read_row_group(
                self.index, columns=wanted, use_threads=False
            )
        except (OSError, pa.ArrowException) as error:
            raise _damaged(self.path, error) from None

    def known(self) -> Known:
        """Return what the file's statistics and footer tell. Raises DamagedHistoryError."""
        try:
            metadata, told = _open_file(self.path).metadata, _told(self.path)
        except (OSError, pa.ArrowException) as error:
            raise _damaged(self.path, error) from None
        chunks = metadata.row_group(self.index)
        words, follows = told.words(self.index), told.follows(self.index)
        return _Stored(self.rows, chunks, told.lists(self.index), words, follows)


@dataclass(frozen=True, slots=True)
class OlderRowGroup:
    """A row group of a file of an older format: its rows are converted whenever they are read."""

    stored: StoredRowGroup

    @property
    def first_row(self) -> int:
        return self.stored.first_row

    @property
    def rows(self) -> int:
        return self.stored.rows

    @property
    def is_far(self) -> bool:
        """True: reading converts all columns, so columns are better read together."""
        return True

    def read(self, columns: Sequence[str] | None = None) -> pa.Table:
        """Return the rows, all columns or some, as today's format has them. Raises DamagedHistoryError."""
        rows = upgraded(self.stored.read())
        return rows if columns is None else rows.select(list(columns))

    def known(self) -> Known:
        """Return nothing: the file's statistics are of its own columns."""
        return NothingKnown()


class NothingKnown:
    """Implements ``Known`` for rows of which nothing is known without reading them."""

    def uniform(self, column: str) -> Uniform | None:  # noqa: ARG002
        return None

    def extent(self, column: str) -> tuple[int, int] | None:  # noqa: ARG002
        return None

    def uniform_list(self, column: str, kind: str) -> list[int] | None:  # noqa: ARG002
        return None

    def words(self, column: str) -> list[Says] | None:  # noqa: ARG002
        return None

    def follows(self) -> Follows:
        return NOTHING


@dataclass(frozen=True, slots=True)
class _Stored:
    """What a Parquet file tells of a row group."""

    rows: int
    chunks: pq.RowGroupMetaData
    lists: Lists
    words_of: Words
    told: Follows

    def uniform(self, column: str) -> Uniform | None:
        if column in _LISTS:
            return None
        told = self.chunks.column(SCHEMA.get_field_index(column)).statistics
        if told is None or not told.has_null_count:
            return None
        if told.null_count == self.rows:
            return Uniform(None)
        if column not in _SHORT or told.null_count or not told.has_min_max:
            return None
        return Uniform(least) if (least := told.min) == told.max else None

    def extent(self, column: str) -> tuple[int, int] | None:
        told = self.chunks.column(SCHEMA.get_field_index(column)).statistics
        return (told.min, told.max) if told is not None and told.has_min_max else None

    def uniform_list(self, column: str, kind: str) -> list[int] | None:
        return self.lists.get(column, {}).get(kind)

    def words(self, column: str) -> list[Says] | None:
        return self.words_of.get(column)

    def follows(self) -> Follows:
        return self.told


class _LastFile(threading.local):
    """The Parquet file that a thread read last, kept open: to read its footer takes twice as long as a row group."""

    identity: tuple[object, ...] = ()
    file: pq.ParquetFile = None
    told: Told | None = None
    """What it tells, if anybody has asked."""


_last = _LastFile()


def _open_file(path: Path | RemotePath) -> pq.ParquetFile:
    """A file as it is on disk now, which is another one if it was written anew. Raises OSError, ArrowException.

    One that is far away is taken not to change: to ask would be a request for each row group.
    """
    identity: tuple[object, ...] = (path,)
    if isinstance(path, Path):
        status = path.stat()
        identity = (path, status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)
    if identity != _last.identity:
        if _last.file is not None:
            _last.file.close()
        _last.identity, _last.told = (), None
        _last.file = _parquet(path, page_checksum_verification=True)
        _last.identity = identity
    return _last.file


def _told(path: Path | RemotePath) -> Told:
    file = _open_file(path)
    if _last.told is None:
        _last.told = Told(file.metadata)
    return _last.told


def _parquet(path: Path | RemotePath, **options: Any) -> pq.ParquetFile:
    if isinstance(path, Path):
        # Reading ahead is done by another thread, which has to be waited for.
        return pq.ParquetFile(path, pre_buffer=False, **options)
    # Columns lie far apart, and each request takes long: they are fetched together.
    return pq.ParquetFile(path.path, filesystem=path.filesystem, pre_buffer=True, **options)


class History:
    """A history that can be read: ``open_history`` opens a stored one, ``nemesis.history.memory`` makes one of
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
        """Return all rows. For reports and tests; checkers go by row groups."""
        names = SCHEMA.names if columns is None else list(columns)
        schema = pa.schema([SCHEMA.field(name) for name in names])
        tables = [group.read(names).select(names) for group in self.row_groups]
        return pa.concat_tables(tables) if tables else schema.empty_table()

    def rows(self, numbers: Iterable[int]) -> dict[int, dict[str, Any]]:
        """Return the events of these row numbers as dicts, unset columns left out."""
        wanted = np.unique(np.fromiter(numbers, dtype=np.int64))
        found: dict[int, dict[str, Any]] = {}
        for group in self.row_groups:
            end = group.first_row + group.rows
            inside = wanted[(wanted >= group.first_row) & (wanted < end)]
            if len(inside):
                picked = group.read().take(pa.array(inside - group.first_row)).to_pylist()
                for number, row in zip(inside.tolist(), picked, strict=True):
                    found[number] = {key: value for key, value in row.items() if value is not None}
        return found


def open_history(directory: Path | RemotePath) -> History:
    """Open ``history/`` of a run, having checked that every file is there, whole, and ours.

    Raises HistoryError with one sentence that names what is missing, foreign or damaged.
    """
    manifest = read_manifest(directory)
    if manifest.at:
        directory = RemotePath(manifest.at)
    groups: list[RowGroup] = []
    first_row = 0
    for entry in manifest.files:
        path = directory / entry.name
        try:
            if not path.exists():
                raise MissingHistoryError(f"{path} is missing from the history")
            with _parquet(path) as file:
                metadata, schema = file.metadata, file.schema_arrow
        except (OSError, pa.ArrowException) as error:
            raise _damaged(path, error) from None
        if not _is_of(schema, manifest.version):
            raise ForeignHistoryError(f"{path} does not have the columns of a history")
        if metadata.num_rows != entry.rows:
            raise DamagedHistoryError(
                f"{path} holds {metadata.num_rows} events where {entry.rows} were written"
            )
        for index in range(metadata.num_row_groups):
            rows = metadata.row_group(index).num_rows
            group = StoredRowGroup(path, index, first_row, rows)
            groups.append(OlderRowGroup(group) if manifest.version in READABLE else group)
            first_row += rows
    return History(manifest, groups)


def _is_of(schema: pa.Schema, version: int) -> bool:
    """Whether these are the columns of a version's files; an older one may lack some of the last older one."""
    if version not in READABLE:
        return bool(schema.equals(SCHEMA))
    return all(field in OLDER_SCHEMA for field in schema) and set(schema.names) >= REQUIRED


def read_manifest(directory: Path | RemotePath) -> Manifest:
    """Return what ``history/`` says it holds; raises HistoryError as ``open_history`` does."""
    path = directory / MANIFEST
    try:
        marks = msgspec.json.decode(path.read_bytes())
    except FileNotFoundError:
        raise MissingHistoryError(f"there is no history at {directory}") from None
    except (OSError, msgspec.DecodeError, UnicodeDecodeError) as error:
        raise _damaged(path, error) from None
    if not isinstance(marks, dict) or marks.get("format") != FORMAT:
        raise ForeignHistoryError(f"{path} is not the manifest of a history")
    if marks.get("version") not in {FORMAT_VERSION, *READABLE}:
        raise ForeignHistoryError(
            f"{path} has format version {marks.get('version')!r}, not {FORMAT_VERSION}"
        )
    try:
        return msgspec.convert(marks, Manifest)
    except msgspec.ValidationError as error:
        raise _damaged(path, error) from None


def _damaged(path: Path | RemotePath, error: Exception) -> HistoryError:
    if isinstance(path, RemotePath) and isinstance(error, OSError):
        return MissingHistoryError(f"{path} cannot be read: {brief(error)}")
    return DamagedHistoryError(f"{path} is damaged: {brief(error)}")
