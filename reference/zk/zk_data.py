"""What Kafka's znodes hold: paths, and JSON in and out, as Kafka 3.9 writes it.

One small class per znode, named after ``kafka.zk.ZkData``'s. ``decode`` raises ``ZnodeFormatError`` naming the path for
anything that Kafka would not have written. Older versions of a znode are read; the newest is written.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random  # noqa: TID251 — the type only
from typing import Any
from uuid import UUID

from nemesis.reference.model import (
    PLAINTEXT,
    Broker,
    EndPoint,
    LeaderAndIsr,
    LeaderRecoveryState,
    TopicPartition,
)
from nemesis.reference.zk import znode_json
from nemesis.reference.zk.errors import ZnodeFormatError
from nemesis.reference.zk.znode_json import int32, ordinal

CONTROLLER = "/controller"
CONTROLLER_EPOCH = "/controller_epoch"
BROKER_IDS = "/brokers/ids"
TOPICS = "/brokers/topics"
CONFIG_CHANGES = "/config/changes"
CLUSTER_ID = "/cluster/id"
DELETE_TOPICS = "/admin/delete_topics"
BROKER_SEQUENCE_ID = "/brokers/seqid"
PRODUCER_ID_BLOCK = "/latest_producer_id_block"
FEATURE = "/feature"
ISR_CHANGE_NOTIFICATION = "/isr_change_notification"
LOG_DIR_EVENTS = "/log_dir_event_notification"
PREFERRED_REPLICA_ELECTION = "/admin/preferred_replica_election"
REASSIGN_PARTITIONS = "/admin/reassign_partitions"
PERSISTENT_PATHS = (
    BROKER_IDS,
    TOPICS,
    "/config/topics",
    "/config/brokers",
    CONFIG_CHANGES,
    DELETE_TOPICS,
    ISR_CHANGE_NOTIFICATION,
    LOG_DIR_EVENTS,
    BROKER_SEQUENCE_ID,
    PRODUCER_ID_BLOCK,
    "/cluster",
)
"""Parents that a broker makes sure of when it starts."""

INITIAL_CONTROLLER_EPOCH = 0
_MAX_PORT = 65_535


def broker_path(broker_id: int) -> str:
    return f"{BROKER_IDS}/{broker_id}"


def topic_path(topic: str) -> str:
    return f"{TOPICS}/{topic}"


def delete_topic_path(topic: str) -> str:
    return f"{DELETE_TOPICS}/{topic}"


def partitions_path(topic: str) -> str:
    return f"{TOPICS}/{topic}/partitions"


def partition_path(topic_partition: TopicPartition) -> str:
    return f"{partitions_path(topic_partition.topic)}/{topic_partition.partition}"


def state_path(topic_partition: TopicPartition) -> str:
    return f"{partition_path(topic_partition)}/state"


def topic_id_to_string(topic_id: UUID) -> str:
    """Kafka's spelling of an id: 22 characters of URL-safe base64."""
    return base64.urlsafe_b64encode(topic_id.bytes).decode().rstrip("=")


def topic_id_from_string(text: str) -> UUID:
    """Raises ValueError when it is not Kafka's spelling of an id."""
    try:
        return UUID(bytes=base64.urlsafe_b64decode(text + "=="))
    except (binascii.Error, ValueError) as error:
        raise ValueError(f"{text!r} is not a topic id") from error


def random_topic_id(rng: Random) -> UUID:
    """Return a version 4 id whose spelling does not start with a dash (Kafka avoids it for the command line's sake)."""
    while True:
        topic_id = UUID(int=rng.getrandbits(128), version=4)
        if not topic_id_to_string(topic_id).startswith("-"):
            return topic_id


@dataclass(frozen=True, slots=True)
class ReplicaAssignment:
    """A partition's replicas in order of preference; in a reassignment, those that come and go among them (KIP-455)."""

    replicas: tuple[int, ...]
    adding_replicas: tuple[int, ...] = ()
    removing_replicas: tuple[int, ...] = ()

    @property
    def is_being_reassigned(self) -> bool:
        return bool(self.adding_replicas or self.removing_replicas)

    @property
    def origin_replicas(self) -> tuple[int, ...]:
        """Those that were there before the reassignment; their order may have been another."""
        return _without(self.replicas, self.adding_replicas)

    @property
    def target_replicas(self) -> tuple[int, ...]:
        """Those that will be there after it, in their order."""
        return _without(self.replicas, self.removing_replicas)

    def reassign_to(self, target: Sequence[int]) -> ReplicaAssignment:
        """Return the assignment on the way to ``target``; a reassignment that goes on already is replaced.

        The target comes first, so the order that the original replicas had is lost, as in Kafka.
        """
        origin = self.origin_replicas
        replicas = tuple(dict.fromkeys((*target, *origin)))
        return ReplicaAssignment(
            replicas,
            adding_replicas=_without(replicas, origin),
            removing_replicas=_without(replicas, target),
        )

    def remove_replica(self, replica: int) -> ReplicaAssignment:
        """Return the assignment without the replica, whatever part it had."""
        gone = (replica,)
        return ReplicaAssignment(
            _without(self.replicas, gone),
            adding_replicas=_without(self.adding_replicas, gone),
            removing_replicas=_without(self.removing_replicas, gone),
        )


