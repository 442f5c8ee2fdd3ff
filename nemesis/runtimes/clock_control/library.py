"""The preloaded library: compiled on this machine by its C compiler, once for each version of the source.

Kept in the user's cache, whole or not there at all. One that is there needs no compiler. Containers get the same file
in their image, so their C library must be glibc, and not older than what the file asks for: glibc 2.34 where it was
compiled with that or a newer one.
"""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path
from typing import Final

from nemesis.support.errors import MissingRequirement
from nemesis.support.paths import cache_directory

SOURCE: Final = Path(__file__).with_name("wall_clock.c")
COMPILERS: Final = ("cc", "gcc", "clang")
OPTIONS: Final = ("-std=gnu11", "-O2", "-shared", "-fPIC")
LIBRARIES: Final = ("-ldl",)
COMPILE_TIMEOUT_S: Final = 60.0
SEPARATORS: Final = " :"
"""Of the names in LD_PRELOAD, which knows no way to escape them."""

CURE: Final = (
    "install one that moves wall clocks (Debian and Ubuntu: `sudo apt-get install gcc libc6-dev`)"
)


@cache
def wall_clock_library() -> Path:
    """Return the library, compiled when it is not there yet; blocks for a moment.

    Raises ``MissingRequirement`` in one sentence.
    """
    key = hashlib.sha256(SOURCE.read_bytes() + repr((OPTIONS, platform.machine())).encode())
    library = cache_directory() / f"libnemesis-wall-clock-{key.hexdigest()[:16]}.so"
    if any(separator in str(library) for separator in SEPARATORS):
        raise MissingRequirement(
            f"the library that moves wall clocks cannot be preloaded from {str(library)!r}, "
            "which has a space or a colon: set XDG_CACHE_HOME to another directory"
        )
    if not library.is_file():
        _compile(library)
    return library


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


def _compile(library: Path) -> None:
    compiler = next(filter(None, map(shutil.which, COMPILERS)), None)
    if compiler is None:
        raise MissingRequirement(f"no C compiler was found, {CURE}")
    try:
        with tempfile.TemporaryDirectory(dir=library.parent, prefix="draft-") as folder:
            draft = Path(folder) / library.name
            _run([compiler, *OPTIONS, "-o", str(draft), str(SOURCE), *LIBRARIES])
            draft.replace(library)
    except OSError as error:
        raise MissingRequirement(
            f"the library that moves wall clocks cannot be kept in {library.parent}: {error.strerror}"
        ) from None


def _run(command: list[str]) -> None:
    compiler = command[0]
    try:
        ran = subprocess.run(
            command, capture_output=True, text=True, timeout=COMPILE_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise MissingRequirement(f"{compiler} cannot be run ({error})") from None
    if ran.returncode != 0:
        complaint = next(filter(None, ran.stderr.splitlines()), "it said nothing")
        raise MissingRequirement(f"{compiler} does not compile ({complaint}), {CURE}")
