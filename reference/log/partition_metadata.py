"""``partition.metadata``: which topic id a log directory belongs to (KIP-516).

Two lines, ``version: 0`` and ``topic_id: <22 characters>``, the id in URL-safe base64 without padding.
"""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Final
from uuid import UUID

from nemesis.reference.log.errors import KafkaStorageError
from nemesis.reference.ports import AtomicFiles, Files

PARTITION_METADATA: Final = "partition.metadata"
_ID_LENGTH: Final = 22


def topic_id_to_string(topic_id: UUID) -> str:
    """Return Kafka's spelling of a topic id."""
    return urlsafe_b64encode(topic_id.bytes).decode().rstrip("=")


def topic_id_from_string(text: str) -> UUID:
    """Return the id; raises ValueError when the text is not one."""
    if len(text) != _ID_LENGTH:
        raise ValueError(f"a topic id has {_ID_LENGTH} characters, not {len(text)}: {text!r}")
    try:
        return UUID(bytes=urlsafe_b64decode(text + "=="))
    except ValueError:
        raise ValueError(f"a topic id is written in URL-safe base64: {text!r} is not") from None


def write_partition_metadata(atomic: AtomicFiles, directory: str, topic_id: UUID) -> None:
    """Write the file, atomically. Raises OSError."""
    text = f"version: 0\ntopic_id: {topic_id_to_string(topic_id)}\n"
    atomic.replace(f"{directory}/{PARTITION_METADATA}", text.encode())


def read_partition_metadata(files: Files, directory: str) -> UUID | None:
    """Return the id; None when there is no file. Raises OSError, or KafkaStorageError when it is malformed."""
    path = f"{directory}/{PARTITION_METADATA}"
    if not files.exists(path):
        return None
    data = files.read(path, 0, files.size(path))
    files.close(path)
    try:
        lines = [line.partition(": ") for line in data.decode().splitlines()]
        if [line[0] for line in lines] != ["version", "topic_id"] or lines[0][2] != "0":
            raise ValueError("expected the lines 'version: 0' and 'topic_id: ...'")
        return topic_id_from_string(lines[1][2])
    except ValueError as error:
        raise KafkaStorageError(f"malformed {path}: {error}") from error
