"""The settings of a log: Kafka's topic configurations, as far as this broker honours them.

A topic's own setting (``/config/topics/T``) comes before the broker's setting of the same purpose, which comes before
the default. A name that is not here is refused when somebody sets it: a setting that is accepted has an effect. What
stands in ZooKeeper all the same, written by another system, is left out, and so is a value that cannot be. Pure
functions.

Source: org.apache.kafka.storage.internals.log.LogConfig and ServerTopicConfigSynonyms of Kafka 3.9.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import IntEnum
from types import MappingProxyType
from typing import Final

from nemesis.reference.kafka_config import KafkaConfig
from nemesis.reference.kafka_log_config import MAX_LONG

_NUMBER: Final = re.compile(r"[+-]?[0-9]{1,19}")
_DECIMAL: Final = re.compile(
    r"[+-]?([0-9]{1,19}(\.[0-9]{0,19})?|\.[0-9]{1,19})([eE][+-]?[0-9]{1,3})?"
)
_MAX_INT: Final = 2**31 - 1
_THROTTLED_REPLICAS: Final = frozenset(
    {"leader.replication.throttled.replicas", "follower.replication.throttled.replicas"}
)
"""What ``kafka-reassign-partitions --throttle`` sets first."""
_BOOLEANS: Final = MappingProxyType({"true": True, "false": False})

Value = bool | int | float | tuple[str, ...]


class ConfigType(IntEnum):
    """As DescribeConfigs numbers them."""

    BOOLEAN = 1
    STRING = 2
    INT = 3
    LONG = 5
    DOUBLE = 6
    LIST = 7


class UnknownConfigError(ValueError):
    """There is no such setting, or it would have no effect here."""


class ConfigValueError(ValueError):
    """The value is no such type, or out of range."""


@dataclass(frozen=True, slots=True)
class ConfigKey:
    """One setting of a topic."""

    name: str
    field: str
    """Of ``LogConfig``."""
    broker_name: str
    """The broker's setting of the same purpose."""
    type: ConfigType
    minimum: int
    """The smallest number."""
    documentation: str
    allowed: tuple[str, ...] = ()
    """What may be in a list."""
    coarser: tuple[tuple[str, int], ...] = ()
    """The broker's settings of the same purpose that count where the first is not set, and how many of our units one of
    theirs is."""

    def parse(self, text: str) -> Value:
        """Return the value, surrounding spaces aside; raises ``ConfigValueError`` naming it."""
        stripped = text.strip()
        if self.type is ConfigType.BOOLEAN:
            if (truth := _BOOLEANS.get(stripped.lower())) is None:
                raise self._wrong(text, "Expected value to be either true or false")
            return truth
        if self.type is ConfigType.LIST:
            return self._list(text)
        if self.type is ConfigType.DOUBLE:
            return self._fraction(text)
        if not _NUMBER.fullmatch(stripped):
            raise self._wrong(text, f"Not a number of type {self.type.name}")
        number = int(stripped)
        maximum = _MAX_INT if self.type is ConfigType.INT else MAX_LONG
        if not self.minimum <= number <= maximum:
            raise self._wrong(text, f"Value must be between {self.minimum} and {maximum}")
        return number

    def _fraction(self, text: str) -> float:
        if not _DECIMAL.fullmatch(text.strip()):
            raise self._wrong(text, "Not a number of type DOUBLE")
        if not 0 <= (number := float(text)) <= 1:
            raise self._wrong(text, "Value must be between 0 and 1")
        return number

    def _list(self, text: str) -> tuple[str, ...]:
        items = tuple(item.strip() for item in text.split(",")) if text.strip() else ()
        for item in items or ("",):
            if item not in self.allowed:
                raise self._wrong(text, f"String must be one of: {', '.join(self.allowed)}")
        return items

    def _wrong(self, text: str, why: str) -> ConfigValueError:
        return ConfigValueError(f"Invalid value {text} for configuration {self.name}: {why}")


