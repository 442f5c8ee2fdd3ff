"""Reading from a replica: fetches of consumers and followers, offsets by time, where an epoch ends.

A request may carry the leader epoch that its sender believes in. If ours is newer the sender is fenced, if ours
is older it is told to wait: so neither a zombie leader nor an uninformed follower can do harm (KIP-320). A
follower's fetch also says which epoch its last record has; when that epoch ends before the follower's log does,
the answer holds no records but the point where the two logs part (KIP-595's truncation on fetch).

A follower answers consumers, too, below its own high watermark (KIP-392): it is one that a leader had, so what it
covers is committed.

A consumer with ``read_committed`` reads below the last stable offset, and is given the aborted transactions among what
it reads: it leaves out their records itself (KIP-98).
"""

from __future__ import annotations

from collections.abc import Callable

from kio.schema.errors import ErrorCode

from nemesis.reference.cluster.errors import ReplicaError
from nemesis.reference.cluster.partition import Partition
from nemesis.reference.cluster.replica import Replica
from nemesis.reference.log.errors import OffsetOutOfRangeError
from nemesis.reference.log.log import Log, TimestampAndOffset
from nemesis.reference.model import (
    CONSUMER_ID,
    DEBUGGING_CONSUMER_ID,
    UNDEFINED_EPOCH,
    UNDEFINED_OFFSET,
    AbortedTransaction,
    EpochEndOffset,
    FetchIsolation,
    FetchParams,
    FetchPartitionRequest,
    FetchPartitionResult,
    ListOffsetsResult,
)
from nemesis.reference.protocol.record_batch import iter_batches

LATEST_TIMESTAMP = -1
EARLIEST_TIMESTAMP = -2
MAX_TIMESTAMP = -3
"""The latest time of all records (KIP-734), which need not be the last one's."""
EARLIEST_LOCAL_TIMESTAMP = -4
_READ_COMMITTED = FetchIsolation.TXN_COMMITTED


def _local_log(partition: Partition, current_leader_epoch: int, *, leader_only: bool) -> Log:
    """The replica's log, once the sender's leader epoch is checked (−1: it did not say). Raises ReplicaError."""
    leader_epoch = partition.leader_epoch
    if current_leader_epoch not in (UNDEFINED_EPOCH, leader_epoch):
        if current_leader_epoch < leader_epoch:
            raise ReplicaError(
                ErrorCode.fenced_leader_epoch,
                f"{partition.topic_partition} is at leader epoch {leader_epoch}",
            )
        raise ReplicaError(
            ErrorCode.unknown_leader_epoch,
            f"{partition.topic_partition} is only at leader epoch {leader_epoch}",
        )
    if leader_only:
        return partition.leader_log
    if partition.log is None:
        raise ReplicaError(
            ErrorCode.not_leader_or_follower, f"{partition.topic_partition} has no log here"
        )
    return partition.log


def fetch_records(
    partition: Partition,
    params: FetchParams,
    request: FetchPartitionRequest,
    *,
    max_bytes: int,
    min_one_message: bool,
    update_fetch_state: bool,
    preferred_read_replica: Callable[[Partition, int], int | None] | None = None,
) -> FetchPartitionResult:
    """Read for a fetch; a follower's, if it succeeds and ``update_fetch_state``, also counts as its progress.

    The offsets of the result are those before the read had any effect. ``preferred_read_replica`` says, for the fetch
    offset, whom a consumer should ask instead (KIP-392).
    Raises ReplicaError, or OffsetOutOfRangeError; then nothing is believed of the follower (KAFKA-8400).
    """
    replica_id = params.replica_id
    log = _local_log(partition, request.current_leader_epoch, leader_only=params.fetch_only_leader)
    if preferred_read_replica is not None:
        preferred_id = preferred_read_replica(partition, request.fetch_offset)
        if preferred_id is not None:
            return FetchPartitionResult(
                partition.topic_partition,
                ErrorCode.none,
                log.high_watermark,
                log.log_start_offset,
                preferred_read_replica=preferred_id,
                last_stable_offset=log.last_stable_offset,
                aborted_transactions=() if params.isolation is _READ_COMMITTED else None,
            )
    replica = _follower(partition, params, request) if replica_id >= 0 else None
    result = _read(log, params.isolation, request, max_bytes, min_one_message=min_one_message)
    if replica is not None and update_fetch_state and result.diverging_epoch is None:
        partition.update_follower_fetch_state(
            replica,
            fetch_offset=request.fetch_offset,
            log_start_offset=request.log_start_offset,
            broker_epoch=params.replica_epoch,
        )
    return result


def last_offset_for_leader_epoch(
    partition: Partition, current_leader_epoch: int, leader_epoch: int
) -> EpochEndOffset:
    """Where the epoch, or the largest smaller one, ends on this leader; −1/−1 if unknown. Raises ReplicaError."""
    log = _local_log(partition, current_leader_epoch, leader_only=True)
    return _end_of_epoch(log, leader_epoch)


