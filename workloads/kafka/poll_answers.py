"""What a poll of one partition returned, read from a broker's answer."""

from __future__ import annotations

from typing import NamedTuple

from nemesis.workloads.kafka.committed_records import committed
from nemesis.workloads.kafka.errors import BadRecordBatch, BrokerError, KafkaError
from nemesis.workloads.kafka.fetches import AbortedTransaction, PartitionAnswer
from nemesis.workloads.kafka.record_batch import Record, end_offset, read


class Polled(NamedTuple):
    records: list[Record]
    high_watermark: int
    node: int
    log_start_offset: int = -1
    """Where the log starts, as the answer states it; −1 if it does not."""
    first_offset: int = 0
    """Where the log starts, if the position was refused because it was below; else 0."""
    end: int = 0
    """Behind the last batch: records at its end may have been compacted away. 0 when there was none."""
    last_stable_offset: int = -1
    """Below it every transaction is decided; −1 if the answer does not state it."""
    aborted: tuple[AbortedTransaction, ...] = ()
    """The transactions whose records were left out; only if committed records were asked for."""

    def position_after(self, position: int) -> int:
        """Where to go on."""
        return max(position, self.first_offset, self.end)


def read_poll(
    answer: PartitionAnswer | BrokerError,
    position: int,
    node: int,
    *,
    is_committed: bool = False,
) -> Polled | KafkaError:
    """Read the records of an answer from the position on; leave out those of aborted transactions if asked to."""
    if isinstance(answer, BrokerError):
        return answer
    try:
        contained = (
            committed(answer.records, answer.aborted) if is_committed else read(answer.records)
        )
        records = [record for record in contained if record.offset >= position]
    except BadRecordBatch as error:
        return error
    return Polled(
        records,
        answer.high_watermark,
        node,
        log_start_offset=answer.log_start_offset,
        end=end_offset(answer.records),
        last_stable_offset=answer.last_stable_offset,
        aborted=answer.aborted,
    )
