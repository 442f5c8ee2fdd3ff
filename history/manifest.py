"""The manifest of a history: ``_manifest.json`` lists the files, the number of events, and the problems of the sources.

A reader accepts a manifest of today's format version and of the versions that ``nemesis.history.older_formats``
names. Any other manifest is foreign.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import msgspec

from nemesis.history.errors import ForeignHistoryError, MissingHistoryError
from nemesis.history.older_formats import READABLE, UNCHANGED
from nemesis.history.remote import RemotePath, unreadable
from nemesis.history.schema import FORMAT_VERSION

FORMAT: Final = "nemesis-history"
MANIFEST: Final = "_manifest.json"


class FileEntry(msgspec.Struct, frozen=True):
    name: str
    rows: int


class Manifest(msgspec.Struct, kw_only=True, frozen=True):
    """The files of a history and the state of its sources."""

    format: str = FORMAT
    version: int = FORMAT_VERSION
    events: int
    files: list[FileEntry]
    problems: list[str] = []
    """Faults of the sources, a sentence each; any makes verdicts ``unknown``."""
    sources: dict[str, int] = {}
    """Bytes read per source file: a source of another size has changed since it was ingested."""
    columns: list[str] = []
    """The columns of the files, in the order of the schema; empty: all. The others are unset in all rows."""
    files_uri: str = msgspec.field(default="", name="at")
    """The URI of the directory of the files, if they are not beside the manifest."""


def read_manifest(directory: Path | RemotePath) -> Manifest:
    """Return the manifest of a history directory; raises HistoryError with one sentence that names the fault."""
    path = directory / MANIFEST
    try:
        marks = msgspec.json.decode(path.read_bytes())
    except FileNotFoundError:
        raise MissingHistoryError(f"{directory} contains no history: expected {MANIFEST}") from None
    except (OSError, msgspec.DecodeError, UnicodeDecodeError) as error:
        raise unreadable(path, error) from None
    if not isinstance(marks, dict) or marks.get("format") != FORMAT:
        raise ForeignHistoryError(f"{path} is not the manifest of a history")
    if marks.get("version") not in {FORMAT_VERSION, *UNCHANGED, *READABLE}:
        raise ForeignHistoryError(
            f"{path} has format version {marks.get('version')!r}, not {FORMAT_VERSION}"
        )
    try:
        return msgspec.convert(marks, Manifest)
    except msgspec.ValidationError as error:
        raise unreadable(path, error) from None
