"""From which replica a consumer should read: one in its own rack, where there is one (KIP-392).

The leader chooses among those that are in the ISR and have the offset, and says so instead of returning records.
Setting: ``replica.selector.class``; without it every consumer stays with the leader. A consumer may always ask a
follower on its own account, from Fetch version 11 on.

Source: org.apache.kafka.common.replica.RackAwareReplicaSelector, ReplicaManager.findPreferredReadReplica of Kafka 3.9.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from nemesis.reference.cluster.partition import Partition
from nemesis.reference.model import BrokerEndPoint


class ReplicaView(NamedTuple):
    """What the leader knows of a replica that has the offset; ordered by how good it is to read from."""

    log_end_offset: int
    last_caught_up_time: float
    broker_id: int
    rack: str | None


def rack_aware_replica(
    rack_id: str, leader: ReplicaView, followers: Sequence[ReplicaView]
) -> int | None:
    """The best follower in the rack; None if the leader is there itself, or nobody is."""
    if not rack_id or leader.rack == rack_id:
        return None
    near = [replica for replica in followers if replica.rack == rack_id]
    return max(near).broker_id if near else None


def preferred_read_replica(
    partition: Partition,
    rack_id: str,
    fetch_offset: int,
    alive_broker: Callable[[int], BrokerEndPoint | None],
) -> int | None:
    """The follower that a consumer in the rack should read from; None: it should stay. Only a leader knows one."""
    log = partition.log
    if log is None or not partition.is_leader or partition.leader_id is None:
        return None

    def rack_of(broker_id: int) -> str | None:
        broker = alive_broker(broker_id)
        return None if broker is None else broker.rack

    followers = [
        ReplicaView(
            replica.log_end_offset,
            replica.last_caught_up_time,
            broker_id,
            rack_of(broker_id),
        )
        for broker_id, replica in partition.remote_replicas.items()
        if broker_id in partition.state.isr
        and replica.log_start_offset <= fetch_offset <= replica.log_end_offset
    ]
    leader_id = partition.leader_id
    leader = ReplicaView(log.log_end_offset, 0.0, leader_id, rack_of(leader_id))
    return rack_aware_replica(rack_id, leader, followers)
