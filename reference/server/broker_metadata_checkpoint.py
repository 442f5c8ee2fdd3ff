"""``meta.properties``: which broker of which cluster a log directory belongs to.

One in each log directory, in Java's format: ``version=0``, ``broker.id``, ``cluster.id``. A broker that finds another
id there than its own, or another cluster than ZooKeeper's, does not start: it would serve somebody else's logs.
Source: kafka.server.BrokerMetadataCheckpoint, and MetaPropertiesEnsemble of Kafka 3.9.

A directory whose file cannot be read because the medium fails is left to ``LogManager``, which takes it offline.

BrokerMetadataError
├── InconsistentBrokerMetadataError   a file is malformed, or log directories contradict one another
├── InconsistentBrokerIdError         ``broker.id`` is not the stored one
└── InconsistentClusterIdError        the cluster in ZooKeeper is not the stored one
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from nemesis.reference.ports import Disk

_logger = logging.getLogger(__name__)

META_PROPERTIES: Final = "meta.properties"


class BrokerMetadataError(Exception):
    """The broker must not start with these log directories. Mend its configuration, or move the directories away."""


class InconsistentBrokerMetadataError(BrokerMetadataError):
    """What the log directories say cannot be."""


class InconsistentBrokerIdError(BrokerMetadataError):
    """The directories are another broker's."""


class InconsistentClusterIdError(BrokerMetadataError):
    """The directories are of another cluster."""


@dataclass(frozen=True, slots=True)
class BrokerMetadata:
    """None: the file does not say."""

    cluster_id: str | None
    broker_id: int | None


class BrokerMetadataCheckpoint:
    """The files of a broker's log directories."""

    def __init__(self, disk: Disk, log_dirs: Sequence[str]) -> None:
        self._files = disk.files
        self._atomic = disk.atomic
        self._log_dirs = tuple(log_dirs)

    def stored_broker_id(self) -> int | None:
        """Return the id that the directories were written under, if there is one; raises ``BrokerMetadataError``."""
        first: tuple[str, int] | None = None
        for path, stored in self._read_all():
            if stored.broker_id is None:
                continue
            if first is not None and stored.broker_id != first[1]:
                raise InconsistentBrokerMetadataError(
                    f"{first[0]} says broker.id {first[1]}, and {path} {stored.broker_id}: "
                    "log.dirs has directories of several brokers"
                )
            first = first or (path, stored.broker_id)
        return None if first is None else first[1]

    def verify(self, own: BrokerMetadata) -> None:
        """Raise ``BrokerMetadataError`` when a directory is not the broker's own."""
        for path, stored in self._read_all():
            if stored.cluster_id not in (None, own.cluster_id):
                raise InconsistentClusterIdError(
                    f"{path} says cluster.id {stored.cluster_id}, and ZooKeeper {own.cluster_id}: "
                    "zookeeper.connect may lead to the wrong cluster"
                )
            if stored.broker_id not in (None, own.broker_id):
                raise InconsistentBrokerIdError(
                    f"broker.id is {own.broker_id}, and {path} says {stored.broker_id}: "
                    "log.dirs has the directory of another broker"
                )

    def write(self, log_dir: str, own: BrokerMetadata) -> None:
        """Let the directory, which exists, be the broker's own from now on. Raises OSError."""
        path = f"{log_dir}/{META_PROPERTIES}"
        if not self._files.exists(path) or self._read(path) != own:
            self._atomic.replace(path, _encode(own))

    def _read_all(self) -> Iterator[tuple[str, BrokerMetadata]]:
        for log_dir in self._log_dirs:
            path = f"{log_dir}/{META_PROPERTIES}"
            try:
                if self._files.exists(path):
                    yield path, self._read(path)
            except OSError as error:
                _logger.error("%s cannot be read: %s", path, error)

    def _read(self, path: str) -> BrokerMetadata:
        data = self._files.read(path, 0, self._files.size(path))
        self._files.close(path)
        return _decode(path, data)


def _encode(metadata: BrokerMetadata) -> bytes:
    lines = (
        "version=0",
        f"broker.id={metadata.broker_id}",
        f"cluster.id={metadata.cluster_id}",
    )
    return "".join(f"{line}\n" for line in lines).encode()


def _decode(path: str, data: bytes) -> BrokerMetadata:
    lines = data.decode("latin-1").splitlines()
    pairs = [line.partition("=") for line in lines if line and line[0] not in "#!"]
    properties = {name.strip(): value.strip() for name, _, value in pairs}
    version, broker_id = properties.get("version"), properties.get("broker.id")
    if version != "0":
        raise InconsistentBrokerMetadataError(f"{path} has version {version}: it has to be 0")
    if broker_id is not None and not broker_id.isdecimal():
        raise InconsistentBrokerMetadataError(f"{path} has broker.id {broker_id!r}, not a number")
    return BrokerMetadata(
        cluster_id=properties.get("cluster.id"),
        broker_id=None if broker_id is None else int(broker_id),
    )
