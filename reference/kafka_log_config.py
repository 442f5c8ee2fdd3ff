"""The part of a broker's configuration that its logs follow, under Kafka's own property names.

``KafkaConfig`` extends it. What has a topic's setting of the same purpose is its default:
``nemesis.reference.log.log_config``. Source: ServerLogConfigs, CleanerConfig and AbstractKafkaConfig of Kafka 3.9,
whose defaults these are.
"""

from __future__ import annotations

from typing import Annotated, Final

import msgspec
from msgspec import Meta

MAX_LONG: Final = 2**63 - 1
_MS_PER_MINUTE: Final = 60_000
_MS_PER_HOUR: Final = 60 * _MS_PER_MINUTE
BYTES_PER_ENTRY: Final = 24
"""Of an offset map, in Kafka: by it ``log.cleaner.dedupe.buffer.size`` becomes a number of keys."""
LEAST_DEDUPE_BUFFER_BYTES: Final = 1 << 20
"""Of each cleaner."""

PositiveInt = Annotated[int, Meta(gt=0)]
NonNegativeInt = Annotated[int, Meta(ge=0)]
_Retention = Annotated[int, Meta(ge=-1)]
"""−1: without end."""
_CleanupPolicies = tuple[str, ...]


class KafkaLogConfig(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
):
    """Sizes in bytes, durations in their unit."""

    log_segment_bytes: Annotated[int, Meta(ge=14)] = msgspec.field(
        name="log.segment.bytes", default=1_073_741_824
    )
    log_roll_ms: PositiveInt | None = msgspec.field(name="log.roll.ms", default=None)
    log_roll_hours: PositiveInt = msgspec.field(name="log.roll.hours", default=168)
    """Counts where ``log.roll.ms`` is not set."""
    log_index_size_max_bytes: Annotated[int, Meta(ge=12)] = msgspec.field(
        name="log.index.size.max.bytes", default=10_485_760
    )
    log_index_interval_bytes: NonNegativeInt = msgspec.field(
        name="log.index.interval.bytes", default=4_096
    )
    log_flush_interval_messages: PositiveInt = msgspec.field(
        name="log.flush.interval.messages", default=MAX_LONG
    )
    log_flush_interval_ms: NonNegativeInt | None = msgspec.field(
        name="log.flush.interval.ms", default=None
    )
    """Where it is not set, ``log.flush.scheduler.interval.ms`` counts."""
    log_flush_scheduler_interval_ms: PositiveInt = msgspec.field(
        name="log.flush.scheduler.interval.ms", default=MAX_LONG
    )
    log_flush_offset_checkpoint_interval_ms: PositiveInt = msgspec.field(
        name="log.flush.offset.checkpoint.interval.ms", default=60_000
    )
    log_flush_start_offset_checkpoint_interval_ms: PositiveInt = msgspec.field(
        name="log.flush.start.offset.checkpoint.interval.ms", default=60_000
    )
    log_retention_ms: _Retention | None = msgspec.field(name="log.retention.ms", default=None)
    log_retention_minutes: _Retention | None = msgspec.field(
        name="log.retention.minutes", default=None
    )
    log_retention_hours: _Retention = msgspec.field(name="log.retention.hours", default=168)
    """The finest of the three that is set counts."""
    log_retention_bytes: _Retention = msgspec.field(name="log.retention.bytes", default=-1)
    log_retention_check_interval_ms: PositiveInt = msgspec.field(
        name="log.retention.check.interval.ms", default=300_000
    )
    log_segment_delete_delay_ms: NonNegativeInt = msgspec.field(
        name="log.segment.delete.delay.ms", default=60_000
    )
    log_cleanup_policy: _CleanupPolicies = msgspec.field(
        name="log.cleanup.policy", default=("delete",)
    )
    log_cleaner_enable: bool = msgspec.field(name="log.cleaner.enable", default=True)
    log_cleaner_threads: PositiveInt = msgspec.field(name="log.cleaner.threads", default=1)
    log_cleaner_backoff_ms: PositiveInt = msgspec.field(
        name="log.cleaner.backoff.ms", default=15_000
    )
    log_cleaner_dedupe_buffer_size: PositiveInt = msgspec.field(
        name="log.cleaner.dedupe.buffer.size", default=134_217_728
    )
    log_cleaner_io_buffer_size: PositiveInt = msgspec.field(
        name="log.cleaner.io.buffer.size", default=524_288
    )
    log_cleaner_io_buffer_load_factor: Annotated[float, Meta(gt=0, le=1)] = msgspec.field(
        name="log.cleaner.io.buffer.load.factor", default=0.9
    )
    log_cleaner_min_cleanable_ratio: Annotated[float, Meta(ge=0, le=1)] = msgspec.field(
        name="log.cleaner.min.cleanable.ratio", default=0.5
    )
    log_cleaner_delete_retention_ms: NonNegativeInt = msgspec.field(
        name="log.cleaner.delete.retention.ms", default=86_400_000
    )
    log_cleaner_min_compaction_lag_ms: NonNegativeInt = msgspec.field(
        name="log.cleaner.min.compaction.lag.ms", default=0
    )
    log_cleaner_max_compaction_lag_ms: PositiveInt = msgspec.field(
        name="log.cleaner.max.compaction.lag.ms", default=MAX_LONG
    )

    @property
    def roll_ms(self) -> int:
        """After how long a log's next segment begins."""
        return self.log_roll_hours * _MS_PER_HOUR if self.log_roll_ms is None else self.log_roll_ms

    @property
    def retention_ms(self) -> int:
        """How long records are kept; −1 for good."""
        if self.log_retention_ms is not None:
            return self.log_retention_ms
        if self.log_retention_minutes is not None:
            return _in_ms(self.log_retention_minutes, _MS_PER_MINUTE)
        return _in_ms(self.log_retention_hours, _MS_PER_HOUR)

    @property
    def flush_ms(self) -> int:
        """How old what is not synced may become."""
        interval_ms = self.log_flush_interval_ms
        return self.log_flush_scheduler_interval_ms if interval_ms is None else interval_ms

    @property
    def offset_map_capacity(self) -> int:
        """How many keys one cleaner may keep in mind at a time."""
        slots = self.log_cleaner_dedupe_buffer_size // self.log_cleaner_threads // BYTES_PER_ENTRY
        return int(slots * self.log_cleaner_io_buffer_load_factor)

    def log_contradiction(self) -> str | None:
        """One sentence that names a key whose value cannot be; None when all can."""
        for key, value in (
            ("log.retention.ms", self.log_retention_ms),
            ("log.retention.minutes", self.log_retention_minutes),
            ("log.retention.hours", self.log_retention_hours),
        ):
            if value == 0:
                return f"{key} is 0: it must be −1 (without end) or at least 1"
        if not self.log_cleanup_policy or set(self.log_cleanup_policy) - {"compact", "delete"}:
            return (
                f"log.cleanup.policy is {','.join(self.log_cleanup_policy)!r}: allowed are 'compact',"
                " 'delete' and both"
            )
        if self.log_cleaner_min_compaction_lag_ms > self.log_cleaner_max_compaction_lag_ms:
            return (
                f"log.cleaner.min.compaction.lag.ms is {self.log_cleaner_min_compaction_lag_ms}, above"
                f" log.cleaner.max.compaction.lag.ms, which is {self.log_cleaner_max_compaction_lag_ms}"
            )
        least = LEAST_DEDUPE_BUFFER_BYTES * self.log_cleaner_threads
        if self.log_cleaner_dedupe_buffer_size < least:
            return (
                f"log.cleaner.dedupe.buffer.size is {self.log_cleaner_dedupe_buffer_size}: with"
                f" {self.log_cleaner_threads} log.cleaner.threads it has to be at least {least}"
            )
        return None


def _in_ms(number: int, unit_ms: int) -> int:
    return -1 if number < 0 else number * unit_ms
