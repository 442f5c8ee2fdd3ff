"""Stores Spark's classes: ``python -m nemesis.history.class_archiver`` starts Spark for it, unless that was done."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path
from typing import Final

from pyspark import SparkContext

from nemesis.history import class_archive
from nemesis.history.spark import context, run_all, stop

_WAIT_S: Final = 120.0


def make() -> Path:
    """Start Spark, let it work and store its classes; return the archive. Raises SparkError if Spark does not start,
    and RuntimeError if its JVM stored nothing.
    """
    archive = class_archive.path()
    archive.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=archive.parent) as directory:
        made = Path(directory) / archive.name
        spark = context(java_options=class_archive.making_options(made))
        run_all(spark, str, range(4))
        jvm: subprocess.Popen[bytes] = SparkContext._gateway.proc  # noqa: SLF001
        stop()
        assert jvm.stdin is not None
        jvm.stdin.close()
        jvm.wait(_WAIT_S)
        if not made.exists():
            raise RuntimeError("the JVM of Spark ended without storing its classes")
        made.replace(archive)
    return archive


if __name__ == "__main__":
    if not class_archive.path().exists():
        make()
