"""What a KRaft controller says of its quorum and of reassignments (DescribeQuorum 0, ListPartitionReassignments 0).

Both are asked at a controller's own listener. Only the active controller answers; the others refuse.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple, cast

from kio.schema.describe_quorum.v0 import request as describe_quorum
from kio.schema.errors import ErrorCode
from kio.schema.list_partition_reassignments.v0 import request as list_reassignments
from kio.schema.types import TopicName
from kio.static.primitive import i32

from nemesis.workloads.kafka.client import KafkaClient
from nemesis.workloads.kafka.errors import BrokerError
from nemesis.workloads.kafka.timeouts import milliseconds

METADATA_TOPIC: Final = "__cluster_metadata"
_DESCRIBE: Final = describe_quorum.DescribeQuorumRequest(
    topics=(
        describe_quorum.TopicData(
            topic_name=cast("TopicName", METADATA_TOPIC),
            partitions=(describe_quorum.PartitionData(partition_index=i32(0)),),
        ),
    )
)

Address = tuple[str, int]
TopicPartition = tuple[str, int]


class QuorumLeader(NamedTuple):
    """The active controller, as it describes the quorum itself."""

    node: int
    epoch: int
    high_watermark: int = -1
    """Of the metadata log; −1: the leader does not know it yet."""
    observed: Mapping[int, int] = MappingProxyType({})
    """The log end offsets of the brokers that are no voters, as far as the controller knows them."""


async def quorum_leader(client: KafkaClient, address: Address, *, timeout_s: float) -> QuorumLeader:
    """Return whom the controller there holds for active: itself. Raises ``KafkaError`` when it is not active."""
    response = await client.ask(address, _DESCRIBE, timeout_s)
    _require(response.error_code)
    partition = response.topics[0].partitions[0]
    _require(partition.error_code)
    observed = {int(node.replica_id): int(node.log_end_offset) for node in partition.observers}
    return QuorumLeader(
        int(partition.leader_id),
        int(partition.leader_epoch),
        int(partition.high_watermark),
        observed,
    )


async def removed_replicas(
    client: KafkaClient, address: Address, *, timeout_s: float
) -> dict[TopicPartition, tuple[int, ...]]:
    """Return the partitions that are being reassigned, and which of their replicas are being removed.

    Raises ``KafkaError``.
    """
    request = list_reassignments.ListPartitionReassignmentsRequest(
        timeout=milliseconds(int(timeout_s * 1000)), topics=None
    )
    response = await client.ask(address, request, timeout_s)
    _require(response.error_code)
    return {
        (str(topic.name), int(partition.partition_index)): tuple(
            map(int, partition.removing_replicas)
        )
        for topic in response.topics
        for partition in topic.partitions
    }


def _require(code: ErrorCode) -> None:
    if code is not ErrorCode.none:
        raise BrokerError(code)
