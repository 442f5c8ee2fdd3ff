"""Reading files of JSON lines, one event per line, in pieces.

pyarrow's reader is fast and strict but gives up at the first bad line. It is given the columns that the kinds of
events in the piece declare; if a line has others, the piece is read with all columns. If a line is bad, the piece is
read line by line, which finds exactly what is damaged and keeps all the rest.

A process that is killed while it writes leaves a fragment: at the end of the file, or, when another life of it
goes on with the same file, directly before that life's ``broker-started``. There it is no damage.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Final

import msgspec
import pyarrow as pa
import pyarrow.json

from nemesis.history import older_formats
from nemesis.history.events import Event, Kind
from nemesis.history.schema import FORMAT_VERSION, REQUIRED, SCHEMA, WORD, table
from nemesis.history.vocabulary.occurring import columns_in

PIECE_BYTES: Final = 16 * 1024 * 1024
MAX_PROBLEMS: Final = 3

_DECODER: Final = msgspec.json.Decoder(Event)


@dataclass(frozen=True, slots=True)
class ByteRange:
    """Whole lines of a file; ``ends_file`` tells where a torn line may be."""

    path: Path
    start: int
    stop: int
    ends_file: bool


def byte_ranges(path: Path, piece_bytes: int = PIECE_BYTES) -> list[ByteRange]:
    """Cut a file into ranges of whole lines of about ``piece_bytes`` each."""
    size = path.stat().st_size
    cuts = [0]
    with path.open("rb") as file:
        while cuts[-1] + piece_bytes < size:
            file.seek(cuts[-1] + piece_bytes)
            file.readline()
            cuts.append(file.tell())
    if cuts[-1] < size or size == 0:
        cuts.append(size)
    pairs = pairwise(cuts)
    return [ByteRange(path, start, stop, ends_file=stop == size) for start, stop in pairs]


def read(piece: ByteRange, version: int = FORMAT_VERSION) -> tuple[pa.Table, list[str]]:
    """Return the events of a range, in file order, and the problems found (a sentence each).

    ``version``: the format of the file. The table has ``SCHEMA`` for every format.
    """
    is_older = version <= older_formats.LAST
    with piece.path.open("rb") as file:
        file.seek(piece.start)
        content = file.read(piece.stop - piece.start)
        following = file.readline()
    schema = older_formats.OLDER_SCHEMA if is_older else SCHEMA
    problems: list[str] = []
    rows = None if is_older else _read_fast(content, SCHEMA, columns_in(content))
    if rows is None:
        rows = _read_fast(content, schema, frozenset(schema.names))
    if rows is None:
        rows, problems = _read_slowly(piece, content, following)
    return older_formats.upgraded(rows) if is_older else rows, problems


def _read_fast(content: bytes, schema: pa.Schema, names: frozenset[str]) -> pa.Table | None:
    """All lines, without those of the schema's columns that are not named, which are unset.

    None if a line is not an event of the named columns, or if there are no lines.
    """
    if not content.endswith(b"\n"):
        return None
    try:
        rows = pa.json.read_json(
            pa.BufferReader(content),
            read_options=pa.json.ReadOptions(use_threads=False, block_size=4 * 1024 * 1024),
            parse_options=pa.json.ParseOptions(
                explicit_schema=_plain(schema, names), unexpected_field_behavior="error"
            ),
        )
    except pa.ArrowException:
        return None
    columns = []
    for field in schema:
        if field.name not in names:
            columns.append(pa.nulls(rows.num_rows, field.type))
            continue
        column = rows.column(field.name)
        if field.name == "seq":
            column = column.fill_null(0)
        if field.name in REQUIRED and column.null_count:
            return None
        columns.append(column.dictionary_encode() if field.type == WORD else column)
    return pa.Table.from_arrays(columns, schema=schema)


def _plain(schema: pa.Schema, names: frozenset[str]) -> pa.Schema:
    """The named columns, words as texts: as JSON has them."""
    return pa.schema(
        [
            pa.field(field.name, pa.string() if field.type == WORD else field.type)
            for field in schema
            if field.name in names
        ]
    )


def _read_slowly(piece: ByteRange, content: bytes, following: bytes) -> tuple[pa.Table, list[str]]:
    """``following`` is the line after the range, empty at the end of the file."""
    events: list[Event] = []
    problems: list[str] = []
    damaged = 0
    position = piece.start
    lines = content.splitlines(keepends=True)
    for line, after in zip(lines, [*lines, following][1:], strict=True):
        torn = piece.ends_file and not line.endswith(b"\n")
        try:
            events.append(_DECODER.decode(line))
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            if not torn and not (_is_fragment(error) and _begins_incarnation(after, events)):
                damaged += 1
                if damaged <= MAX_PROBLEMS:
                    problems.append(f"{piece.path} is damaged at byte {position}: {error}")
        position += len(line)
    if damaged > MAX_PROBLEMS:
        problems.append(f"{piece.path} has {damaged - MAX_PROBLEMS} more damaged lines")
    return table(events), problems


def _is_fragment(error: Exception) -> bool:
    """Whether a line was cut short: then it is not JSON. JSON that is not an event was damaged otherwise."""
    return not isinstance(error, msgspec.ValidationError)


def _begins_incarnation(line: bytes, before: list[Event]) -> bool:
    """Whether the line is the first of an incarnation that is not that of the events before."""
    try:
        event = _DECODER.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return False
    is_new = not before or before[-1].incarnation != event.incarnation
    return event.kind == Kind.BROKER_STARTED.value and is_new
