"""The committed offsets of one group, and the commits that are on their way to the log.

A commit counts once its record is committed in the log; two commits that complete out of order count by their offsets
in the log. A partition with a commit on its way does not expire, and is unstable for an OffsetFetch that requires
stable offsets.

Source: kafka.coordinator.group.GroupMetadata of Kafka 3.9.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import NamedTuple

from nemesis.reference.model import TopicPartition


class OffsetAndMetadata(NamedTuple):
    """What a client commits for a partition. Times in ms since 1970."""

    offset: int
    leader_epoch: int
    """−1 when the client did not name it."""
    metadata: str
    commit_timestamp: int
    expire_timestamp: int | None = None
    """Of a client that named a retention time of its own (OffsetCommit 2 to 4)."""


class CommittedOffset(NamedTuple):
    """A commit, and where its batch starts in the log."""

    batch_offset: int
    offset_and_metadata: OffsetAndMetadata


class GroupOffsets:
    """By partition."""

    def __init__(self, committed: Mapping[TopicPartition, CommittedOffset] | None = None) -> None:
        self._committed = dict(committed or {})
        self._pending: dict[TopicPartition, OffsetAndMetadata] = {}

    def __len__(self) -> int:
        """How many partitions have an offset, or will have one if the log takes it."""
        return len(self._committed.keys() | self._pending.keys())

    @property
    def partitions(self) -> tuple[TopicPartition, ...]:
        """Those with a committed offset."""
        return tuple(self._committed)

    def get(self, topic_partition: TopicPartition) -> OffsetAndMetadata | None:
        committed = self._committed.get(topic_partition)
        return None if committed is None else committed.offset_and_metadata

    def is_pending(self, topic_partition: TopicPartition) -> bool:
        """Whether a commit for the partition is on its way."""
        return topic_partition in self._pending

    def prepare(self, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        """Note that these are appended to the log now."""
        self._pending.update(offsets)

    def complete(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata], batch_offset: int
    ) -> None:
        """Take over what the log has in a batch; what was deleted meanwhile stays deleted."""
        for topic_partition, offset in offsets.items():
            if topic_partition not in self._pending:
                continue
            committed = self._committed.get(topic_partition)
            if committed is None or committed.batch_offset < batch_offset:
                self._committed[topic_partition] = CommittedOffset(batch_offset, offset)
        self.fail(offsets)

    def fail(self, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        """Forget commits that were on their way, unless a later one of the partition is."""
        for topic_partition, offset in offsets.items():
            if self._pending.get(topic_partition) == offset:
                del self._pending[topic_partition]

    def remove(self, partitions: Iterable[TopicPartition]) -> tuple[TopicPartition, ...]:
        """Forget these partitions; return those that had an offset."""
        removed = []
        for topic_partition in partitions:
            self._pending.pop(topic_partition, None)
            if self._committed.pop(topic_partition, None) is not None:
                removed.append(topic_partition)
        return tuple(removed)

    def remove_expired(
        self,
        now_ms: int,
        *,
        retention_ms: int,
        base_timestamp: Callable[[OffsetAndMetadata], int],
        subscribed_topics: Collection[str] = (),
    ) -> tuple[TopicPartition, ...]:
        """Forget what has been kept for ``retention_ms`` since its base time, and return it."""

        def is_expired(offset: OffsetAndMetadata) -> bool:
            if offset.expire_timestamp is not None:
                return now_ms >= offset.expire_timestamp
            return now_ms - base_timestamp(offset) >= retention_ms

        return self.remove(
            [
                topic_partition
                for topic_partition, committed in self._committed.items()
                if topic_partition.topic not in subscribed_topics
                and topic_partition not in self._pending
                and is_expired(committed.offset_and_metadata)
            ]
        )
