"""How paths are written for people, and where what can be made again is kept."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from nemesis.support.errors import MissingRequirement

CURE_FOR_CACHE: Final = "set XDG_CACHE_HOME to a directory that can be written"


def short(path: Path) -> str:
    """Return the path, relative when it lies below the working directory."""
    base = Path.cwd()
    return str(path.relative_to(base) if path.is_relative_to(base) else path)


def cache_directory() -> Path:
    """Return this user's cache directory of ours, made when missing; raises ``MissingRequirement``."""
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "nemesis"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise MissingRequirement(
            f"the cache {folder} cannot be made: {error.strerror}: {CURE_FOR_CACHE}"
        ) from None
    return folder