TOPIC_CONFIGS: Final[Mapping[str, ConfigKey]] = MappingProxyType(
    {
        key.name: key
        for key in (
            ConfigKey(
                "segment.bytes",
                "segment_bytes",
                "log.segment.bytes",
                ConfigType.INT,
                14,
                "The size at which a log's file is full and the next one begins.",
            ),
            ConfigKey(
                "segment.ms",
                "segment_ms",
                "log.roll.ms",
                ConfigType.LONG,
                1,
                "After how many ms a log's file ends and the next one begins, even if it is not full.",
                coarser=(("log.roll.hours", 3_600_000),),
            ),
            ConfigKey(
                "segment.index.bytes",
                "segment_index_bytes",
                "log.index.size.max.bytes",
                ConfigType.INT,
                12,
                "The size at which an index is full and the next segment begins.",
            ),
            ConfigKey(
                "index.interval.bytes",
                "index_interval_bytes",
                "log.index.interval.bytes",
                ConfigType.INT,
                0,
                "How many bytes of batches lie between two entries of an index.",
            ),
            ConfigKey(
                "max.message.bytes",
                "max_message_bytes",
                "message.max.bytes",
                ConfigType.INT,
                0,
                "The largest record batch that is taken.",
            ),
            ConfigKey(
                "flush.messages",
                "flush_interval_messages",
                "log.flush.interval.messages",
                ConfigType.LONG,
                1,
                "After how many records a log is synced to its disk.",
            ),
            ConfigKey(
                "flush.ms",
                "flush_ms",
                "log.flush.interval.ms",
                ConfigType.LONG,
                0,
                "After how many ms a log is synced to its disk.",
                coarser=(("log.flush.scheduler.interval.ms", 1),),
            ),
            ConfigKey(
                "retention.ms",
                "retention_ms",
                "log.retention.ms",
                ConfigType.LONG,
                -1,
                "How many ms records are kept under the cleanup policy delete; -1: without end.",
                coarser=(("log.retention.minutes", 60_000), ("log.retention.hours", 3_600_000)),
            ),
            ConfigKey(
                "retention.bytes",
                "retention_bytes",
                "log.retention.bytes",
                ConfigType.LONG,
                -1,
                "How large a log may become under the cleanup policy delete; -1: without bound.",
            ),
            ConfigKey(
                "file.delete.delay.ms",
                "file_delete_delay_ms",
                "log.segment.delete.delay.ms",
                ConfigType.LONG,
                0,
                "How many ms the files of a deleted segment are kept.",
            ),
            ConfigKey(
                "cleanup.policy",
                "cleanup_policy",
                "log.cleanup.policy",
                ConfigType.LIST,
                0,
                "What is done with old segments.",
                allowed=("compact", "delete"),
            ),
            ConfigKey(
                "min.cleanable.dirty.ratio",
                "min_cleanable_dirty_ratio",
                "log.cleaner.min.cleanable.ratio",
                ConfigType.DOUBLE,
                0,
                "Which part of a log must be uncleaned for it to be compacted.",
            ),
            ConfigKey(
                "delete.retention.ms",
                "delete_retention_ms",
                "log.cleaner.delete.retention.ms",
                ConfigType.LONG,
                0,
                "How many ms a record without a value stays once a compaction has come by it.",
            ),
            ConfigKey(
                "min.compaction.lag.ms",
                "min_compaction_lag_ms",
                "log.cleaner.min.compaction.lag.ms",
                ConfigType.LONG,
                0,
                "How many ms a record stays as it is before it may be compacted.",
            ),
            ConfigKey(
                "max.compaction.lag.ms",
                "max_compaction_lag_ms",
                "log.cleaner.max.compaction.lag.ms",
                ConfigType.LONG,
                1,
                "After how many ms a record is compacted, however little there is to compact.",
            ),
            ConfigKey(
                "min.insync.replicas",
                "min_insync_replicas",
                "min.insync.replicas",
                ConfigType.INT,
                1,
                "How many replicas must be in sync for a produce under acks=all to be taken.",
            ),
            ConfigKey(
                "unclean.leader.election.enable",
                "unclean_leader_election_enable",
                "unclean.leader.election.enable",
                ConfigType.BOOLEAN,
                0,
                "Whether a replica that is not in sync may be elected leader when no other is alive.",
            ),
        )
    }
)
"""By name."""


