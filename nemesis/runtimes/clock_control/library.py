"""The preloaded library that moves wall clocks.

Containers get the same file in their image, so their C library must be glibc, and not older than what the file asks
for: glibc 2.34 where it was compiled with that or a newer one.
"""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path
from typing import Final

from nemesis.support.errors import MissingRequirement
from nemesis.support.preloaded_library import compiled_library

SOURCE: Final = Path(__file__).with_name("wall_clock.c")


@cache
def wall_clock_library() -> Path:
    """Return the library, compiled when it is not there yet; blocks for a moment.

    Raises ``MissingRequirement`` in one sentence.
    """
    return compiled_library(SOURCE, name="wall-clock", purpose="moves wall clocks")


def found_library() -> Path | None:
    """Return the library; None on a machine that cannot compile it."""
    try:
        return wall_clock_library()
    except MissingRequirement:
        return None


def environment(library: Path, page: Path) -> dict[str, str]:
    """Return what lets a program have the wall clock of this page, beside what is preloaded already."""
    preloaded = os.environ.get("LD_PRELOAD", "").split()
    return {"LD_PRELOAD": " ".join([str(library), *preloaded]), "NEMESIS_WALL_CLOCK": str(page)}
