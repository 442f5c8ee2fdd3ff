"""ListOffsets requests, and their answers (ListOffsets 7).

Numbers are ``cast``, as in ``client``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import groupby
from operator import itemgetter
from typing import Any, Final, NamedTuple, cast

from kio.schema.errors import ErrorCode
from kio.schema.list_offsets.v7 import request as list_offsets
from kio.schema.types import BrokerId, TopicName
from kio.static.primitive import i8, i32, i64

from nemesis.workloads.kafka.errors import BrokerError

EARLIEST: Final = -2
LATEST: Final = -1
NO_EPOCH: Final = -1
"""No leader epoch is required of the broker: what it answers follows from its own state."""
CONSUMER: Final = BrokerId(-1)
DEBUGGING_CLIENT: Final = BrokerId(-2)
"""Any replica answers it, by all of its log."""
TopicPartition = tuple[str, int]
_READ_UNCOMMITTED: Final = i8(0)
_READ_COMMITTED: Final = i8(1)


class Question(NamedTuple):
    """What a replica is asked for."""

    timestamp: int
    """The first offset of this time in ms, or of ``EARLIEST`` or ``LATEST``."""
    leader_epoch: int = NO_EPOCH
    """A replica that is in another one refuses."""


def list_offsets_request(
    tp: TopicPartition, timestamp: int, *, leader_epoch: int, is_committed: bool = False
) -> list_offsets.ListOffsetsRequest:
    """Return a consumer's request for the first offset of this time in ms, or of ``EARLIEST`` or ``LATEST``.

    With ``is_committed`` it is about what is below the last stable offset.
    """
    return offsets_request({tp: Question(timestamp, leader_epoch)}, is_committed=is_committed)


def offsets_request(
    questions: Mapping[TopicPartition, Question],
    *,
    asker: BrokerId = CONSUMER,
    is_committed: bool = False,
) -> list_offsets.ListOffsetsRequest:
    """Return the request for an offset of each of these partitions."""
    return list_offsets.ListOffsetsRequest(
        replica_id=asker,
        isolation_level=_READ_COMMITTED if is_committed else _READ_UNCOMMITTED,
        topics=tuple(
            list_offsets.ListOffsetsTopic(
                name=cast("TopicName", topic),
                partitions=tuple(
                    list_offsets.ListOffsetsPartition(
                        partition_index=cast("i32", tp[1]),
                        current_leader_epoch=cast("i32", questions[tp].leader_epoch),
                        timestamp=cast("i64", questions[tp].timestamp),
                    )
                    for tp in tps
                ),
            )
            for topic, tps in groupby(sorted(questions), key=itemgetter(0))
        ),
    )


def answers(response: Any) -> Iterator[tuple[TopicPartition, Any]]:
    """Yield each partition of a response with its answer."""
    for topic in response.topics:
        for data in topic.partitions:
            yield (str(topic.name), int(data.partition_index)), data


def listed_offset(response: Any) -> int:
    """Return the offset of the answer; −1: no record is that young. Raises ``BrokerError``."""
    data = response.topics[0].partitions[0]
    if data.error_code is not ErrorCode.none:
        raise BrokerError(data.error_code)
    return int(data.offset)