@dataclass(frozen=True, slots=True)
class LogConfig:
    """What counts for one log; sizes in bytes, −1 where a retention is without end."""

    segment_bytes: int = 1 << 30
    segment_ms: int = 604_800_000
    segment_index_bytes: int = 10_485_760
    index_interval_bytes: int = 4_096
    max_message_bytes: int = 1_048_588
    flush_interval_messages: int = MAX_LONG
    flush_ms: int = MAX_LONG
    retention_ms: int = 604_800_000
    retention_bytes: int = -1
    file_delete_delay_ms: int = 60_000
    cleanup_policy: tuple[str, ...] = ("delete",)
    min_cleanable_dirty_ratio: float = 0.5
    delete_retention_ms: int = 86_400_000
    min_compaction_lag_ms: int = 0
    max_compaction_lag_ms: int = MAX_LONG
    min_insync_replicas: int = 1
    unclean_leader_election_enable: bool = False

    @property
    def is_delete(self) -> bool:
        """Whether records are deleted by age and by size."""
        return "delete" in self.cleanup_policy

    @property
    def is_compact(self) -> bool:
        """Whether of the records with one key only the last is kept."""
        return "compact" in self.cleanup_policy

    @property
    def max_segment_ms(self) -> int:
        """After how many ms the next segment begins: only what is not written to any more can be compacted in time."""
        if self.is_compact:
            return min(self.segment_ms, self.max_compaction_lag_ms)
        return self.segment_ms

    def with_overrides(self, values: Mapping[str, Value]) -> LogConfig:
        """Return these settings with a topic's own, by name, in their place."""
        by_field = {TOPIC_CONFIGS[name].field: value for name, value in values.items()}
        return replace(self, **by_field)  # type: ignore[arg-type]


def log_config_of(config: KafkaConfig) -> LogConfig:
    """Return what counts for a topic without settings of its own."""
    return LogConfig(
        segment_bytes=min(config.log_segment_bytes, _MAX_INT),
        segment_ms=config.roll_ms,
        segment_index_bytes=config.log_index_size_max_bytes,
        index_interval_bytes=config.log_index_interval_bytes,
        max_message_bytes=config.message_max_bytes,
        flush_interval_messages=config.log_flush_interval_messages,
        flush_ms=config.flush_ms,
        retention_ms=config.retention_ms,
        retention_bytes=config.log_retention_bytes,
        file_delete_delay_ms=config.log_segment_delete_delay_ms,
        cleanup_policy=config.log_cleanup_policy,
        min_cleanable_dirty_ratio=config.log_cleaner_min_cleanable_ratio,
        delete_retention_ms=config.log_cleaner_delete_retention_ms,
        min_compaction_lag_ms=config.log_cleaner_min_compaction_lag_ms,
        max_compaction_lag_ms=config.log_cleaner_max_compaction_lag_ms,
        min_insync_replicas=config.min_insync_replicas,
        unclean_leader_election_enable=config.unclean_leader_election_enable,
    )


def key_of(name: str) -> ConfigKey:
    """Return the setting; raises ``UnknownConfigError``."""
    key = TOPIC_CONFIGS.get(name)
    if key is None:
        hint = " (replication is not throttled here)" if name in _THROTTLED_REPLICAS else ""
        raise UnknownConfigError(f"Unknown topic config name: {name}{hint}")
    return key


def validate(properties: Mapping[str, str]) -> None:
    """Raise ``UnknownConfigError`` or ``ConfigValueError`` unless each setting could be a topic's; names come first."""
    for name in properties:
        key_of(name)
    values = {name: key_of(name).parse(text) for name, text in properties.items()}
    least, most = (values.get(f"{which}.compaction.lag.ms") for which in ("min", "max"))
    if isinstance(least, int) and isinstance(most, int) and least > most:
        raise ConfigValueError(
            f"Invalid value {least} for configuration min.compaction.lag.ms: it is above"
            f" max.compaction.lag.ms, which is {most}"
        )


def overrides(properties: Mapping[str, str]) -> tuple[dict[str, Value], list[str]]:
    """Return the values of those settings that have an effect, and one sentence for each other."""
    values: dict[str, Value] = {}
    problems: list[str] = []
    for name, text in properties.items():
        try:
            values[name] = key_of(name).parse(text)
        except (UnknownConfigError, ConfigValueError) as error:
            problems.append(str(error))
    return values, problems
