"""A broker's settings of transactions, under Kafka's own property names and with its defaults."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from nemesis.reference.kafka_group_config import KafkaGroupConfig
from nemesis.reference.kafka_log_config import PositiveInt


class KafkaTransactionConfig(
    KafkaGroupConfig, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """Sizes in bytes, durations in their unit."""

    transaction_max_timeout_ms: PositiveInt = msgspec.field(
        name="transaction.max.timeout.ms", default=900_000
    )
    """The longest time-out that a producer may ask for."""
    transactional_id_expiration_ms: PositiveInt = msgspec.field(
        name="transactional.id.expiration.ms", default=604_800_000
    )
    """How long an id without a transaction is remembered."""
    transaction_partition_verification_enable: bool = msgspec.field(
        name="transaction.partition.verification.enable", default=True
    )
    """Whether leaders ask the coordinator before a producer opens a transaction in a log (KIP-890)."""
    transaction_abort_timed_out_transaction_cleanup_interval_ms: PositiveInt = msgspec.field(
        name="transaction.abort.timed.out.transaction.cleanup.interval.ms", default=10_000
    )
    transaction_remove_expired_transaction_cleanup_interval_ms: PositiveInt = msgspec.field(
        name="transaction.remove.expired.transaction.cleanup.interval.ms", default=3_600_000
    )
    transaction_state_log_num_partitions: PositiveInt = msgspec.field(
        name="transaction.state.log.num.partitions", default=50
    )
    transaction_state_log_replication_factor: Annotated[int, Meta(gt=0, lt=1 << 15)] = (
        msgspec.field(name="transaction.state.log.replication.factor", default=3)
    )
    """With fewer brokers the topic cannot be created, and no transaction works."""
    transaction_state_log_min_isr: PositiveInt = msgspec.field(
        name="transaction.state.log.min.isr", default=2
    )
    transaction_state_log_segment_bytes: PositiveInt = msgspec.field(
        name="transaction.state.log.segment.bytes", default=104_857_600
    )
    transaction_state_log_load_buffer_size: PositiveInt = msgspec.field(
        name="transaction.state.log.load.buffer.size", default=5_242_880
    )
    """How much of a log is read at a time when transactions are loaded."""
