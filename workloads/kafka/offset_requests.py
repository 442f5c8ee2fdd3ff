"""ListOffsets requests for one partition, and their answers (ListOffsets 7).

Numbers are ``cast``, as in ``client``.
"""

from __future__ import annotations

from typing import Any, Final, cast

from kio.schema.errors import ErrorCode
from kio.schema.list_offsets.v7 import request as list_offsets
from kio.schema.types import BrokerId, TopicName
from kio.static.primitive import i8, i32, i64

from nemesis.workloads.kafka.errors import BrokerError

EARLIEST: Final = -2
LATEST: Final = -1
NO_EPOCH: Final = -1
"""No leader epoch is required of the broker: what it answers follows from its own state."""
_CONSUMER: Final = BrokerId(-1)
_READ_UNCOMMITTED: Final = i8(0)
_READ_COMMITTED: Final = i8(1)


def list_offsets_request(
    tp: tuple[str, int], timestamp: int, *, leader_epoch: int, is_committed: bool = False
) -> list_offsets.ListOffsetsRequest:
    """Return the request for the first offset of this time in ms, or of ``EARLIEST`` or ``LATEST``.

    With ``is_committed`` it is about what is below the last stable offset.
    """
    return list_offsets.ListOffsetsRequest(
        replica_id=_CONSUMER,
        isolation_level=_READ_COMMITTED if is_committed else _READ_UNCOMMITTED,
        topics=(
            list_offsets.ListOffsetsTopic(
                name=cast("TopicName", tp[0]),
                partitions=(
                    list_offsets.ListOffsetsPartition(
                        partition_index=cast("i32", tp[1]),
                        current_leader_epoch=cast("i32", leader_epoch),
                        timestamp=cast("i64", timestamp),
                    ),
                ),
            ),
        ),
    )


def listed_offset(response: Any) -> int:
    """Return the offset of the answer; −1: no record is that young. Raises ``BrokerError``."""
    data = response.topics[0].partitions[0]
    if data.error_code is not ErrorCode.none:
        raise BrokerError(data.error_code)
    return int(data.offset)
