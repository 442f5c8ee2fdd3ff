"""Spark's classes, stored as the JVM has them in memory: to load and verify them is most of Spark's start.

``nemesis.history.class_archiver`` stores them once (JEP 350, dynamic class-data sharing: 70 MB in the virtual
environment); later starts map the file. The JVM looks whether the same Java made it of the same jars and does
without it otherwise, so it is never in the way.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

DIRECTORY: Final = Path(sys.prefix) / "share" / "nemesis"
_QUIET: Final = ("-Xlog:disable", "-Xlog:all=error:stderr")
"""What the JVM thinks of an archive that it cannot use would otherwise stand on stdout."""


def path() -> Path:
    """Return where the archive of the installed PySpark is, or would be."""
    from importlib.metadata import version  # costs more than the rest of this module

    return DIRECTORY / f"spark-{version('pyspark')}.jsa"


def options() -> Sequence[str]:
    """Return the options with which a JVM uses the archive; none if it was not made."""
    return (f"-XX:SharedArchiveFile={path()}", *_QUIET) if path().exists() else ()


def making_options(file: Path) -> Sequence[str]:
    """Return the options with which a JVM stores the classes that it loaded when it ends."""
    return (f"-XX:ArchiveClassesAtExit={file}", *_QUIET)
