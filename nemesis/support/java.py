"""Where the Java runtime and ZooKeeper's jars are; ``doctor`` and the runtime ask the same questions."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from nemesis.support.errors import MissingRequirement
from nemesis.support.extras import require_package

MINIMUM_VERSION = 17
"""Spark 4's own minimum; ZooKeeper would do with less."""

VERSION_TIMEOUT_S = 30.0

CURE = (
    f"install a Java {MINIMUM_VERSION}+ runtime (Debian and Ubuntu: "
    "`sudo apt-get install default-jre-headless`) or set JAVA_HOME"
)

ZOOKEEPER_JARS = (
    "zookeeper-",
    "netty-",
    "slf4j-api-",
    "log4j-",
    "metrics-core-",
    "snappy-java-",
    "commons-io-",
    "commons-lang",
    "commons-cli-",
)
"""What ``QuorumPeerMain`` loads, by the beginnings of the jars' names."""


def properties_text(values: Mapping[str, object]) -> str:
    """Return the content of a Java properties file with these values. Keys are plain words.

    ``java.util.Properties`` reads Latin-1, so every character outside ASCII is escaped, by UTF-16 code units.
    """
    return "".join(f"{key}={_escaped(str(value))}\n" for key, value in values.items())


def _escaped(value: str) -> str:
    # The bytes of a path count: the JVM decodes them as UTF-8 where this Python's locale may have another encoding.
    units = memoryview(os.fsencode(value).decode().encode("utf-16")[2:]).cast("H")
    plain = (chr(unit) if " " < chr(unit) <= "~" else f"\\u{unit:04x}" for unit in units)
    return "".join("\\\\" if character == "\\" else character for character in plain)


def find_java() -> Path:
    """Return the ``java`` of JAVA_HOME, else of PATH; raises ``MissingRequirement`` when it is missing."""
    home = os.environ.get("JAVA_HOME")
    result = shutil.which("java", path=str(Path(home) / "bin")) if home else None
    result = result or shutil.which("java")
    if result is None:
        raise MissingRequirement(f"no Java runtime was found: {CURE}")
    return Path(result)


def java_version(java: Path) -> int:
    """Return the feature version (17, 21) that this ``java`` tells; raises ``MissingRequirement``."""
    try:
        said = subprocess.run(
            [java, "-version"],
            capture_output=True,
            text=True,
            timeout=VERSION_TIMEOUT_S,
            check=False,
        ).stderr
    except (OSError, subprocess.TimeoutExpired) as error:
        raise MissingRequirement(f"{java} cannot be run ({error}): {CURE}") from None
    match = re.search(r'version "(?:1\.)?(\d+)', said)
    if match is None:
        raise MissingRequirement(f"{java} does not tell its version: {CURE}")
    return int(match[1])


def java_build(java: Path) -> str:
    """Return what tells one build of Java from another: the file ``release`` of its home, else its feature version.

    Raises ``MissingRequirement``.
    """
    try:
        return (java.resolve().parent.parent / "release").read_text("utf-8", errors="replace")
    except OSError:
        return str(java_version(java))


def jars_in(directory: Path) -> list[Path]:
    """Return the jars, without links to nothing, in an order that is always the same: stored classes demand it."""
    return sorted(jar for jar in directory.glob("*.jar") if jar.is_file())


def require_java() -> Path:
    """Return a ``java`` that is new enough; raises ``MissingRequirement``."""
    java = find_java()
    version = java_version(java)
    if version < MINIMUM_VERSION:
        raise MissingRequirement(f"{java} is Java {version}: {CURE}")
    return java


def zookeeper_classpath() -> list[Path]:
    """Return the jars that a ZooKeeper server needs; raises ``MissingRequirement`` when PySpark has none."""
    require_package("pyspark", "the ZooKeeper server, whose jars come with PySpark,", "local")
    spec = importlib.util.find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise MissingRequirement("PySpark is damaged: install it again")
    folder = Path(spec.origin).parent / "jars"
    jars = sorted(jar for jar in folder.glob("*.jar") if jar.name.startswith(ZOOKEEPER_JARS))
    if not any(jar.name.startswith("zookeeper-3") for jar in jars):
        raise MissingRequirement(
            f"no ZooKeeper jar in {folder}: PySpark is damaged, install it again with `make install`"
        )
    return jars
