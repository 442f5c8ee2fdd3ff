"""What ran: versions for ``run.json``, so that a run can be understood years later."""

from __future__ import annotations

import platform
from importlib import metadata
from typing import Final

from nemesis.support import java
from nemesis.support.runtime_names import DOCKER, SIMULATION

LIBRARIES: Final = ("nemesis-kafka", "kio", "kazoo", "pyspark", "pyarrow", "msgspec")


def versions(runtime: str, *, has_zookeeper: bool = True) -> dict[str, str]:
    """Return what ran: our libraries, Python, the kernel; Java, ZooKeeper and Docker where they are real.

    ``has_zookeeper``: whether the cluster runs with ZooKeeper.
    """
    present = {
        **{name: version for name in LIBRARIES if (version := _version(name)) is not None},
        "python": platform.python_version(),
        "kernel": f"{platform.system()} {platform.release()}",
    }
    if runtime == SIMULATION:
        return present
    if runtime == DOCKER:
        from nemesis.runtimes.docker.engine import require_docker

        present["docker"] = require_docker()
    present["java"] = str(java.java_version(java.require_java()))
    if not has_zookeeper:
        return present
    jars = [jar.stem for jar in java.zookeeper_classpath() if jar.stem.startswith("zookeeper-3")]
    present["zookeeper"] = jars[0].removeprefix("zookeeper-") if jars else "unknown"
    return present


def _version(name: str) -> str | None:
    """Return the version of a distribution; None if it is not installed, as those of extras may be."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None
