"""What differs between the releases of Kafka: one row for each minor release.

A row with ``started`` is known to start here, on Java 17. The other rows follow from their neighbours and from Maven's
metadata, and no broker of them was started yet. Releases before 4.0 run with ZooKeeper here, and the others with KRaft:
each of their nodes is controller and broker.

The client of the workloads sends each request in one version and negotiates none. A release that lacks one of these
versions starts and cannot be driven: its row says which (``unknown_request``), and it is refused. Source:
``validVersions`` of the request schemas in the jars of kafka-clients 2.8.0, 3.0.2, 3.1.2, 3.2.3, 3.3.2 and 3.9.1.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from nemesis.support.errors import UsageError

DEFAULT_VERSION: Final = "3.9.1"
_VERSION: Final = re.compile(r"[0-9]+\.[0-9]+\.[0-9]+")


Dependency = tuple[str, str, str]
"""Group, artifact and version."""
RELOAD4J: Final[Dependency] = ("org.slf4j", "slf4j-reload4j", "1.7.36")
"""log4j 1, maintained."""
_LOG4J_GROUP: Final = "org.apache.logging.log4j"
_LOG4J_VERSION: Final = "2.24.3"
LOG4J_2: Final[Dependency] = (_LOG4J_GROUP, "log4j-slf4j-impl", _LOG4J_VERSION)
LOG4J_2_FOR_LOG4J_1: Final[Dependency] = (_LOG4J_GROUP, "log4j-1.2-api", _LOG4J_VERSION)
"""The classes of log4j 1 that Kafka before 4.0 names itself, on log4j 2."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """A minor release and its adjustments."""

    line: tuple[int, int]
    """Major and minor number: (3, 9)."""
    scala: str
    """The Scala version in the name of the Maven artifact ``kafka_SCALA``."""
    started: str | None = None
    """The version of which brokers were started here; None: none was."""
    sha256: str | None = None
    """The checksum of the main jar of the version ``started``, in hexadecimal digits."""
    zookeeper_client: str | None = None
    """The ZooKeeper client that replaces the release's own, which cannot parse an unresolved address on Java 14+."""

    uses_zookeeper: bool = True
    """Whether the cluster runs with ZooKeeper; otherwise its brokers are the controllers of a KRaft quorum, too."""
    logging: tuple[Dependency, ...] = (RELOAD4J,)
    """What brings the output of slf4j to a log; the artifact ``kafka_SCALA`` does not depend on it."""
    logs_replicas: bool = False
    """Whether what its brokers log of their replicas is in the words that ``nemesis.history.broker_logs`` knows."""
    unknown_request: str | None = None
    """A request of the harness's client that brokers of this release do not know; None: they know all."""

    @property
    def name(self) -> str:
        return ".".join(map(str, self.line))

    @property
    def logging_jars(self) -> tuple[str, ...]:
        """The names of the jars that bring the output of slf4j to a log."""
        return tuple(f"{artifact}-{version}.jar" for _, artifact, version in self.logging)

    def main_jar(self, version: str) -> str:
        """Return the name of the jar with the broker."""
        return f"kafka_{self.scala}-{version}.jar"

    def main_checksum(self, version: str) -> str | None:
        """Return the known checksum of the main jar of this version; None when it is not in the table."""
        return self.sha256 if version == self.started else None


_NEW_CLIENT: Final = "3.8.4"
_LOG4J_2_AND_1: Final = (LOG4J_2, LOG4J_2_FOR_LOG4J_1)
_NO_METADATA: Final = "Metadata in version 12"
_NO_LOG_DIRS: Final = "DescribeLogDirs in version 4"

