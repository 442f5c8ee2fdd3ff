"""A broker's configuration, under Kafka's own property names.

``KafkaConfig.from_properties`` takes a mapping such as ``{"broker.id": 1, "listeners": ...}`` and refuses an unknown
key, a wrong type or a contradiction with one sentence (``ConfigError``). Durations end in their unit.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from posixpath import normpath
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from nemesis.reference.kafka_log_config import NonNegativeInt, PositiveInt
from nemesis.reference.kafka_transaction_config import KafkaTransactionConfig
from nemesis.reference.listeners import (
    ListenerConfig,
    ListenerError,
    key_value_pairs,
    listener_config,
)

BufferSize = Annotated[int, Meta(ge=-1)]
"""Of a socket, in bytes; −1: as the system has it."""
MAX_INT = 2**31 - 1
"""No bound."""


class ConfigError(ValueError):
    """A property is unknown, of the wrong type, out of range or contradicts another one. Mend the configuration."""


INTER_BROKER_PROTOCOL_VERSIONS = ("2.6", "3.9")
"""2.6 stands for everything before AlterPartition (2.7-IV2), 3.9 for everything after it."""


class KafkaConfig(KafkaTransactionConfig, frozen=True, kw_only=True, forbid_unknown_fields=True):
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
    listeners: str = msgspec.field(name="listeners")
    """Outgoing connections leave from the host of the one that other brokers come by."""
    advertised_listeners: str | None = msgspec.field(name="advertised.listeners", default=None)
    """None: as ``listeners``."""
    listener_security_protocol_map: str = msgspec.field(
        name="listener.security.protocol.map",
        default="PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL",
    )
    inter_broker_listener_name: str | None = msgspec.field(
        name="inter.broker.listener.name", default=None
    )
    """None: the one that is called PLAINTEXT."""
    control_plane_listener_name: str | None = msgspec.field(
        name="control.plane.listener.name", default=None
    )
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
    num_network_threads: PositiveInt = msgspec.field(name="num.network.threads", default=3)
    num_io_threads: PositiveInt = msgspec.field(name="num.io.threads", default=8)
    queued_max_requests: PositiveInt = msgspec.field(name="queued.max.requests", default=500)
    queued_max_request_bytes: int = msgspec.field(name="queued.max.request.bytes", default=-1)
    """−1: no bound."""
    socket_request_max_bytes: PositiveInt = msgspec.field(
        name="socket.request.max.bytes", default=104_857_600
    )
    socket_send_buffer_bytes: BufferSize = msgspec.field(
        name="socket.send.buffer.bytes", default=102_400
    )
    socket_receive_buffer_bytes: BufferSize = msgspec.field(
        name="socket.receive.buffer.bytes", default=102_400
    )
    socket_listen_backlog_size: PositiveInt = msgspec.field(
        name="socket.listen.backlog.size", default=50
    )
    max_connections: PositiveInt = msgspec.field(name="max.connections", default=MAX_INT)
    max_connections_per_ip: NonNegativeInt = msgspec.field(
        name="max.connections.per.ip", default=MAX_INT
    )
    max_connections_per_ip_overrides: str = msgspec.field(
        name="max.connections.per.ip.overrides", default=""
    )
    max_connection_creation_rate: PositiveInt = msgspec.field(
        name="max.connection.creation.rate", default=MAX_INT
    )
    connections_max_idle_ms: PositiveInt = msgspec.field(
        name="connections.max.idle.ms", default=600_000
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
    replica_alter_log_dirs_io_max_bytes_per_second: PositiveInt = msgspec.field(
        name="replica.alter.log.dirs.io.max.bytes.per.second", default=2**63 - 1
    )
    """Of all moves between log directories. In Kafka it can only be set while the broker runs."""
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

    producer_id_expiration_ms: PositiveInt = msgspec.field(
        name="producer.id.expiration.ms", default=86_400_000
    )
    """How long a log remembers a producer that does not write."""
    producer_id_expiration_check_interval_ms: PositiveInt = msgspec.field(
        name="producer.id.expiration.check.interval.ms", default=600_000
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
            sentence = _sentence(str(error), properties)
            raise ConfigError(f"broker configuration: {sentence}") from None
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
        if "" in config.log_dirs:
            raise ConfigError("broker configuration: log.dirs has an empty path")
        if twice := _first_twice([normpath(path) for path in config.log_dirs]):
            raise ConfigError(f"broker configuration: log.dirs has {twice!r} twice")
        if (contradiction := config.log_contradiction()) is not None:
            raise ConfigError(f"broker configuration: {contradiction}")
        try:
            _check_network(config)
        except ListenerError as error:
            raise ConfigError(f"broker configuration: {error}") from None
        return config

    @property
    def listener_config(self) -> ListenerConfig:
        """The listeners and what each is for."""
        return listener_config(
            listeners=self.listeners,
            advertised_listeners=self.advertised_listeners,
            security_protocol_map=self.listener_security_protocol_map,
            inter_broker_listener_name=self.inter_broker_listener_name,
            control_plane_listener_name=self.control_plane_listener_name,
        )

    @property
    def max_connections_per_ip_by_host(self) -> dict[str, int]:
        """``max.connections.per.ip.overrides``."""
        key = "max.connections.per.ip.overrides"
        overrides = key_value_pairs(key, self.max_connections_per_ip_overrides)
        for host, bound in overrides.items():
            if not (bound.isascii() and bound.isdecimal()):
                raise ListenerError(f"{key} gives {host!r} the bound {bound!r}, not a number")
        return {host: int(bound) for host, bound in overrides.items()}

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
    def source_host(self) -> str | None:
        """What outgoing connections bind: the broker's own host; None when it listens on all."""
        return self.listener_config.source_host


def _first_twice(paths: Sequence[str]) -> str | None:
    return next((path for index, path in enumerate(paths) if path in paths[:index]), None)


def _check_network(config: KafkaConfig) -> None:
    """Raises ``ListenerError`` when settings of listeners and connections cannot be used together."""
    _ = config.listener_config
    if config.queued_max_request_bytes != -1 and (
        config.queued_max_request_bytes < config.socket_request_max_bytes
    ):
        raise ListenerError(
            f"queued.max.request.bytes is {config.queued_max_request_bytes}: it may be -1 or at least "
            f"socket.request.max.bytes, which is {config.socket_request_max_bytes}"
        )
    if config.max_connections_per_ip == 0 and not config.max_connections_per_ip_by_host:
        raise ListenerError(
            "max.connections.per.ip is 0 and max.connections.per.ip.overrides is empty: nobody could connect"
        )
    _ = config.max_connections_per_ip_by_host


def _sentence(error: str, properties: Mapping[str, object]) -> str:
    """Return what msgspec says is wrong, with the property that it means and the value that this has."""
    if unknown := re.fullmatch("Object contains unknown field `(.*)`", error):
        return f"there is no property {unknown[1]!r}"
    if missing := re.fullmatch("Object missing required field `(.*)`", error):
        return f"{missing[1]} is missing"
    if wrong := re.fullmatch(r"Expected (.*) - at `\$\.(.*?)(?:\[.*\])?`", error):
        return f"{wrong[2]} is {properties[wrong[2]]!r}: it has to be {wrong[1].replace(', got', ', not')}"
    return error