@dataclass(frozen=True, slots=True)
class TopicAssignment:
    """``/brokers/topics/T``; ``topic_id`` is None when something older than Kafka 2.8 wrote it."""

    topic: str
    topic_id: UUID | None
    partitions: Mapping[int, ReplicaAssignment]


@dataclass(frozen=True, slots=True)
class LeaderIsrAndControllerEpoch:
    """A partition's state with the epoch of the controller that wrote it."""

    leader_and_isr: LeaderAndIsr
    controller_epoch: int


def encode_controller(broker_id: int, timestamp_ms: int) -> bytes:
    return znode_json.encode(
        {
            "version": 2,
            "brokerid": broker_id,
            "timestamp": str(timestamp_ms),
            "kraftControllerEpoch": -1,
        }
    )


def decode_controller(data: bytes) -> int:
    """Return the controller's broker id."""
    return znode_json.integer(CONTROLLER, znode_json.decode(CONTROLLER, data), "brokerid")


def encode_controller_epoch(epoch: int) -> bytes:
    return str(epoch).encode()


def decode_controller_epoch(data: bytes) -> int:
    try:
        return int(data)
    except ValueError:
        raise ZnodeFormatError(f"{CONTROLLER_EPOCH} holds {data[:80]!r}, not a number") from None


def encode_broker(broker: Broker, timestamp_ms: int) -> bytes:
    """Version 5; ``host`` and ``port``, which nobody reads any more, are those of the first listener."""
    value: dict[str, Any] = {
        "features": {},
        "listener_security_protocol_map": {
            end_point.listener_name: PLAINTEXT for end_point in broker.end_points
        },
        "endpoints": [str(end_point) for end_point in broker.end_points],
        "jmx_port": -1,
        "port": broker.end_points[0].port,
        "host": broker.end_points[0].host,
        "version": 5,
        "timestamp": str(timestamp_ms),
    }
    if broker.rack is not None:
        value["rack"] = broker.rack
    return znode_json.encode(value)


def decode_broker(broker_id: int, data: bytes) -> Broker:
    """Return the broker with its PLAINTEXT listeners (the only kind that the reference speaks)."""
    path = broker_path(broker_id)
    value = znode_json.decode(path, data)
    rack, endpoints = value.get("rack"), value.get("endpoints")
    if not isinstance(rack, str | None):
        raise ZnodeFormatError(f"{path} has rack {rack!r}, not a string")
    protocols = value.get("listener_security_protocol_map")
    if not isinstance(protocols, dict):
        protocols = {
            PLAINTEXT: PLAINTEXT
        }  # before version 4 a listener was called after its protocol
    end_points = []
    for endpoint in endpoints if isinstance(endpoints, list) else ():
        name, _, address = str(endpoint).partition("://")
        host, _, port = address.rpartition(":")
        if protocols.get(name) == PLAINTEXT and port.isdecimal() and int(port) <= _MAX_PORT:
            end_points.append(EndPoint(host.strip("[]"), int(port), name))
    if not end_points:
        raise ZnodeFormatError(f"{path} has no PLAINTEXT endpoint: {data[:200]!r}")
    return Broker(broker_id, tuple(end_points), rack)


def encode_topic(assignment: TopicAssignment) -> bytes:
    """Version 3; a topic without an id stays without one."""
    partitions = assignment.partitions
    value: dict[str, Any] = {
        "partitions": {str(p): a.replicas for p, a in partitions.items()},
        "adding_replicas": {
            str(p): a.adding_replicas for p, a in partitions.items() if a.adding_replicas
        },
        "removing_replicas": {
            str(p): a.removing_replicas for p, a in partitions.items() if a.removing_replicas
        },
        "version": 3,
    }
    if assignment.topic_id is not None:
        value["topic_id"] = topic_id_to_string(assignment.topic_id)
    return znode_json.encode(value)


