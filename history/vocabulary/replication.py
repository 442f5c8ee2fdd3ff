"""Events of a broker's replicas: their logs, their leadership, high watermarks, ISR changes, acknowledgements.

Writer: a broker of the reference (process ``broker-N``, ``node`` N). It sets ``incarnation``.
"""

from __future__ import annotations

from nemesis.history.events import Bytes, Kind, Milliseconds, Records, Word
from nemesis.history.vocabulary.declaring import PartitionView, View, declares


@declares(Kind.LOG_LOADED)
class LogLoaded(PartitionView, frozen=True, kw_only=True):
    """The broker has opened or created a log, for the first time in this incarnation."""

    log_start_offset: Records
    log_end_offset: Records
    high_watermark: Records
    log_dir: Word | None = None
    """The log directory that holds the log; histories of older versions lack it."""
    producers_end: Records | None = None
    """The offset behind the last batch of which the log remembers the producer, 0 without any; histories of older
    versions lack it, here and in the other kinds."""


@declares(Kind.LOG_CLOSED)
class LogClosed(PartitionView, frozen=True, kw_only=True):
    """The broker stops in order. The log is closed, and its directory has the mark of a clean stop."""

    log_start_offset: Records
    log_end_offset: Records
    high_watermark: Records
    log_dir: Word


@declares(Kind.BECOME_LEADER)
class BecomeLeader(PartitionView, frozen=True, kw_only=True):
    """The broker has become the leader of a partition."""

    leader_epoch: int
    partition_epoch: int
    controller_epoch: int
    isr: list[int]
    replicas: list[int]
    log_end_offset: Records
    high_watermark: Records
    log_start_offset: Records
    producers_end: Records | None = None


@declares(Kind.BECOME_FOLLOWER)
class BecomeFollower(PartitionView, frozen=True, kw_only=True):
    """The broker has become a follower of a partition."""

    leader: int
    leader_epoch: int
    partition_epoch: int
    controller_epoch: int
    log_end_offset: Records
    high_watermark: Records
    producers_end: Records | None = None


@declares(Kind.APPEND)
class Append(PartitionView, frozen=True, kw_only=True):
    """The broker has appended a record batch to a log."""

    role: Word
    leader_epoch: int
    """The epoch that the batch carries."""
    offset: Records
    """The first offset of the batch."""
    last_offset: Records
    crc: int
    log_end_offset: Records
    """The end of the log after the append."""


@declares(Kind.TRANSACTION_OPENED)
class TransactionOpened(PartitionView, frozen=True, kw_only=True):
    """The broker has appended the first batch of a transaction, at `offset`."""

    role: Word
    offset: Records
    producer_id: int
    producer_epoch: int


@declares(Kind.MARKER_APPENDED)
class MarkerAppended(PartitionView, frozen=True, kw_only=True):
    """The broker has appended the marker that ends a transaction, at `offset`."""

    role: Word
    leader_epoch: int
    offset: Records
    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    outcome: Word
    first_offset: Records


@declares(Kind.TRUNCATE)
class Truncate(PartitionView, frozen=True, kw_only=True):
    """The broker has truncated a log."""

    offset: Records
    """The offset to which the log was to be truncated."""
    log_end_offset: Records
    """The end of the log after the truncation."""
    high_watermark: Records
    """The high watermark after the truncation."""
    leader_epoch: int
    log_start_offset: Records
    producers_end: Records | None = None
    high_watermark_before: Records | None = None
    """The high watermark before the truncation; histories of older versions lack it."""


@declares(Kind.LOG_START_OFFSET)
class LogStartOffset(PartitionView, frozen=True, kw_only=True):
    """The broker has raised the first offset of a log.

    ``reason`` is `segment-deletion`, `client-record-deletion` or `leader-offset-incremented`.
    """

    log_start_offset: Records
    """The new first offset."""
    log_end_offset: Records
    high_watermark: Records
    reason: Word


@declares(Kind.SEGMENTS_DELETED)
class SegmentsDeleted(PartitionView, frozen=True, kw_only=True):
    """The broker deletes the first segments of a log, because retention or the start of the log allows it.

    Also of the copy of a log that moves to another directory.
    """

    offset: Records
    """The first offset of the segments."""
    last_offset: Records
    """The last offset of the segments."""
    log_start_offset: Records
    """The first offset of the log before."""
    high_watermark: Records
    bytes_after: Bytes
    """The size of the segments that stay."""
    max_timestamp: Milliseconds
    """Of the last of the deleted segments; −1: its records have no time, or it has none."""
    wall_ms: Milliseconds
    """The broker's clock when it chose the segments."""


