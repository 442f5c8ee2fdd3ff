"""An acks=all produce: settled per partition once the high watermark covers what was appended, or can no
longer.

The acknowledgement is traced in the same step in which it is decided: its high watermark and ISR are those that
justify it.
"""

from __future__ import annotations

from collections.abc import Callable

from kio.schema.errors import ErrorCode

from nemesis.reference.cluster.errors import ReplicaError
from nemesis.reference.cluster.partition import Partition
from nemesis.reference.log.log_append_info import LogAppendInfo
from nemesis.reference.model import ProducePartitionResult, TopicPartition
from nemesis.reference.trace import Kind


class DelayedProduce:
    """Waits for the appends of one request; ``results`` says at any time what to answer."""

    def __init__(
        self,
        appended: dict[TopicPartition, LogAppendInfo],
        *,
        acks: int,
        partition_of: Callable[[TopicPartition], Partition],
    ) -> None:
        """``partition_of`` raises ReplicaError for a partition that is no longer hosted."""
        self._pending = dict(appended)
        self._acks = acks
        self._partition_of = partition_of
        self._settled: dict[TopicPartition, ProducePartitionResult] = {}

    @property
    def is_complete(self) -> bool:
        return not self._pending

    def try_complete(self, key: TopicPartition) -> bool:
        info = self._pending.get(key)
        result = None if info is None else self._settle(key, info)
        if result is not None:
            del self._pending[key]
            self._settled[key] = result
        return self.is_complete

    def results(self) -> dict[TopicPartition, ProducePartitionResult]:
        """One per partition; REQUEST_TIMED_OUT where the outcome is still open: the records may yet be committed."""
        timed_out = ProducePartitionResult(ErrorCode.request_timed_out)
        return self._settled | dict.fromkeys(self._pending, timed_out)

    def _settle(
        self, topic_partition: TopicPartition, info: LogAppendInfo
    ) -> ProducePartitionResult | None:
        try:
            partition = self._partition_of(topic_partition)
        except ReplicaError as error:
            return ProducePartitionResult(error.code, error_message=str(error))
        enough, error_code = partition.check_enough_replicas_reach_offset(info.last_offset + 1)
        if error_code is not ErrorCode.none:
            return ProducePartitionResult(error_code)
        return acknowledge(partition, info, self._acks) if enough else None


def acknowledge(partition: Partition, info: LogAppendInfo, acks: int) -> ProducePartitionResult:
    """The answer to an append that is good, traced; raises ReplicaError if the partition is not led here."""
    log = partition.leader_log
    if acks != 0:
        partition.trace(
            Kind.PRODUCE_ACKNOWLEDGED,
            leader_epoch=partition.leader_epoch,
            offset=info.first_offset,
            last_offset=info.last_offset,
            acks=acks,
            high_watermark=log.high_watermark,
            isr=sorted(partition.state.isr),
        )
    return ProducePartitionResult(
        ErrorCode.none,
        base_offset=info.first_offset,
        log_start_offset=log.log_start_offset,
        log_append_time=info.log_append_time,
    )
