"""How paths are written for people."""

from __future__ import annotations

from pathlib import Path


def short(path: Path) -> str:
    """Return the path, relative when it lies below the working directory."""
    here = Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)
