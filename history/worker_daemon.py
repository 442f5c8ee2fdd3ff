"""What Spark starts here to fork its Python workers: ``pyspark.daemon``, from the installed package.

Spark puts its own ``pyspark.zip`` first on the path, out of which every module is compiled at each start: 1.4 s instead
of 0.4. ``nemesis.history.spark`` names this module as ``spark.python.daemon.module`` where workers run on this machine.
"""

from __future__ import annotations

import sys
from pathlib import PurePath
from typing import Final

ARCHIVES: Final = ("pyspark.zip", "py4j-")
"""How the names of Spark's own begin."""


def without_archives(path: list[str]) -> list[str]:
    """Return where to look for modules, Spark's archives left out."""
    return [entry for entry in path if not PurePath(entry).name.startswith(ARCHIVES)]


if __name__ == "__main__":
    sys.path[:] = without_archives(sys.path)
    from pyspark.daemon import manager

    manager()
