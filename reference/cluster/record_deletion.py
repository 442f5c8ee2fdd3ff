"""DeleteRecords on a leader, and how far all replicas have followed (KIP-107).

The leader raises its log start offset; followers hear of it with their fetches and say with the next one where theirs
is. The low watermark is the smallest of them all.
"""

from __future__ import annotations

from collections.abc import Callable

from kio.schema.errors import ErrorCode

from nemesis.reference.cluster.errors import ReplicaError
from nemesis.reference.cluster.partition import Partition
from nemesis.reference.log.log import LogStartOffsetIncrementReason

UP_TO_HIGH_WATERMARK = -1


def low_watermark(partition: Partition, is_alive: Callable[[int], bool]) -> int:
    """The smallest log start offset of the leader and of those that are alive; −1 while one of them is not known.

    Raises ReplicaError when the partition is not led here.
    """
    known = [
        replica.log_start_offset
        for broker, replica in partition.remote_replicas.items()
        if is_alive(broker)
    ]
    return min([partition.leader_log.log_start_offset, *known])


def delete_records_on_leader(partition: Partition, offset: int) -> int:
    """Let the leader's log start there (−1: at the high watermark); return the offset that counts.

    Raises ReplicaError: POLICY_VIOLATION for a topic whose policy does not delete, OFFSET_OUT_OF_RANGE below 0; and
    OffsetOutOfRangeError above the high watermark.
    """
    log = partition.leader_log
    if not log.config.is_delete:
        raise ReplicaError(
            ErrorCode.policy_violation,
            f"records of {partition.topic_partition} cannot be deleted: its cleanup.policy is"
            f" {','.join(log.config.cleanup_policy)}",
        )
    wanted = log.high_watermark if offset == UP_TO_HIGH_WATERMARK else offset
    if wanted < 0:
        raise ReplicaError(
            ErrorCode.offset_out_of_range,
            f"{partition.topic_partition} has no offset {offset}",
        )
    log.maybe_increment_log_start_offset(
        wanted, LogStartOffsetIncrementReason.CLIENT_RECORD_DELETION
    )
    return wanted