def decode_topic(topic: str, data: bytes) -> TopicAssignment:
    path = topic_path(topic)
    value = znode_json.decode(path, data)
    try:
        topic_id = value.get("topic_id")
        adding = value.get("adding_replicas") or {}
        removing = value.get("removing_replicas") or {}
        return TopicAssignment(
            topic=topic,
            topic_id=None if topic_id is None else topic_id_from_string(topic_id),
            partitions={
                ordinal(int(p)): _decode_replicas(replicas, adding.get(p, ()), removing.get(p, ()))
                for p, replicas in sorted(value["partitions"].items(), key=lambda x: int(x[0]))
            },
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ZnodeFormatError(
            f"{path} is not a topic's assignment: {error}: {data[:200]!r}"
        ) from error


def _decode_replicas(
    replicas: Sequence[object], adding: Sequence[object], removing: Sequence[object]
) -> ReplicaAssignment:
    """Raises ValueError for what no partition can have: no replica, one that is no id, one that is there twice."""
    assignment = ReplicaAssignment(
        tuple(map(ordinal, replicas)), tuple(map(ordinal, adding)), tuple(map(ordinal, removing))
    )
    if not assignment.replicas:
        raise ValueError("a partition without replicas")
    if len(set(assignment.replicas)) < len(assignment.replicas):
        raise ValueError(f"a replica is there twice: {list(assignment.replicas)}")
    return assignment


def encode_partition_reassignment(targets: Mapping[TopicPartition, Sequence[int]]) -> bytes:
    """``/admin/reassign_partitions``: the replicas that each partition shall have."""
    return znode_json.encode(
        {
            "version": 1,
            "partitions": [
                {"topic": tp.topic, "partition": tp.partition, "replicas": list(replicas)}
                for tp, replicas in targets.items()
            ],
        }
    )


def decode_partition_reassignment(data: bytes) -> dict[TopicPartition, tuple[int, ...]]:
    """In the znode's order; of a partition that is named twice the last one counts, as in Kafka."""
    value = znode_json.decode(REASSIGN_PARTITIONS, data)
    try:
        return {
            TopicPartition(str(item["topic"]), int32(item["partition"])): tuple(
                map(int32, item["replicas"])
            )
            for item in value["partitions"]
        }
    except (KeyError, TypeError, ValueError) as error:
        raise ZnodeFormatError(
            f"{REASSIGN_PARTITIONS} is not a reassignment: {error}: {data[:200]!r}"
        ) from error


def encode_state(state: LeaderIsrAndControllerEpoch) -> bytes:
    leader_and_isr = state.leader_and_isr
    value: dict[str, Any] = {
        "controller_epoch": state.controller_epoch,
        "leader": leader_and_isr.leader,
        "version": 1,
        "leader_epoch": leader_and_isr.leader_epoch,
        "isr": leader_and_isr.isr,
    }
    if leader_and_isr.leader_recovery_state is not LeaderRecoveryState.RECOVERED:
        value["leader_recovery_state"] = int(leader_and_isr.leader_recovery_state)
    return znode_json.encode(value)


def decode_state(
    topic_partition: TopicPartition, data: bytes, zk_version: int
) -> LeaderIsrAndControllerEpoch:
    """``zk_version`` (the znode's data version) becomes the partition epoch."""
    path = state_path(topic_partition)
    value = znode_json.decode(path, data)
    try:
        return LeaderIsrAndControllerEpoch(
            LeaderAndIsr(
                leader=int32(value["leader"]),
                leader_epoch=int32(value["leader_epoch"]),
                isr=tuple(map(int32, value["isr"])),
                leader_recovery_state=LeaderRecoveryState(value.get("leader_recovery_state", 0)),
                partition_epoch=zk_version,
            ),
            controller_epoch=int32(value["controller_epoch"]),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise ZnodeFormatError(
            f"{path} is not a partition's state: {error}: {data[:200]!r}"
        ) from error


def encode_cluster_id(cluster_id: str) -> bytes:
    return znode_json.encode({"version": "1", "id": cluster_id})


def decode_cluster_id(data: bytes) -> str:
    cluster_id = znode_json.decode(CLUSTER_ID, data).get("id")
    if not isinstance(cluster_id, str):
        raise ZnodeFormatError(f"{CLUSTER_ID} holds no id")
    return cluster_id


def _without(replicas: Sequence[int], gone: Sequence[int]) -> tuple[int, ...]:
    return tuple(replica for replica in replicas if replica not in gone)
