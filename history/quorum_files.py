"""What the files of a KRaft quorum are called."""

from __future__ import annotations

from typing import Final

METADATA_LOG: Final = "__cluster_metadata-0"
"""The directory of the log in a voter's first log directory."""
SEGMENTS: Final = "*.log"
SNAPSHOTS: Final = "*.checkpoint"
