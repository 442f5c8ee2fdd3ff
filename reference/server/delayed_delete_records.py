"""A DeleteRecords request: complete when no live replica has the records any more."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from kio.schema.errors import ErrorCode

from nemesis.reference.cluster.errors import ReplicaError
from nemesis.reference.cluster.partition import Partition
from nemesis.reference.cluster.record_deletion import low_watermark
from nemesis.reference.model import TopicPartition

INVALID_LOW_WATERMARK = -1


@dataclass(frozen=True, slots=True)
class DeleteRecordsPartitionResult:
    """What to answer for one partition."""

    error: ErrorCode
    low_watermark: int = INVALID_LOW_WATERMARK


DeleteRecordsResults = dict[TopicPartition, DeleteRecordsPartitionResult]


class DelayedDeleteRecords:
    """Waits until each low watermark has reached what was asked for; ``results`` says at any time what to answer."""

    def __init__(
        self,
        required_offsets: dict[TopicPartition, int],
        *,
        partition_of: Callable[[TopicPartition], Partition],
        is_alive: Callable[[int], bool],
    ) -> None:
        """``partition_of`` raises ReplicaError for a partition that is no longer hosted."""
        self._pending = dict(required_offsets)
        self._partition_of = partition_of
        self._is_alive = is_alive
        self._settled: DeleteRecordsResults = {}

    @property
    def is_complete(self) -> bool:
        return not self._pending

    def try_complete(self, key: TopicPartition) -> bool:
        required = self._pending.get(key)
        if required is not None:
            result = self._result(key)
            if result.error is not ErrorCode.none or result.low_watermark >= required:
                del self._pending[key]
                self._settled[key] = result
        return self.is_complete

    def results(self) -> DeleteRecordsResults:
        """One per partition; REQUEST_TIMED_OUT and the low watermark as it is where some replica has not followed."""
        behind = {}
        for key in self._pending:
            result = self._result(key)
            if result.error is ErrorCode.none:
                timed_out = ErrorCode.request_timed_out
                result = DeleteRecordsPartitionResult(timed_out, result.low_watermark)
            behind[key] = result
        return self._settled | behind

    def _result(self, key: TopicPartition) -> DeleteRecordsPartitionResult:
        try:
            watermark = low_watermark(self._partition_of(key), self._is_alive)
        except ReplicaError as error:
            return DeleteRecordsPartitionResult(error.code)
        return DeleteRecordsPartitionResult(ErrorCode.none, watermark)
