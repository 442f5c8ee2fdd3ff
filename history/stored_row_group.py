"""Row groups of Parquet files, on this machine or in a remote store.

A thread keeps the file that it read last open, because reading a footer takes twice as long as reading a row group.
Pages carry checksums, which are verified. A row group of an older format is converted whenever it is read.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from nemesis.history.dependencies import Dependencies
from nemesis.history.remote import RemotePath, unreadable
from nemesis.history.row_group import Known, NothingKnown, Uniform
from nemesis.history.schema import SCHEMA, WORD, with_columns
from nemesis.history.statistics import FileStatistics, Lists, UniformWord, Words

_LISTS: Final = frozenset(field.name for field in SCHEMA if pa.types.is_list(field.type))
"""Parquet's statistics of these columns are of the items: a list without items may be empty or unset."""
_SHORT: Final = frozenset(
    field.name for field in SCHEMA if pa.types.is_integer(field.type) or field.type == WORD
)
"""Columns whose least and greatest value Parquet's statistics contain in full length."""


@dataclass(frozen=True, slots=True)
class StoredRowGroup:
    """A row group of a Parquet file."""

    path: Path | RemotePath
    index: int
    first_row: int
    rows: int
    columns: tuple[str, ...] = ()
    """The columns of the file, if it has not all of its format: the others are unset."""

    @property
    def is_far(self) -> bool:
        """Whether the file is not on this machine."""
        return not isinstance(self.path, Path)

    def read(self, columns: Sequence[str] | None = None) -> pa.Table:
        """Return the rows, all columns or some. Raises DamagedHistoryError naming the file."""
        try:
            wanted = None if columns is None else list(columns)
            present = wanted
            if self.columns and wanted is not None:
                present = [name for name in wanted if name in self.columns]
            rows = _open_file(self.path).read_row_group(
                self.index, columns=present, use_threads=False
            )
        except (OSError, pa.ArrowException) as error:
            raise unreadable(self.path, error) from None
        return with_columns(rows, wanted or SCHEMA.names) if self.columns else rows

    def known(self) -> Known:
        """Return the statistics of the file and its footer. Raises DamagedHistoryError."""
        try:
            metadata = _open_file(self.path).metadata
            statistics = _statistics(self.path)
        except (OSError, pa.ArrowException) as error:
            raise unreadable(self.path, error) from None
        chunks = metadata.row_group(self.index)
        return _StoredStatistics(
            self.rows,
            chunks,
            statistics.lists(self.index),
            statistics.words(self.index),
            statistics.dependencies(self.index),
            self.columns,
        )


@dataclass(frozen=True, slots=True)
class OlderRowGroup:
    """A row group of a file of an older format: its rows are converted whenever they are read."""

    stored: StoredRowGroup
    convert: Callable[[pa.Table], pa.Table]
    """Returns the rows of the file's format as rows of today's."""

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
        rows = self.convert(self.stored.read())
        return rows if columns is None else rows.select(list(columns))

    def known(self) -> Known:
        """Return nothing: the file's statistics are of the columns of its own format."""
        return NothingKnown()


@dataclass(frozen=True, slots=True)
class _StoredStatistics:
    """Implements ``Known`` with Parquet's statistics of a row group and with the file's footer."""

    rows: int
    chunks: pq.RowGroupMetaData
    lists: Lists
    words_of: Words
    dependencies_between: Dependencies
    columns: tuple[str, ...]
    """As in ``StoredRowGroup``."""

    def _statistics(self, column: str) -> pq.Statistics | None:
        position = self.columns.index(column) if self.columns else SCHEMA.get_field_index(column)
        return self.chunks.column(position).statistics

    def uniform(self, column: str) -> Uniform | None:
        if self.columns and column not in self.columns:
            return Uniform(None)
        if column in _LISTS:
            return None
        statistics = self._statistics(column)
        if statistics is None or not statistics.has_null_count:
            return None
        if statistics.null_count == self.rows:
            return Uniform(None)
        if column not in _SHORT or statistics.null_count or not statistics.has_min_max:
            return None
        return Uniform(least) if (least := statistics.min) == statistics.max else None

    def extent(self, column: str) -> tuple[int, int] | None:
        if self.columns and column not in self.columns:
            return None
        statistics = self._statistics(column)
        if statistics is None or not statistics.has_min_max:
            return None
        return statistics.min, statistics.max

    def uniform_list(self, column: str, kind: str) -> list[int] | None:
        return self.lists.get(column, {}).get(kind)

    def words(self, column: str) -> list[UniformWord] | None:
        return self.words_of.get(column)

    def dependencies(self) -> Dependencies:
        return self.dependencies_between


class _LastFile(threading.local):
    """The Parquet file that a thread read last, kept open."""

    identity: tuple[object, ...] = ()
    file: pq.ParquetFile = None
    statistics: FileStatistics | None = None
    """The statistics of its footer, once they have been read."""


_last = _LastFile()


def _open_file(path: Path | RemotePath) -> pq.ParquetFile:
    """Return a file as it is on disk now; a file that was written again is opened again.

    A remote file is assumed not to change: to look would cost a request for each row group. Raises OSError,
    ArrowException.
    """
    identity: tuple[object, ...] = (path,)
    if isinstance(path, Path):
        status = path.stat()
        identity = (path, status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)
    if identity != _last.identity:
        if _last.file is not None:
            _last.file.close()
        _last.identity, _last.statistics = (), None
        _last.file = parquet_file(path, page_checksum_verification=True)
        _last.identity = identity
    return _last.file


def _statistics(path: Path | RemotePath) -> FileStatistics:
    file = _open_file(path)
    if _last.statistics is None:
        _last.statistics = FileStatistics(file.metadata)
    return _last.statistics


def parquet_file(path: Path | RemotePath, **options: Any) -> pq.ParquetFile:
    if isinstance(path, Path):
        # Reading ahead is done by another thread, which has to be waited for.
        return pq.ParquetFile(path, pre_buffer=False, **options)
    # Columns lie far apart, and each request takes long: they are fetched together.
    return pq.ParquetFile(path.path, filesystem=path.filesystem, pre_buffer=True, **options)
