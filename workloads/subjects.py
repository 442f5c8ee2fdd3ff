"""What the operations of a workload are about: partitions as histories name them, values in the records of a log."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from nemesis.workloads.kafka.client import KafkaClient
from nemesis.workloads.kafka.errors import ForeignRecord

TopicPartition = tuple[str, int]

_text_of = lru_cache(maxsize=1024)(str)
"""A topic id as histories spell it. Each event has one, and a UUID takes its time to spell."""


def subject(client: KafkaClient, tp: TopicPartition) -> dict[str, Any]:
    """The columns of an event about a partition, as the client knows it."""
    metadata = client.metadata.topics.get(tp[0])
    return {
        "topic": tp[0],
        "partition": tp[1],
        "topic_id": None if metadata is None else _text_of(metadata.topic_id),
    }


def payload_of(value: int, size: int) -> bytes:
    """The value of a record, padded to so many bytes."""
    return str(value).encode().ljust(size, b".")


def value_of(payload: bytes | None) -> int:
    """The number in a record's value; raises ``ForeignRecord`` for a record that no producer of ours wrote."""
    digits = (payload or b"").rstrip(b".")
    if not digits.isdigit():
        raise ForeignRecord
    return int(digits)
