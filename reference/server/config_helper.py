"""What DescribeConfigs tells of settings: the value that counts, where it comes from, what it would be without that.

A topic's setting is told with its synonyms: the topic's own, then the broker's of the same purpose.
Source: kafka.server.ConfigHelper of Kafka 3.9.

Limits: what a broker was started with counts as its own (STATIC_BROKER_CONFIG) where it differs from the default.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Any

import msgspec

from nemesis.reference.log.log_config import TOPIC_CONFIGS, ConfigKey, ConfigType, Value, overrides
from nemesis.reference.server.dynamic_broker_config import (
    DYNAMIC_CONFIGS,
    FIELDS,
    DynamicBrokerConfig,
)


class ConfigSource(IntEnum):
    """As in DescribeConfigs."""

    DYNAMIC_TOPIC_CONFIG = 1
    DYNAMIC_BROKER_CONFIG = 2
    DYNAMIC_DEFAULT_BROKER_CONFIG = 3
    STATIC_BROKER_CONFIG = 4
    DEFAULT_CONFIG = 5


@dataclass(frozen=True, slots=True)
class ConfigSynonym:
    """A value that a setting has, or would have without those before it."""

    name: str
    value: str | None
    source: ConfigSource


@dataclass(frozen=True, slots=True)
class ConfigEntry:
    """A setting; the first of its synonyms is what counts."""

    name: str
    value: str | None
    type: ConfigType
    synonyms: tuple[ConfigSynonym, ...]
    read_only: bool = False
    documentation: str | None = None

    @property
    def source(self) -> ConfigSource:
        return self.synonyms[0].source


class ConfigHelper:
    """Knows this broker's settings; those of a topic are given."""

    def __init__(self, dynamic_config: DynamicBrokerConfig) -> None:
        self._dynamic_config = dynamic_config

    def topic_entries(self, properties: Mapping[str, str]) -> list[ConfigEntry]:
        """All settings of a topic that has these of its own."""
        values, _ = overrides(properties)
        return [self._topic_entry(key, values.get(key.name)) for key in TOPIC_CONFIGS.values()]

    def broker_entries(self) -> list[ConfigEntry]:
        """All settings of this broker."""
        return [self._broker_entry(name) for name in FIELDS]

    def default_broker_entries(self) -> list[ConfigEntry]:
        """The settings that all brokers are given."""
        source = ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG
        return [
            _entry(DYNAMIC_CONFIGS[name], (ConfigSynonym(name, value, source),))
            for name, value in self._dynamic_config.default_configs.items()
        ]

    def _topic_entry(self, key: ConfigKey, value: Value | None) -> ConfigEntry:
        synonyms = tuple(
            synonym
            for synonym in self._broker_synonyms(key.broker_name)
            if synonym.value is not None
        )
        for name, unit in key.coarser:
            synonyms += tuple(
                replace(synonym, value=_in_units(synonym.value, unit))
                for synonym in self._broker_synonyms(name)
                if synonym.value is not None
            )
        if value is not None:
            own = ConfigSynonym(key.name, _text(value), ConfigSource.DYNAMIC_TOPIC_CONFIG)
            synonyms = (own, *synonyms)
        return _entry(key, synonyms)

    def _broker_entry(self, name: str) -> ConfigEntry:
        synonyms = self._broker_synonyms(name)
        if (key := DYNAMIC_CONFIGS.get(name)) is not None:
            return _entry(key, synonyms)
        type_ = _type_of(getattr(self._dynamic_config.static, FIELDS[name].name))
        return ConfigEntry(name, synonyms[0].value, type_, synonyms, read_only=True)

    def _broker_synonyms(self, name: str) -> tuple[ConfigSynonym, ...]:
        """The values of a setting of this broker, the one that counts first."""
        config, field = self._dynamic_config, FIELDS[name]
        static = getattr(config.static, field.name)
        layers: list[tuple[ConfigSource, str | None]] = []
        if name in config.broker_configs:
            layers.append((ConfigSource.DYNAMIC_BROKER_CONFIG, config.broker_configs[name]))
        if name in config.default_configs:
            source = ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG
            layers.append((source, config.default_configs[name]))
        if field.required or static != field.default:
            layers.append((ConfigSource.STATIC_BROKER_CONFIG, _text(static)))
        if not field.required:
            layers.append((ConfigSource.DEFAULT_CONFIG, _text(field.default)))
        return tuple(ConfigSynonym(name, value, source) for source, value in layers)


def _entry(key: ConfigKey, synonyms: tuple[ConfigSynonym, ...]) -> ConfigEntry:
    value = synonyms[0].value
    return ConfigEntry(key.name, value, key.type, synonyms, documentation=key.documentation)


def _type_of(value: Any) -> ConfigType:
    if isinstance(value, bool):
        return ConfigType.BOOLEAN
    if isinstance(value, int):
        return ConfigType.INT
    if isinstance(value, float):
        return ConfigType.DOUBLE
    return ConfigType.LIST if isinstance(value, tuple) else ConfigType.STRING


def _in_units(text: str, unit: int) -> str:
    """A number of coarse units in fine ones; −1 is without end in any."""
    number = int(text)
    return text if number < 0 else str(number * unit)


def _text(value: Any) -> str | None:
    """As Kafka spells it."""
    if value is None or value is msgspec.NODEFAULT:
        return None
    if isinstance(value, bool):
        return str(value).lower()
    return ",".join(map(str, value)) if isinstance(value, tuple) else str(value)
