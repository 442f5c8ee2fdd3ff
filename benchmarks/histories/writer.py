"""Tables → a history directory: row groups and files as ``nemesis.history.buckets`` makes them, and the manifest.

Give it tables of the history's schema in the history's order (``nemesis.history.schema``), of any length; it cuts
them into row groups as large as they may be and starts a new file at the end of a partition that filled one, or,
inside a hot partition, after ``FILE_ROWS`` rows. It holds no more than a row group and what it was given last.

    with HistoryWriter(directory) as writer:
        for table in tables:
            writer.write(table)
        writer.end_partition()
"""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import Final, Self

import msgspec
import pyarrow as pa

from nemesis.history.buckets import BUCKET_ROWS
from nemesis.history.encoding import (
    ROW_GROUP_RECORDS,
    ROW_GROUP_ROWS,
    EventsFile,
    records_in,
    row_groups,
)
from nemesis.history.manifest import MANIFEST, FileEntry, Manifest

FILE_ROWS: Final = 16 * ROW_GROUP_ROWS


class HistoryWriter:
    """Writes a history into a directory that must not exist yet."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True)
        self.directory = directory
        self.rows = 0
        """How many rows it was given: the row number of the next one."""
        self._waiting: list[pa.Table] = []
        self._waiting_rows = self._waiting_records = 0
        self._files: list[FileEntry] = []
        self._file: EventsFile | None = None
        self._file_rows = 0

    def write(self, table: pa.Table) -> None:
        """Append the rows of a table."""
        self.rows += table.num_rows
        self._waiting.append(table)
        self._waiting_rows += table.num_rows
        self._waiting_records += records_in(table)
        if self._waiting_rows < ROW_GROUP_ROWS and self._waiting_records < ROW_GROUP_RECORDS:
            return
        *full, last = row_groups(pa.concat_tables(self._waiting))
        for group in full:
            self._write_group(group)
        self._wait_with([last])

    def end_partition(self) -> None:
        """Say that another partition follows, or none."""
        if self._file_rows + self._waiting_rows >= BUCKET_ROWS:
            self._end_file()

    def close(self) -> Manifest:
        """Write what is left, and the manifest, without which there is no history. Returns it."""
        self._end_file()
        manifest = Manifest(events=self.rows, files=self._files)
        text = msgspec.json.format(msgspec.json.encode(manifest))
        (self.directory / MANIFEST).write_bytes(text)
        return manifest

    def _wait_with(self, tables: list[pa.Table]) -> None:
        self._waiting = tables
        self._waiting_rows = sum(table.num_rows for table in tables)
        self._waiting_records = sum(map(records_in, tables))

    def _write_group(self, table: pa.Table) -> None:
        if self._file is None:
            name = f"events-{len(self._files):05d}.parquet"
            self._file = EventsFile(self.directory / name)
        group = table.unify_dictionaries().combine_chunks()
        self._file.write(group)
        self._file_rows += table.num_rows
        if self._file_rows >= FILE_ROWS:
            self._close_file()

    def _end_file(self) -> None:
        if self._waiting_rows:
            for group in row_groups(pa.concat_tables(self._waiting)):
                self._write_group(group)
            self._wait_with([])
        self._close_file()

    def _close_file(self) -> None:
        if self._file is not None:
            self._file.close()
            name = f"events-{len(self._files):05d}.parquet"
            self._files.append(FileEntry(name, self._file_rows))
            self._file, self._file_rows = None, 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is None:
            self.close()
        elif self._file is not None:
            self._file.close()