def list_offset(
    partition: Partition,
    timestamp: int,
    current_leader_epoch: int,
    replica_id: int,
    isolation: FetchIsolation = FetchIsolation.HIGH_WATERMARK,
) -> ListOffsetsResult:
    """Answer ListOffsets: for consumers (−1) below the high watermark, or below the last stable offset with
    ``read_committed``; for replicas and debuggers all of the log.

    Raises ReplicaError; OFFSET_NOT_AVAILABLE while the high watermark of a new leader is still behind the start of its
    epoch, since a consumer might then see its end fall (KIP-207).
    """
    log = _local_log(
        partition, current_leader_epoch, leader_only=replica_id != DEBUGGING_CONSUMER_ID
    )
    is_consumer = replica_id == CONSUMER_ID
    end_offset = _end_for(log, isolation if is_consumer else FetchIsolation.LOG_END)
    start = partition.leader_epoch_start_offset
    is_settled = not is_consumer or start is None or log.high_watermark >= start
    if timestamp == LATEST_TIMESTAMP and is_settled:
        return ListOffsetsResult(ErrorCode.none, -1, end_offset, partition.leader_epoch)
    if timestamp in (EARLIEST_TIMESTAMP, EARLIEST_LOCAL_TIMESTAMP):
        epoch = log.leader_epoch_cache.epoch_for_offset(log.log_start_offset)
        return ListOffsetsResult(
            ErrorCode.none, -1, log.log_start_offset, UNDEFINED_EPOCH if epoch is None else epoch
        )
    record = _record_by_time(log, timestamp)
    if record is not None and record.offset < end_offset:
        return ListOffsetsResult(
            ErrorCode.none, record.timestamp, record.offset, record.leader_epoch
        )
    if not is_settled:
        raise ReplicaError(
            ErrorCode.offset_not_available,
            f"{partition.topic_partition}: high watermark is behind the leader epoch's start",
        )
    return ListOffsetsResult(ErrorCode.none)


def _record_by_time(log: Log, timestamp: int) -> TimestampAndOffset | None:
    if timestamp == MAX_TIMESTAMP:
        return log.record_of_max_timestamp()
    return log.offset_for_timestamp(timestamp) if timestamp >= 0 else None


def _follower(partition: Partition, params: FetchParams, request: FetchPartitionRequest) -> Replica:
    replica = partition.remote_replicas.get(params.replica_id)
    if replica is None:
        # With an agreed epoch the assignment must have changed since: let the follower ask again (KAFKA-12984).
        raise ReplicaError(
            ErrorCode.not_leader_or_follower
            if request.current_leader_epoch == UNDEFINED_EPOCH
            else ErrorCode.unknown_leader_epoch,
            f"broker {params.replica_id} is no replica of {partition.topic_partition}",
        )
    if 0 <= params.replica_epoch < replica.broker_epoch:
        raise ReplicaError(
            ErrorCode.not_leader_or_follower,
            f"an earlier life of broker {params.replica_id} fetches {partition.topic_partition}",
        )
    return replica


def _read(
    log: Log,
    isolation: FetchIsolation,
    request: FetchPartitionRequest,
    max_bytes: int,
    *,
    min_one_message: bool,
) -> FetchPartitionResult:
    high_watermark, log_start_offset = log.high_watermark, log.log_start_offset
    log_end_offset, last_stable_offset = log.log_end_offset, log.last_stable_offset
    topic_partition, fetch_offset = request.topic_partition, request.fetch_offset
    last_fetched_epoch = request.last_fetched_epoch
    is_in_log = log_start_offset <= fetch_offset <= log_end_offset
    records, diverging = b"", None
    if last_fetched_epoch != UNDEFINED_EPOCH and not (
        is_in_log and last_fetched_epoch == log.epoch_at_end
    ):
        diverging = _divergence(log, last_fetched_epoch, fetch_offset)
    end = _end_for(log, isolation)
    # Nearly always, when idle, there is nothing between the offset and the end.
    if diverging is None and not (is_in_log and fetch_offset >= end):
        records = log.read(fetch_offset, max_bytes, end, min_one_message=min_one_message)
    return FetchPartitionResult(
        topic_partition,
        ErrorCode.none,
        high_watermark,
        log_start_offset,
        records,
        diverging,
        last_stable_offset=last_stable_offset,
        aborted_transactions=_aborted(log, fetch_offset, records)
        if isolation is _READ_COMMITTED
        else None,
    )


def _end_for(log: Log, isolation: FetchIsolation) -> int:
    """Where reads with the isolation level end."""
    if isolation is FetchIsolation.LOG_END:
        return log.log_end_offset
    if isolation is _READ_COMMITTED:
        return log.last_stable_offset
    return log.high_watermark


def _aborted(log: Log, fetch_offset: int, records: bytes) -> tuple[AbortedTransaction, ...]:
    """The aborted transactions with records among those that were read from the offset on."""
    if not records:
        return ()
    end = max(header.last_offset for header in iter_batches(records)) + 1
    return tuple(log.collect_aborted_transactions(fetch_offset, end))


def _divergence(log: Log, last_fetched_epoch: int, fetch_offset: int) -> EpochEndOffset | None:
    """Where the log of one who has records of the epoch up to the offset parts from ours; None if it does not."""
    end = _end_of_epoch(log, last_fetched_epoch)
    if end.end_offset == UNDEFINED_OFFSET or fetch_offset < log.log_start_offset:
        raise OffsetOutOfRangeError(
            f"{log.topic_partition} cannot tell where epoch {last_fetched_epoch} ends"
        )
    is_parted = end.leader_epoch < last_fetched_epoch or end.end_offset < fetch_offset
    return end if is_parted else None


def _end_of_epoch(log: Log, leader_epoch: int) -> EpochEndOffset:
    end = log.end_offset_for_epoch(leader_epoch)
    if end is None:
        return EpochEndOffset(UNDEFINED_EPOCH, UNDEFINED_OFFSET)
    return EpochEndOffset(end.leader_epoch, end.offset)
