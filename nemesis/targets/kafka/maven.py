"""The jars of a Kafka release and of its dependencies, downloaded by Maven.

Maven uses the repository that it is configured for. It is run with strict checksums: it refuses a file that differs
from the checksum that the repository states.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Final
from xml.sax.saxutils import escape

from nemesis.support.errors import MissingRequirement
from nemesis.targets.kafka.releases import RELOAD4J, Dependency, Release

TIMEOUT_S: Final = 900.0
REASON_CHARACTERS: Final = 300
_ERROR: Final = re.compile(r"\[ERROR\] +(\S.*?)(?: -> \[Help \d+\])?$", re.MULTILINE)
CURE: Final = "install it (Debian and Ubuntu: `sudo apt-get install maven`)"
EXCLUDED: Final = (
    ("log4j", "log4j"),
    ("org.slf4j", "slf4j-log4j12"),
    ("ch.qos.logback", "logback-classic"),
    ("ch.qos.logback", "logback-core"),
)
"""Other implementations of what ``Release.logging`` brings."""
EXCLUDED_WITH_LOG4J_2: Final = (
    ("ch.qos.reload4j", "reload4j"),
    ("org.slf4j", "slf4j-reload4j"),
)
_PLUGIN: Final = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies"


def find_maven() -> Path:
    """Return ``mvn``; raises ``MissingRequirement``."""
    path = shutil.which("mvn")
    if path is None:
        raise MissingRequirement(f"Maven downloads Kafka's jars and was not found: {CURE}")
    return Path(path)


def download(release: Release, version: str, directory: Path) -> None:
    """Copy the jars of this version into the directory; blocks. Raises ``MissingRequirement`` in one sentence."""
    maven = find_maven()
    with tempfile.TemporaryDirectory(prefix="nemesis-maven-") as folder:
        pom = Path(folder) / "pom.xml"
        pom.write_text(project(release, version), encoding="utf-8")
        command = [str(maven), "--batch-mode", "--quiet", "--strict-checksums", "--file", str(pom)]
        command += [
            "-Dstyle.color=never",
            _PLUGIN,
            "-DincludeScope=runtime",
            f"-DoutputDirectory={directory}",
        ]
        _run(command, version)


def project(release: Release, version: str) -> str:
    """Return a Maven project whose dependencies are this version of Kafka and a logging binding."""
    excluded = EXCLUDED if RELOAD4J in release.logging else (*EXCLUDED, *EXCLUDED_WITH_LOG4J_2)
    client = release.zookeeper_client
    pinned = (
        ""
        if client is None
        else _dependency(("org.apache.zookeeper", "zookeeper", client), excluded)
    )
    kafka = ("org.apache.kafka", f"kafka_{release.scala}", version)
    dependencies = "".join(
        _dependency(artifact, excluded) for artifact in (kafka, *release.logging)
    )
    return (
        '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>'
        f"<groupId>nemesis</groupId><artifactId>kafka</artifactId><version>{escape(version)}</version>"
        "<packaging>pom</packaging>"
        f"<dependencyManagement><dependencies>{pinned}</dependencies></dependencyManagement>"
        f"<dependencies>{dependencies}</dependencies></project>\n"
    )


def _dependency(dependency: Dependency, excluded: Iterable[tuple[str, str]]) -> str:
    group, artifact, version = dependency
    exclusions = "".join(
        f"<exclusion><groupId>{other}</groupId><artifactId>{name}</artifactId></exclusion>"
        for other, name in excluded
    )
    return (
        f"<dependency><groupId>{group}</groupId><artifactId>{artifact}</artifactId>"
        f"<version>{escape(version)}</version><exclusions>{exclusions}</exclusions></dependency>"
    )


def _run(command: list[str], version: str) -> None:
    try:
        ran = subprocess.run(
            command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise MissingRequirement(f"Maven cannot download Kafka {version}: {error}") from None
    if ran.returncode != 0:
        complaint = _ERROR.search(ran.stdout)
        reason = "it printed no error" if complaint is None else complaint[1][:REASON_CHARACTERS]
        raise MissingRequirement(
            f"Maven cannot download Kafka {version}: {reason}: check the version and Maven's settings, or use "
            "--kafka-home"
        )
