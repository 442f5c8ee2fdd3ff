"""The metadata logs and snapshots of a KRaft quorum's voters, copied into the record of a run (``raw/quorum/``)."""

from __future__ import annotations

import shutil
from pathlib import Path

from nemesis.history.quorum_files import METADATA_LOG, SEGMENTS, SNAPSHOTS


def copy_metadata_log(log_dir: Path, run_directory: Path, node: str) -> None:
    """Copy what the voter has in its first log directory, perhaps nothing; raises OSError."""
    target = run_directory / "raw" / "quorum" / node
    target.mkdir(parents=True, exist_ok=True)
    source = log_dir / METADATA_LOG
    for file in sorted([*source.glob(SEGMENTS), *source.glob(SNAPSHOTS)]):
        shutil.copy2(file, target / file.name)
