"""Kafka's checkpoint files: ``version``, ``count``, then one line of space-separated fields per entry.

replication-offset-checkpoint (topic, partition, high watermark; one per log directory), leader-epoch-checkpoint
(epoch, start offset; one per partition). A file is written anew, atomically. A malformed one raises
KafkaStorageError: guessing at a high watermark or an epoch would lose records silently.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from nemesis.reference.log.errors import KafkaStorageError
from nemesis.reference.model import TopicPartition
from nemesis.reference.ports import AtomicFiles, Files

_VERSION: Final = 0


def encode_checkpoint(entries: Iterable[tuple[object, ...]]) -> bytes:
    """Return a file's content, to be written with ``AtomicFiles.replace``."""
    lines = [" ".join(map(str, entry)) for entry in entries]
    return ("\n".join([str(_VERSION), str(len(lines)), *lines]) + "\n").encode()


def read_checkpoint(files: Files, path: str, fields: int) -> list[list[str]]:
    """Return the entries, each split into that many fields; empty when there is no file.

    Raises OSError, or KafkaStorageError when the file is malformed.
    """
    if not files.exists(path):
        return []
    data = files.read(path, 0, files.size(path))
    try:
        lines = data.decode().splitlines()
        header, entries = lines[:2], [line.split(" ") for line in lines[2:]]
        if header != [str(_VERSION), str(len(entries))]:
            raise ValueError(
                f"it begins with the lines {header}: expected are version 0 and the number of entries,"
                f" of which there are {len(entries)}"
            )
        if any(len(entry) != fields for entry in entries):
            raise ValueError(f"an entry has not {fields} fields")
    except ValueError as error:
        raise KafkaStorageError(f"malformed checkpoint file {path}: {error}") from error
    return entries


def write_offsets(atomic: AtomicFiles, path: str, offsets: Mapping[TopicPartition, int]) -> None:
    """Write one offset per partition. Raises OSError."""
    rows = ((tp.topic, tp.partition, offset) for tp, offset in offsets.items())
    atomic.replace(path, encode_checkpoint(rows))


def read_offsets(files: Files, path: str) -> dict[TopicPartition, int]:
    """Return what ``write_offsets`` wrote; raises as ``read_checkpoint`` does."""
    try:
        return {
            TopicPartition(topic, int(partition)): int(offset)
            for topic, partition, offset in read_checkpoint(files, path, fields=3)
        }
    except ValueError as error:
        raise KafkaStorageError(f"malformed checkpoint file {path}: {error}") from error
