"""C libraries for LD_PRELOAD: compiled on this machine by its C compiler, once for each version of the source.

Kept in the user's cache, whole or not there at all. One that is there needs no compiler.
"""

from __future__ import annotations

import hashlib
import platform
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Final

from nemesis.support.errors import MissingRequirement
from nemesis.support.paths import CURE_FOR_CACHE, cache_directory

COMPILERS: Final = ("cc", "gcc", "clang")
OPTIONS: Final = ("-std=gnu11", "-O2", "-shared", "-fPIC")
LIBRARIES: Final = ("-ldl",)
COMPILE_TIMEOUT_S: Final = 60.0
SEPARATORS: Final = " :"
"""Of the names in LD_PRELOAD, which knows no way to escape them."""

CURE: Final = "install one (Debian and Ubuntu: `sudo apt-get install gcc libc6-dev`)"


def compiled_library(source: Path, *, name: str, purpose: str) -> Path:
    """Return the library of this C file, compiled when it is not there yet; blocks for a moment.

    ``purpose`` completes "the library that ..." in messages. Raises ``MissingRequirement`` in one sentence.
    """
    key = hashlib.sha256(source.read_bytes() + repr((OPTIONS, platform.machine())).encode())
    library = cache_directory() / f"libnemesis-{name}-{key.hexdigest()[:16]}.so"
    if any(separator in str(library) for separator in SEPARATORS):
        raise MissingRequirement(
            f"the library that {purpose} cannot be preloaded from {str(library)!r}, "
            "which has a space or a colon: set XDG_CACHE_HOME to another directory"
        )
    if not library.is_file():
        _compile(source, library, purpose)
    return library


def _compile(source: Path, library: Path, purpose: str) -> None:
    compiler = next(filter(None, map(shutil.which, COMPILERS)), None)
    cure = f"the library that {purpose} needs a C compiler: {CURE}"
    if compiler is None:
        raise MissingRequirement(f"no C compiler was found, and {cure}")
    try:
        with tempfile.TemporaryDirectory(dir=library.parent, prefix="draft-") as folder:
            draft = Path(folder) / library.name
            _run([compiler, *OPTIONS, "-o", str(draft), str(source), *LIBRARIES], cure)
            draft.replace(library)
    except OSError as error:
        raise MissingRequirement(
            f"the library that {purpose} cannot be kept in {library.parent}: {error.strerror}: {CURE_FOR_CACHE}"
        ) from None


def _run(command: list[str], cure: str) -> None:
    compiler = command[0]
    try:
        ran = subprocess.run(
            command, capture_output=True, text=True, timeout=COMPILE_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise MissingRequirement(f"{compiler} cannot be run ({error})") from None
    if ran.returncode != 0:
        complaint = next(filter(None, ran.stderr.splitlines()), "it said nothing")
        raise MissingRequirement(f"{compiler} does not compile ({complaint}), and {cure}")