@declares(Kind.LOG_DIR_CHANGED)
class LogDirChanged(PartitionView, frozen=True, kw_only=True):
    """A replica has another log directory now."""

    log_dir: Word
    log_start_offset: Records
    log_end_offset: Records
    high_watermark: Records
    producers_end: Records | None = None
    leader_epoch: int | None = None
    """The latest of the log; −1: none."""


@declares(Kind.LOG_CLEANED)
class LogCleaned(PartitionView, frozen=True, kw_only=True):
    """The broker has compacted some segments of a log.

    A record may be gone if a later record has the same key. The event is written before the compacted segment
    replaces the others, so the replacement may not have happened.
    """

    offset: Records
    """The first offset of the segments."""
    last_offset: Records
    log_start_offset: Records
    log_end_offset: Records
    high_watermark: Records
    """The high watermark when the cleaner chose the segments."""
    bytes_before: Bytes
    bytes_after: Bytes
    wall_ms: Milliseconds | None = None
    """When the compaction began, by the broker's wall clock: delete horizons are compared with it. Before format 13
    unset."""


@declares(Kind.BATCH_CLEANED)
class BatchCleaned(PartitionView, frozen=True, kw_only=True):
    """A batch as compaction leaves it, with fewer records or none; before the ``log-cleaned`` of its segments."""

    leader_epoch: int
    offset: Records
    """The first offset of the batch."""
    last_offset: Records
    crc: int


@declares(Kind.FETCH_ANSWERED)
class FetchAnswered(PartitionView, frozen=True, kw_only=True):
    """The leader has answered a follower with another error than before, for one partition.

    Answers to Fetch, and to the OffsetForLeaderEpoch and ListOffsets that a fetcher sends. A fetcher begins without an
    error, so answers without any are not traced.
    """

    peer: int
    """The leader."""
    leader_epoch: int
    """The leader epoch in which the follower fetches."""
    error: Word
    """`NONE` if the leader answers without an error again, `NETWORK_EXCEPTION` if it does not answer."""


@declares(Kind.FOLLOWER_EPOCH)
class FollowerEpoch(PartitionView, frozen=True, kw_only=True):
    """The leader has taken in a fetch with another broker epoch than it knew (KIP-903)."""

    replica: int
    """The follower."""
    leader_epoch: int
    broker_epoch: int


@declares(Kind.HIGH_WATERMARK)
class HighWatermark(PartitionView, frozen=True, kw_only=True):
    """The leader has moved its high watermark."""

    leader_epoch: int
    high_watermark: Records
    log_end_offset: Records
    isr: list[int]
    """The committed ISR."""
    maximal_isr: list[int]


@declares(Kind.ISR_CHANGE_PROPOSED)
class IsrChangeProposed(PartitionView, frozen=True, kw_only=True):
    """The leader proposes another ISR."""

    leader_epoch: int
    partition_epoch: int
    isr: list[int]
    """The committed ISR."""
    maximal_isr: list[int]
    change: Word


@declares(Kind.ISR_CHANGE_COMMITTED)
class IsrChangeCommitted(PartitionView, frozen=True, kw_only=True):
    """The leader has learnt that its proposed ISR is committed."""

    leader_epoch: int
    partition_epoch: int
    isr: list[int]
    maximal_isr: list[int]
    offsets: list[Records] | None = None
    """The members' known log ends; −1: unknown."""


@declares(Kind.PRODUCE_ACKNOWLEDGED)
class ProduceAcknowledged(PartitionView, frozen=True, kw_only=True):
    """The leader is about to answer a produce request without an error; not for acks 0."""

    leader_epoch: int
    """The epoch of the leader when it answers."""
    offset: Records
    """The first offset that is acknowledged."""
    last_offset: Records
    acks: int
    high_watermark: Records
    isr: list[int]


@declares(Kind.TRANSACTION_PARTITION_ADDED)
class TransactionPartitionAdded(View, frozen=True, kw_only=True):
    """A transaction includes a partition, by the log of its coordinator."""

    topic: Word
    partition: int
    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    timeout_ms: Milliseconds


@declares(Kind.TRANSACTION_COMPLETED)
class TransactionCompleted(View, frozen=True, kw_only=True):
    """A transaction is complete, by the log of its coordinator: one event for each partition that exists."""

    topic: Word
    partition: int
    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    outcome: Word


@declares(Kind.REPLICA_STOPPED)
class ReplicaStopped(PartitionView, frozen=True, kw_only=True):
    """The broker has stopped a replica.

    ``step`` is `stop` if the log stays, `deleting` before the log is deleted, `delete` afterwards.
    """

    step: Word
