"""Bringing home what the containers of a run hold: traces, what was printed, the logs of
brokers and ZooKeeper's transaction logs.

Done before the containers are removed, by the run itself or by ``nemesis clean`` for a harness that was killed; so it
knows a container by its labels alone. Whatever cannot be had is a sentence, not the end: the rest is still worth
having.
"""

from __future__ import annotations

import io
import shutil
import tarfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePath, PurePosixPath
from typing import IO

from docker.models.containers import Container

from nemesis.history.stored_companions import EPOCHS, SNAPSHOT
from nemesis.history.stored_logs import (
    CLEANED,
    HIGH_WATERMARKS,
    LOG_STARTS,
    METADATA,
    RECOVERY_POINTS,
)
from nemesis.history.zookeeper_log import CURRENT_EPOCH
from nemesis.runtimes.docker import labels
from nemesis.runtimes.docker.compose_file import DATA_DIRECTORY
from nemesis.runtimes.docker.engine_calls import FAILURES, reason
from nemesis.support.node_names import BROKER, CONTROLLER

CHUNK_BYTES = 2**20
TRANSACTION_LOGS = DATA_DIRECTORY / "version-2"
"""Of a ZooKeeper member."""
LOG_SUFFIXES = frozenset({".log", ".checkpoint", SNAPSHOT})
"""Of segments, of snapshots of a metadata log, of snapshots of producers. Indexes stay: Kafka's are 10 MiB long while a
segment is written to."""
BESIDE_LOGS = frozenset({HIGH_WATERMARKS, LOG_STARTS, CLEANED, METADATA, RECOVERY_POINTS, EPOCHS})


@dataclass(slots=True)
class Uncollected:
    """What could not be brought home, in sentences."""

    records: list[str] = field(default_factory=list)
    """Without these a run cannot be judged."""
    data: dict[str, str] = field(default_factory=dict)
    """By broker, why its logs were not copied: its disk may have failed in the run."""

    @property
    def problems(self) -> list[str]:
        return [*self.records, *self.data.values()]


def bring_home(containers: Iterable[Container], run_directory: Path) -> Uncollected:
    """Copy everything of these containers into the run's directory; return what could not be had. Blocks."""
    missing = Uncollected()
    for container in containers:
        node = container.labels.get(labels.NODE, "")
        if not node:
            continue
        for label, save in (("log", _save_log), ("history", _save_history)):
            try:
                save(container, node, run_directory)
            except (*FAILURES, tarfile.TarError) as error:
                missing.records.append(_sentence(label, container, error))
        try:
            _save_logs(container, node, run_directory)
        except (*FAILURES, tarfile.TarError) as error:
            missing.data[node] = _sentence("data", container, error)
            shutil.rmtree(logs_at_home(run_directory, node), ignore_errors=True)
    return missing


def _sentence(label: str, container: Container, error: Exception) -> str:
    return f"the {label} of {container.name} was not copied: {reason(error)}"


def _save_log(container: Container, node: str, run_directory: Path) -> None:
    target = run_directory / "logs" / f"{node}.log"
    target.parent.mkdir(parents=True, exist_ok=True)
    with target.open("wb") as file:
        for chunk in container.logs(stream=True, follow=False):
            file.write(chunk)


def _save_history(container: Container, node: str, run_directory: Path) -> None:
    raw = run_directory / "raw"
    if node.startswith("zookeeper-"):
        target = raw / "zookeeper" / node / "version-2"
        for name, content in files(container, TRANSACTION_LOGS):
            if name.startswith("log.") or name == CURRENT_EPOCH:
                _write(content, target / name)
    elif (trace := container.labels.get(labels.TRACE)) is not None:
        for _, content in files(container, PurePosixPath(trace)):
            _write(content, raw / f"{node}.jsonl")


def logs_at_home(run_directory: Path, broker: str) -> Path:
    """Return where the files of a broker's logs are, once they came home."""
    return run_directory / "data" / broker


def _save_logs(container: Container, node: str, run_directory: Path) -> None:
    """Of a broker or controller its logs, with what it has written down about them."""
    home = logs_at_home(run_directory, node)
    has_logs = node.startswith((BROKER, CONTROLLER))
    for path, content in _members(container, DATA_DIRECTORY) if has_logs else ():
        if path.suffix in LOG_SUFFIXES or path.name in BESIDE_LOGS:
            _write(content, home / path)


def files(container: Container, path: PurePath) -> Iterator[tuple[str, IO[bytes]]]:
    """Yield name and content of a container's file, or of each file of its directory, to be read before the next.

    Raises the SDK's errors, TarError and OSError.
    """
    for member, content in _members(container, path):
        yield member.name, content


def _members(container: Container, path: PurePath) -> Iterator[tuple[PurePosixPath, IO[bytes]]]:
    """Yield each file's path below the directory; of a single file its name."""
    chunks, _ = container.get_archive(str(path), chunk_size=CHUNK_BYTES)
    stream = io.BufferedReader(_Stream(iter(chunks)), CHUNK_BYTES)
    with tarfile.open(fileobj=stream, mode="r|") as archive:
        for member in archive:
            content = archive.extractfile(member) if member.isfile() else None
            if content is not None:
                parts = PurePosixPath(member.name).parts
                yield PurePosixPath(*parts[1:] or parts), content


def _write(content: IO[bytes], target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    with target.open("wb") as file:
        shutil.copyfileobj(content, file, CHUNK_BYTES)


class _Stream(io.RawIOBase):
    """Chunks as a file to read from."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        super().__init__()
        self._chunks = chunks
        self._rest = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]  # the stubs know no name for buffers
        while not self._rest:
            chunk = next(self._chunks, None)
            if chunk is None:
                return 0
            self._rest = memoryview(chunk)
        size = min(len(buffer), len(self._rest))
        buffer[:size] = self._rest[:size]
        self._rest = self._rest[size:]
        return size
