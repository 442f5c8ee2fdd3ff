"""A long-polling fetch: complete as soon as an answer is worth sending.

That is: enough bytes below what the reader may see, or anything that the sender must hear of at once (a
partition that moved, a newer epoch, a log cut below the fetch offset).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kio.schema.errors import ErrorCode

from reference.cluster.errors import ReplicaError
from reference.cluster.partition import Partition
from reference.cluster.partition_reads import (
    DEBUGGING_REPLICA_ID,
    fetch_records,
    local_log,
    readable_until,
)
from reference.log.errors import LogError
from reference.model import (
    FetchParams,
    FetchPartitionRequest,
    FetchPartitionResult,
    TopicPartition,
)


def is_worth_sending(results: Sequence[FetchPartitionResult], params: FetchParams) -> bool:
    """Whether an answer is sent at once instead of waiting for more."""
    size = sum(len(result.records) for result in results)
    return size >= params.min_bytes or any(
        result.error is not ErrorCode.none or result.diverging_epoch is not None
        for result in results
    )


class DelayedFetch:
    """Waits on behalf of one fetch request; what it found is read anew when the answer is built."""

    def __init__(
        self,
        params: FetchParams,
        requests: Sequence[FetchPartitionRequest],
        *,
        partition_of: Callable[[TopicPartition], Partition],
    ) -> None:
        """``partition_of`` raises ReplicaError for a partition that is no longer hosted."""
        self._params = params
        self._requests = requests
        self._partition_of = partition_of

    def try_complete(self) -> bool:
        try:
            size = sum(map(self._available_bytes, self._requests))
        except (ReplicaError, LogError):
            return True
        return size >= self._params.min_bytes

    def _available_bytes(self, request: FetchPartitionRequest) -> int:
        partition = self._partition_of(request.topic_partition)
        log = local_log(
            partition,
            request.current_leader_epoch,
            leader_only=self._params.replica_id != DEBUGGING_REPLICA_ID,
        )
        end_offset = readable_until(log, self._params.isolation)
        if log.log_start_offset <= request.fetch_offset <= log.log_end_offset and (
            request.fetch_offset >= end_offset
        ):
            return 0  # the common case, without touching the disk
        info = fetch_records(
            partition,
            self._params,
            request,
            max_bytes=request.max_bytes,
            min_one_message=True,
            update_fetch_state=False,
        )
        # A point of divergence is as urgent as any amount of data.
        return len(info.records) if info.diverging_epoch is None else self._params.min_bytes
