"""A broker's settings of consumer groups and their offsets, under Kafka's own property names and with its defaults."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from nemesis.reference.kafka_log_config import KafkaLogConfig, NonNegativeInt, PositiveInt

_MAX_INT = 2**31 - 1


class KafkaGroupConfig(KafkaLogConfig, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Sizes in bytes, durations in their unit."""

    group_min_session_timeout_ms: PositiveInt = msgspec.field(
        name="group.min.session.timeout.ms", default=6_000
    )
    group_max_session_timeout_ms: PositiveInt = msgspec.field(
        name="group.max.session.timeout.ms", default=1_800_000
    )
    group_initial_rebalance_delay_ms: NonNegativeInt = msgspec.field(
        name="group.initial.rebalance.delay.ms", default=3_000
    )
    group_max_size: PositiveInt = msgspec.field(name="group.max.size", default=_MAX_INT)
    """How many members a group may have."""
    offset_metadata_max_bytes: NonNegativeInt = msgspec.field(
        name="offset.metadata.max.bytes", default=4_096
    )
    """How long the text may be that a client commits with an offset, in characters."""
    offsets_load_buffer_size: PositiveInt = msgspec.field(
        name="offsets.load.buffer.size", default=5_242_880
    )
    """How much of a log is read at a time when groups are loaded."""
    offsets_topic_num_partitions: PositiveInt = msgspec.field(
        name="offsets.topic.num.partitions", default=50
    )
    offsets_topic_replication_factor: Annotated[int, Meta(gt=0, lt=1 << 15)] = msgspec.field(
        name="offsets.topic.replication.factor", default=3
    )
    """With fewer brokers the topic cannot be created, and no group works."""
    offsets_topic_segment_bytes: PositiveInt = msgspec.field(
        name="offsets.topic.segment.bytes", default=104_857_600
    )
    offsets_commit_timeout_ms: PositiveInt = msgspec.field(
        name="offsets.commit.timeout.ms", default=5_000
    )
    """How long the replicas may take."""
    offsets_retention_minutes: PositiveInt = msgspec.field(
        name="offsets.retention.minutes", default=10_080
    )
    offsets_retention_check_interval_ms: PositiveInt = msgspec.field(
        name="offsets.retention.check.interval.ms", default=600_000
    )
