"""A broker's configuration, under Kafka's own property names.

``KafkaConfig.from_properties`` takes a mapping such as ``{"broker.id": 1, "listeners": ...}`` and refuses an unknown
key, a wrong type or a contradiction with one sentence (``ConfigError``). Durations end in their unit.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from reference.kafka_log_config import KafkaLogConfig, NonNegativeInt, PositiveInt

Port = Annotated[int, Meta(ge=1, le=65535)]


class ConfigError(ValueError):
    """A property is unknown, of the wrong type, out of range or contradicts another one. Mend the configuration."""


INTER_BROKER_PROTOCOL_VERSIONS = ("2.6", "3.9")
"""2.6 stands for everything before AlterPartition (2.7-IV2), 3.9 for everything after it."""


class KafkaConfig(KafkaLogConfig, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Kafka 3.9's defaults unless a comment says otherwise."""

    broker_id: Annotated[int, Meta(ge=-1)] = msgspec.field(name="broker.id", default=-1)
    """−1: the one of ``meta.properties``, or one that is generated."""
    broker_id_generation_enable: bool = msgspec.field(
        name="broker.id.generation.enable", default=True
    )
    reserved_broker_max_id: NonNegativeInt = msgspec.field(
        name="reserved.broker.max.id", default=1_000
    )
    """Generated ids are above it, configured ones are not."""
    host: str = msgspec.field(name="host")
    """Address the broker binds, and the source address of its outgoing connections."""
    port: Port = msgspec.field(name="port")
    advertised_host: str = msgspec.field(name="advertised.host")
    advertised_port: Port = msgspec.field(name="advertised.port")
    broker_rack: str | None = msgspec.field(name="broker.rack", default=None)
    zookeeper_connect: str = msgspec.field(name="zookeeper.connect")
    log_dirs: tuple[str, ...] = msgspec.field(name="log.dirs")
    trace_file: str | None = msgspec.field(name="trace.file", default=None)
    random_seed: int = msgspec.field(name="random.seed", default=0)

    zookeeper_session_timeout_ms: PositiveInt = msgspec.field(
        name="zookeeper.session.timeout.ms", default=18_000
    )
    inter_broker_protocol_version: str = msgspec.field(
        name="inter.broker.protocol.version", default="3.9"
    )
    """One for the whole cluster."""
    num_io_threads: PositiveInt = msgspec.field(name="num.io.threads", default=8)
    queued_max_requests: PositiveInt = msgspec.field(name="queued.max.requests", default=500)
    socket_request_max_bytes: PositiveInt = msgspec.field(
        name="socket.request.max.bytes", default=104_857_600
    )
    message_max_bytes: PositiveInt = msgspec.field(name="message.max.bytes", default=1_048_588)
    replica_lag_time_max_ms: PositiveInt = msgspec.field(
        name="replica.lag.time.max.ms", default=30_000
    )
    replica_fetch_max_bytes: PositiveInt = msgspec.field(
        name="replica.fetch.max.bytes", default=1_048_576
    )
    replica_fetch_response_max_bytes: PositiveInt = msgspec.field(
        name="replica.fetch.response.max.bytes", default=10_485_760
    )
    replica_fetch_wait_max_ms: PositiveInt = msgspec.field(
        name="replica.fetch.wait.max.ms", default=500
    )
    replica_fetch_backoff_ms: PositiveInt = msgspec.field(
        name="replica.fetch.backoff.ms", default=1_000
    )
    replica_socket_timeout_ms: PositiveInt = msgspec.field(
        name="replica.socket.timeout.ms", default=30_000
    )
    replica_high_watermark_checkpoint_interval_ms: PositiveInt = msgspec.field(
        name="replica.high.watermark.checkpoint.interval.ms", default=5_000
    )
    max_incremental_fetch_session_cache_slots: NonNegativeInt = msgspec.field(
        name="max.incremental.fetch.session.cache.slots", default=1_000
    )
    replica_selector_class: (
        Literal["org.apache.kafka.common.replica.RackAwareReplicaSelector"] | None
    ) = msgspec.field(name="replica.selector.class", default=None)
    """Who tells consumers which replica to read from (KIP-392); None: they stay with the leader."""
    controller_socket_timeout_ms: PositiveInt = msgspec.field(
        name="controller.socket.timeout.ms", default=30_000
    )
    controller_retry_backoff_ms: PositiveInt = msgspec.field(
        name="controller.retry.backoff.ms", default=100
    )
    """Between two attempts of a request-send task; Kafka 3.9 fixes it at 100 ms."""
    min_insync_replicas: PositiveInt = msgspec.field(name="min.insync.replicas", default=1)
    default_replication_factor: PositiveInt = msgspec.field(
        name="default.replication.factor", default=1
    )
    num_partitions: PositiveInt = msgspec.field(name="num.partitions", default=1)
    unclean_leader_election_enable: bool = msgspec.field(
        name="unclean.leader.election.enable", default=False
    )

    auto_create_topics_enable: bool = msgspec.field(name="auto.create.topics.enable", default=False)
    """Kafka's default is true: here a topic exists because somebody asked for it."""
    delete_topic_enable: bool = msgspec.field(name="delete.topic.enable", default=True)
    controlled_shutdown_enable: bool = msgspec.field(
        name="controlled.shutdown.enable", default=True
    )
    controlled_shutdown_max_retries: PositiveInt = msgspec.field(
        name="controlled.shutdown.max.retries", default=3
    )
    controlled_shutdown_retry_backoff_ms: PositiveInt = msgspec.field(
        name="controlled.shutdown.retry.backoff.ms", default=5_000
    )
    auto_leader_rebalance_enable: bool = msgspec.field(
        name="auto.leader.rebalance.enable", default=True
    )
    leader_imbalance_check_interval_seconds: PositiveInt = msgspec.field(
        name="leader.imbalance.check.interval.seconds", default=300
    )
    leader_imbalance_per_broker_percentage: NonNegativeInt = msgspec.field(
        name="leader.imbalance.per.broker.percentage", default=10
    )

    @classmethod
    def from_properties(cls, properties: Mapping[str, object]) -> KafkaConfig:
        """Return the validated configuration; raises ``ConfigError`` naming the key and the value."""
        try:
            config = msgspec.convert(dict(properties), cls, strict=True)
        except msgspec.ValidationError as error:
            raise ConfigError(f"broker configuration: {error}") from None
        if config.inter_broker_protocol_version not in INTER_BROKER_PROTOCOL_VERSIONS:
            raise ConfigError(
                "broker configuration: inter.broker.protocol.version is "
                f"{config.inter_broker_protocol_version!r}: allowed are "
                f"{', '.join(INTER_BROKER_PROTOCOL_VERSIONS)}"
            )
        if config.broker_id_generation_enable and config.broker_id > config.reserved_broker_max_id:
            raise ConfigError(
                f"broker configuration: broker.id is {config.broker_id}: it may not be greater than "
                f"reserved.broker.max.id, which is {config.reserved_broker_max_id}"
            )
        if not config.broker_id_generation_enable and config.broker_id < 0:
            raise ConfigError(
                "broker configuration: broker.id is missing, and broker.id.generation.enable is false"
            )
        if not config.log_dirs:
            raise ConfigError("broker configuration: log.dirs is empty")
        if (contradiction := config.log_contradiction()) is not None:
            raise ConfigError(f"broker configuration: {contradiction}")
        return config

    @property
    def is_alter_partition_supported(self) -> bool:
        """Whether leaders ask the controller for another ISR (KIP-497); before, they wrote it themselves."""
        return self.inter_broker_protocol_version != "2.6"

    @property
    def is_truncation_on_fetch_supported(self) -> bool:
        """Whether a fetch tells of which epoch the follower's last record is (KIP-595, 2.7); before, it asked first."""
        return self.inter_broker_protocol_version != "2.6"

    @property
    def is_leader_recovery_supported(self) -> bool:
        """Whether a state tells that its leader was elected uncleanly (KIP-704, 3.2)."""
        return self.inter_broker_protocol_version != "2.6"

    @property
    def source_address(self) -> tuple[str, int]:
        """What outgoing connections bind: the broker's own host, any port."""
        return (self.host, 0)
