"""Values that several parts of a broker speak of: partitions, epochs, requests between ReplicaManager and KafkaApis.

Kafka's names. Offsets count records; a log end offset and a high watermark are exclusive (last offset + 1). What
every fetch makes several of, or looks up, is a NamedTuple: made and hashed several times as fast as a dataclass.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Final, NamedTuple
from uuid import UUID

from kio.schema.errors import ErrorCode

NO_LEADER = -1
LEADER_DURING_DELETE = -2
UNDEFINED_EPOCH = -1
EPOCH_DURING_DELETE = -2
"""In a StopReplica: the topic is being deleted, whatever the leader epoch (KIP-570)."""
UNDEFINED_OFFSET = -1
CONSUMER_ID = -1
"""Replica id of a request that no replica sends."""
DEBUGGING_CONSUMER_ID = -2
"""Replica id of one who may ask any replica."""
UNKNOWN_BROKER_EPOCH = -1
"""Of a sender that does not know its own, or a member's: it is not checked."""


GROUP_METADATA_TOPIC_NAME: Final = "__consumer_offsets"
TRANSACTION_STATE_TOPIC_NAME: Final = "__transaction_state"
INTERNAL_TOPICS: Final = frozenset({GROUP_METADATA_TOPIC_NAME, TRANSACTION_STATE_TOPIC_NAME})
"""Those that coordinators write and clients may not."""


class TopicPartition(NamedTuple):
    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


@dataclass(frozen=True, slots=True)
class TransactionalProducer:
    """The producer of a request about a transaction."""

    transactional_id: str
    producer_id: int
    epoch: int


@dataclass(frozen=True, slots=True)
class ApiError:
    """What a request, or one item of it, is answered with: an error code and one sentence."""

    code: ErrorCode
    message: str | None = None

    def __str__(self) -> str:
        return f"{self.code.name.upper()}: {self.message}"


class OffsetAndEpoch(NamedTuple):
    offset: int
    leader_epoch: int


class LeaderRecoveryState(IntEnum):
    RECOVERED = 0
    RECOVERING = 1


@dataclass(frozen=True, slots=True)
class LeaderAndIsr:
    """What ``/brokers/topics/T/partitions/P/state`` holds, with the znode's version as ``partition_epoch``."""

    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    leader_recovery_state: LeaderRecoveryState = LeaderRecoveryState.RECOVERED
    partition_epoch: int = 0


@dataclass(frozen=True, slots=True)
class LeaderAndIsrPartitionState:
    """One partition of a LeaderAndIsrRequest, whatever its version."""

    topic_partition: TopicPartition
    topic_id: UUID | None
    controller_epoch: int
    leader_and_isr: LeaderAndIsr
    replicas: tuple[int, ...]
    adding_replicas: tuple[int, ...] = ()
    removing_replicas: tuple[int, ...] = ()
    is_new: bool = False


@dataclass(frozen=True, slots=True)
class StopReplicaPartitionState:
    """One partition of a StopReplicaRequest. ``leader_epoch`` −2 means delete, −1 no epoch known (KIP-570)."""

    topic_partition: TopicPartition
    leader_epoch: int
    delete_partition: bool


@dataclass(frozen=True, slots=True)
class UpdateMetadataPartitionState:
    """One partition of an UpdateMetadataRequest; leader −2 removes it from the cache."""

    topic_partition: TopicPartition
    topic_id: UUID | None
    controller_epoch: int
    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    partition_epoch: int
    replicas: tuple[int, ...]
    offline_replicas: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class BrokerEndPoint:
    """A broker at one of its listeners: where somebody connects to it."""

    id: int
    host: str
    port: int
    rack: str | None = None


PLAINTEXT = "PLAINTEXT"
"""The only security protocol, and the listener that is called so."""


class EndPoint(NamedTuple):
    """A listener's address."""

    host: str
    port: int
    listener_name: str = PLAINTEXT

    def __str__(self) -> str:
        return f"{self.listener_name}://{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class Broker:
    """A live broker and where it is advertised, by listener."""

    id: int
    end_points: tuple[EndPoint, ...]
    rack: str | None = None

    @classmethod
    def at(cls, broker_id: int, host: str, port: int, rack: str | None = None) -> Broker:
        """A broker with the one listener that has the default name."""
        return cls(broker_id, (EndPoint(host, port),), rack)

    def node(self, listener_name: str) -> BrokerEndPoint | None:
        """The broker at this listener; None when it has none of that name."""
        for host, port, name in self.end_points:
            if name == listener_name:
                return BrokerEndPoint(self.id, host, port, self.rack)
        return None


class FetchIsolation(IntEnum):
    LOG_END = 0
    """A follower: up to the log end offset."""
    HIGH_WATERMARK = 1
    """A consumer: below the high watermark."""
    TXN_COMMITTED = 2
    """A consumer with ``read_committed``: below the last stable offset."""


class FetchParams(NamedTuple):
    replica_id: int
    """A follower's broker id; −1 a consumer, −2 a debugging consumer (any replica)."""
    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    isolation: FetchIsolation
    replica_epoch: int = -1
    """The follower's broker epoch (Fetch 15 and later); −1 when it did not say."""
    rack_id: str | None = None
    """The consumer's rack, perhaps empty; None of one that reads from leaders only (before Fetch 11)."""

    @property
    def is_from_follower(self) -> bool:
        return self.replica_id >= 0

    @property
    def fetch_only_leader(self) -> bool:
        """Whether a follower must refuse it (KIP-392)."""
        return self.replica_id >= 0 or (self.replica_id == CONSUMER_ID and self.rack_id is None)


class FetchPartitionRequest(NamedTuple):
    topic_partition: TopicPartition
    topic_id: UUID | None
    """None when the request named the topic (Fetch before version 13)."""
    current_leader_epoch: int
    """−1 when the client does not know it (then it is not checked)."""
    fetch_offset: int
    last_fetched_epoch: int
    log_start_offset: int
    max_bytes: int


class EpochEndOffset(NamedTuple):
    """Where an epoch ends on the leader; −1/−1 when it cannot say."""

    leader_epoch: int
    end_offset: int


class AbortedTransaction(NamedTuple):
    """An entry of a transaction index; the last offset is that of the marker."""

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


class FetchPartitionResult(NamedTuple):
    topic_partition: TopicPartition
    error: ErrorCode
    high_watermark: int = -1
    log_start_offset: int = -1
    records: bytes = b""
    diverging_epoch: EpochEndOffset | None = None
    current_leader_id: int = -1
    current_leader_epoch: int = -1
    preferred_read_replica: int = -1
    """Whom the consumer should ask instead; then there are no records."""
    last_stable_offset: int = -1
    aborted_transactions: tuple[AbortedTransaction, ...] | None = None
    """Those with records among the records, for a consumer with ``read_committed``; None for all others."""

    @property
    def is_urgent(self) -> bool:
        """Whether the sender must hear of it at once, records or not."""
        return (
            self.error is not ErrorCode.none
            or self.diverging_epoch is not None
            or self.preferred_read_replica >= 0
        )


@dataclass(frozen=True, slots=True)
class ProducePartitionResult:
    error: ErrorCode
    base_offset: int = -1
    log_start_offset: int = -1
    error_message: str | None = None
    log_append_time: int = -1
    """Of a batch that was sent again: the time of the one in the log, in ms."""


@dataclass(frozen=True, slots=True)
class ListOffsetsResult:
    error: ErrorCode
    timestamp: int = -1
    offset: int = -1
    leader_epoch: int = -1
