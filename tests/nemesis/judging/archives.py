"""Simulated runs of older versions of nemesis, in archives."""

from __future__ import annotations

import tarfile
from pathlib import Path

from nemesis.history.run_directory import RunDirectory


def archived(version: int, directory: Path) -> RunDirectory:
    """A simulated run with a restarted controller, as the version that recorded it left it."""
    path = Path(__file__).parent / "stored_runs" / f"format-{version}.tar.xz"
    with tarfile.open(path) as archive:
        # Python 3.11.0 to 3.11.3 have no filters: there the attribute has no effect.
        archive.extraction_filter = getattr(tarfile, "data_filter", None)
        archive.extractall(directory)
    return RunDirectory.open(directory)
