"""A run that lies in an object store, or on any file system that pyarrow reads, is judged from here.

Nothing is ever written where it lies: the store gets a run directory of it, with the results. Its history is read
where it is, row group by row group; only one that this version cannot read, or that was never made, costs a copy of the
raw files, from which it is made here. To fetch a run again replaces what was fetched before.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Final

import msgspec
import pyarrow as pa

from nemesis.history.errors import HistoryError, MissingHistoryError
from nemesis.history.foreign import names
from nemesis.history.manifest import MANIFEST, read_manifest
from nemesis.history.remote import RemotePath, brief
from nemesis.history.run_directory import RunDirectory, decode_info, write_atomically

DRAFT: Final = ".fetch-"
"""Followed by the number of the process that fetches."""
SMALL_FILES: Final = ("plan.yaml", "compose.yaml", names.FILE)


def fetch(source: RemotePath, store: Path) -> RunDirectory:
    """Return a run directory in the store for the run at this place; its ``run.json`` names the place.

    Raises HistoryError when there is no run of ours that can be read, or the store cannot be written. Nothing is left
    behind then.
    """
    draft = RunDirectory(store.absolute() / f"{DRAFT}{os.getpid()}")
    try:
        try:
            info = decode_info((source / draft.info_file.name).read_bytes(), source)
        except FileNotFoundError:
            raise MissingHistoryError(
                f"{source} is not the directory of a run: it has no {draft.info_file.name}"
            ) from None
        draft.path.mkdir(parents=True)
        draft.write_info(msgspec.structs.replace(info, origin=source.uri))
        for name in (*SMALL_FILES, draft.mutant_file.name):
            if (source / name).exists():
                (draft.path / name).write_bytes((source / name).read_bytes())
        _fetch_events(source, draft)
        return _put(draft, store.absolute() / info.scenario, source)
    except (OSError, pa.ArrowException) as error:
        raise MissingHistoryError(
            f"{source} cannot be fetched into {store}: {brief(error)}"
        ) from None
    finally:
        shutil.rmtree(draft.path, ignore_errors=True)


def _fetch_events(source: RemotePath, draft: RunDirectory) -> None:
    """Say where the history is, or copy what it can be made of."""
    history, raw = source / draft.history.name, source / draft.raw.name
    try:
        manifest = read_manifest(history)
    except HistoryError:
        if not raw.exists():
            raise
        raw.copy_to(draft.raw)
        return
    draft.history.mkdir()
    located = msgspec.structs.replace(manifest, files_uri=manifest.files_uri or history.uri)
    write_atomically(draft.history / MANIFEST, msgspec.json.format(msgspec.json.encode(located)))


def _put(draft: RunDirectory, scenario: Path, source: RemotePath) -> RunDirectory:
    """Move it to its place: that of the same run fetched before, else a free one."""
    scenario.mkdir(exist_ok=True)
    for number in range(1, 1000):
        path = scenario / (source.name if number == 1 else f"{source.name}-{number}")
        if path.exists():
            try:
                is_same = RunDirectory.open(path).read_info().origin == source.uri
            except HistoryError:
                is_same = False
            if not is_same:
                continue
            shutil.rmtree(path)
        return RunDirectory(draft.path.rename(path))
    raise FileExistsError(f"{scenario / source.name} and its successors exist already")
