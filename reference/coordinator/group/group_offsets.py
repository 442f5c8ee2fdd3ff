"""The committed offsets of one group, and the commits that are on their way to the log.

A commit counts once its record is committed in the log; two commits that complete out of order count by their offsets
in the log. A partition with a commit on its way does not expire, and is unstable for an OffsetFetch that requires
stable offsets.

A commit of a transaction is pending, by the id of its producer, until the marker of the transaction is in the log. It
makes its partition unstable, and keeps the group; as in Kafka 3.9 it does not keep an older commit from expiry.

Source: kafka.coordinator.group.GroupMetadata of Kafka 3.9. There, a marker ends all commits of its producer, here those
that precede it in the log. There, a commit that fails takes an earlier one of the transaction with it.
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


TransactionalOffsets = dict[int, dict[TopicPartition, CommittedOffset]]
"""Commits of open transactions that are in the log, by producer id."""


class GroupOffsets:
    """By partition."""

    def __init__(
        self,
        committed: Mapping[TopicPartition, CommittedOffset] | None = None,
        transactional: TransactionalOffsets | None = None,
    ) -> None:
        self._committed = dict(committed or {})
        self._pending: dict[TopicPartition, OffsetAndMetadata] = {}
        self._transactional: TransactionalOffsets = (
            transactional if transactional is not None else {}
        )
        self._appending: dict[TopicPartition, int] = {}
        """How many commits of transactions are on their way to the log."""

    @property
    def is_empty(self) -> bool:
        """Whether no partition has an offset, or may have one later."""
        return not (self._committed or self._pending or self._transactional or self._appending)

    @property
    def partitions(self) -> tuple[TopicPartition, ...]:
        """Those with a committed offset."""
        return tuple(self._committed)

    def get(self, topic_partition: TopicPartition) -> OffsetAndMetadata | None:
        committed = self._committed.get(topic_partition)
        return None if committed is None else committed.offset_and_metadata

    @property
    def transactional(self) -> Mapping[int, Mapping[TopicPartition, CommittedOffset]]:
        """The commits of open transactions that are in the log, by producer id."""
        return self._transactional

    def is_pending(self, topic_partition: TopicPartition) -> bool:
        """Whether a commit for the partition is on its way, or belongs to an open transaction."""
        return (
            topic_partition in self._pending
            or topic_partition in self._appending
            or any(topic_partition in offsets for offsets in self._transactional.values())
        )

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

    def prepare_transactional(self, partitions: Iterable[TopicPartition]) -> None:
        """Note that commits of a transaction are appended to the log now."""
        for topic_partition in partitions:
            self._appending[topic_partition] = self._appending.get(topic_partition, 0) + 1

    def store_transactional(
        self,
        producer_id: int,
        offsets: Mapping[TopicPartition, OffsetAndMetadata],
        batch_offset: int,
    ) -> None:
        """Take over what the log has in a batch of a transaction; what was deleted meanwhile stays deleted."""
        pending = self._transactional.setdefault(producer_id, {})
        for topic_partition, offset in offsets.items():
            present = pending.get(topic_partition)
            is_latest = present is None or present.batch_offset < batch_offset
            if topic_partition in self._appending and is_latest:
                pending[topic_partition] = CommittedOffset(batch_offset, offset)
        self.fail_transactional(offsets)
        self._forget_if_empty(producer_id)

    def fail_transactional(self, partitions: Iterable[TopicPartition]) -> None:
        """Forget commits that were on their way; earlier ones of the transaction stay."""
        for topic_partition in partitions:
            count = self._appending.pop(topic_partition, 0)
            if count > 1:
                self._appending[topic_partition] = count - 1

    def complete_transactional(
        self, producer_id: int, marker_offset: int, *, is_commit: bool
    ) -> None:
        """End the transaction whose marker the log has: its commits count now, or never.

        A commit behind the marker belongs to a later transaction.
        """
        pending = self._transactional.get(producer_id, {})
        for topic_partition, commit in list(pending.items()):
            if commit.batch_offset > marker_offset:
                continue
            del pending[topic_partition]
            present = self._committed.get(topic_partition)
            if is_commit and (present is None or present.batch_offset < commit.batch_offset):
                self._committed[topic_partition] = commit
        self._forget_if_empty(producer_id)

    def _forget_if_empty(self, producer_id: int) -> None:
        if not self._transactional.get(producer_id, True):
            del self._transactional[producer_id]

    def remove(self, partitions: Iterable[TopicPartition]) -> tuple[TopicPartition, ...]:
        """Forget these partitions, also in open transactions; return those that had an offset."""
        removed = []
        for topic_partition in partitions:
            self._pending.pop(topic_partition, None)
            self._appending.pop(topic_partition, None)
            for pending in self._transactional.values():
                pending.pop(topic_partition, None)
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
        """Forget what has been kept for ``retention_ms`` since its base time, and return it.

        Commits of open transactions stay, also those of an expired partition.
        """

        def is_expired(offset: OffsetAndMetadata) -> bool:
            if offset.expire_timestamp is not None:
                return now_ms >= offset.expire_timestamp
            return now_ms - base_timestamp(offset) >= retention_ms

        expired = tuple(
            topic_partition
            for topic_partition, committed in self._committed.items()
            if topic_partition.topic not in subscribed_topics
            and topic_partition not in self._pending
            and is_expired(committed.offset_and_metadata)
        )
        for topic_partition in expired:
            del self._committed[topic_partition]
        return expired