RELEASES: Final = (
    Release(
        line=(1, 0),
        scala="2.12",
        started="1.0.2",
        zookeeper_client=_NEW_CLIENT,
        unknown_request=_NO_METADATA,
    ),
    Release(
        line=(1, 1),
        scala="2.12",
        started="1.1.1",
        zookeeper_client=_NEW_CLIENT,
        unknown_request=_NO_METADATA,
    ),
    Release(
        line=(2, 0),
        scala="2.12",
        started="2.0.1",
        zookeeper_client=_NEW_CLIENT,
        unknown_request=_NO_METADATA,
    ),
    Release(
        line=(2, 1),
        scala="2.12",
        started="2.1.1",
        zookeeper_client=_NEW_CLIENT,
        unknown_request=_NO_METADATA,
    ),
    Release(line=(2, 2), scala="2.12", zookeeper_client=_NEW_CLIENT, unknown_request=_NO_METADATA),
    Release(line=(2, 3), scala="2.12", zookeeper_client=_NEW_CLIENT, unknown_request=_NO_METADATA),
    Release(line=(2, 4), scala="2.13", unknown_request=_NO_METADATA),
    Release(line=(2, 5), scala="2.13", started="2.5.1", unknown_request=_NO_METADATA),
    Release(line=(2, 6), scala="2.13", unknown_request=_NO_METADATA),
    Release(line=(2, 7), scala="2.13", unknown_request=_NO_METADATA),
    Release(line=(2, 8), scala="2.13", started="2.8.0", unknown_request=_NO_METADATA),
    Release(line=(3, 0), scala="2.13", unknown_request=_NO_METADATA),
    Release(line=(3, 1), scala="2.13", unknown_request=_NO_LOG_DIRS),
    Release(line=(3, 2), scala="2.13", unknown_request=_NO_LOG_DIRS),
    Release(line=(3, 3), scala="2.13", logging=_LOG4J_2_AND_1),
    Release(line=(3, 4), scala="2.13", logging=_LOG4J_2_AND_1),
    Release(line=(3, 5), scala="2.13", logging=_LOG4J_2_AND_1),
    Release(line=(3, 6), scala="2.13", logging=_LOG4J_2_AND_1),
    Release(line=(3, 7), scala="2.13", logging=_LOG4J_2_AND_1),
    Release(line=(3, 8), scala="2.13", logging=_LOG4J_2_AND_1),
    Release(
        line=(3, 9),
        scala="2.13",
        logging=_LOG4J_2_AND_1,
        logs_replicas=True,
        started="3.9.1",
        sha256="5631c61356d55611c158291a69ad028f3c4fed5d0a610c62a0853c65c89d10f6",
    ),
    Release(
        line=(4, 0),
        scala="2.13",
        uses_zookeeper=False,
        logging=(LOG4J_2,),
        logs_replicas=True,
        started="4.0.1",
        sha256="fba6da72afd46f708149f6345111354644dc7b28e7adc31f0ee800930d8dbe5b",
    ),
    Release(
        line=(4, 1),
        scala="2.13",
        uses_zookeeper=False,
        logging=(LOG4J_2,),
        logs_replicas=True,
        started="4.1.1",
        sha256="e89428126cc7630a802123ba27aac4442816840b66d60670226feaff65f24fd1",
    ),
)
_OLDEST = next(release for release in RELEASES if release.unknown_request is None)
_NEWEST = RELEASES[-1]
_CHOICE: Final = f"choose a release from {_OLDEST.name} to {_NEWEST.name}"


def find_release(version: str) -> Release:
    """Return the row of a version such as ``3.9.1``; raises ``UsageError`` for one that the target does not run."""
    release = row_of(version)
    if release.unknown_request is not None:
        raise UsageError(
            f"Kafka {version} does not know {release.unknown_request}, which the clients of the harness send: {_CHOICE}"
        )
    return release


def row_of(version: str) -> Release:
    """Return the row of a version, whether the target runs it or not; raises ``UsageError`` when none is there."""
    if _VERSION.fullmatch(version) is None:
        raise UsageError(f"Kafka version {version!r}: expected three numbers, such as 3.9.1")
    major, minor, _ = map(int, version.split("."))
    for release in RELEASES:
        if release.line == (major, minor):
            return release
    raise UsageError(f"the target kafka does not run Kafka {version}: {_CHOICE}")
