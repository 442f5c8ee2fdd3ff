"""Following one partition in one leader epoch, as its fetcher sees it.

Source: kafka.server.PartitionFetchState and InitialFetchState of Kafka 3.9. The offset to fetch is not kept: it is the
log's end.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from uuid import UUID

from kio.schema.errors import ErrorCode
from kio.schema.fetch.v15.request import FetchPartition

from nemesis.reference.cluster.partition import Partition
from nemesis.reference.model import TopicPartition
from nemesis.reference.server.fetch_session_handler import FetchKey


@dataclass(slots=True, eq=False)
class PartitionFetchState:
    """Replaced, never reused, by the next LeaderAndIsr."""

    partition: Partition
    topic_id: UUID | None
    leader_epoch: int
    is_truncating: bool = False
    """The leader has yet to be asked where the logs part; until then nothing is fetched."""
    is_out_of_range: bool = False
    """The leader has yet to be asked where its log starts and ends; until then nothing is fetched."""
    delayed_until: float = 0.0
    last_error: ErrorCode = ErrorCode.none
    """What the leader answered last; traced when it changes."""
    asked: FetchPartition | None = None
    """What was asked last; asked again for as long as the log stays as it is."""
    key: FetchKey = field(init=False)

    def __post_init__(self) -> None:
        self.key = (topic_number(self.topic_id), self.topic_partition.partition)

    @property
    def topic_partition(self) -> TopicPartition:
        return self.partition.topic_partition


def topic_number(topic_id: UUID | None) -> int:
    """A topic id as fetchers look it up; 0 is none."""
    return 0 if topic_id is None else topic_id.int
