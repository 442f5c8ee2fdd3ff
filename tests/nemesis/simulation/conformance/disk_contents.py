"""The contents of a disk that two implementations must share."""

from __future__ import annotations

from collections.abc import Mapping

from nemesis.reference.ports import TEMPORARY


def lasting(files: Mapping[str, bytes]) -> dict[str, bytes]:
    """Without what replacements may leave."""
    return {path: data for path, data in files.items() if not path.endswith(TEMPORARY)}
