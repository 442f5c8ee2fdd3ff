"""Spark's classes, stored as the JVM has them in memory: to load and verify them is most of Spark's start.

``python -m history.class_archive`` starts Spark once and stores what it loaded (JEP 350, dynamic class-data sharing:
70 MB in the virtual environment), unless that was done. Later starts map the file. The JVM looks whether the same Java
made it of the same jars and does without it otherwise, so it is never in the way.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Final

PLACE: Final = Path(sys.prefix) / "share" / "nemesis"
_QUIET: Final = ("-Xlog:disable", "-Xlog:all=error:stderr")
"""What the JVM thinks of an archive that it cannot use would otherwise stand on stdout."""
_WAIT_S: Final = 120.0


def path() -> Path:
    """Return where the archive of the installed PySpark is, or would be."""
    return PLACE / f"spark-{version('pyspark')}.jsa"


def options() -> Sequence[str]:
    """Return the options with which a JVM uses the archive; none if it was not made."""
    return (f"-XX:SharedArchiveFile={path()}", *_QUIET) if path().exists() else ()


def make() -> Path:
    """Start Spark, let it work and store its classes; return the archive. Raises SparkError if Spark does not start,
    and RuntimeError if its JVM stored nothing.
    """
    from pyspark import SparkContext

    from history.spark import context, run_all, stop

    PLACE.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=PLACE) as directory:
        made = Path(directory) / path().name
        spark = context(java_options=(f"-XX:ArchiveClassesAtExit={made}", *_QUIET))
        run_all(spark, str, range(4))
        jvm: subprocess.Popen[bytes] = SparkContext._gateway.proc  # noqa: SLF001
        stop()
        assert jvm.stdin is not None
        jvm.stdin.close()
        jvm.wait(_WAIT_S)
        if not made.exists():
            raise RuntimeError("the JVM of Spark ended without storing its classes")
        made.replace(path())
    return path()


if __name__ == "__main__":
    if not path().exists():
        make()
