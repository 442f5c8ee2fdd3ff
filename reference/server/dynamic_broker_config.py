"""The broker's settings that can be changed while it runs (KIP-226): its own, all brokers', those it began with.

A setting in ``/config/brokers/N`` comes before the one in ``/config/brokers/<default>``, which comes before the
configuration that the broker was started with. Who has to act on a change is told of the old and the new configuration.

Of Kafka's dynamic settings these are the ones that a running broker honours here: the defaults of topics
(``DYNAMIC_CONFIGS``). All others cannot be updated dynamically, and are refused.
Source: kafka.server.DynamicBrokerConfig and DynamicLogConfig of Kafka 3.9.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Final

import msgspec

from nemesis.reference.kafka_config import KafkaConfig
from nemesis.reference.log.log_config import TOPIC_CONFIGS, ConfigKey, ConfigValueError

_logger = logging.getLogger(__name__)

DYNAMIC_CONFIGS: Final[Mapping[str, ConfigKey]] = MappingProxyType(
    {key.broker_name: replace(key, name=key.broker_name) for key in TOPIC_CONFIGS.values()}
)
"""By the broker's name of the setting."""
FIELDS: Final[Mapping[str, msgspec.structs.FieldInfo]] = MappingProxyType(
    {field.encode_name: field for field in msgspec.structs.fields(KafkaConfig)}
)
"""Of ``KafkaConfig``, by the setting's name."""

Reconfigurable = Callable[[KafkaConfig, KafkaConfig], None]
"""Given the configuration until now and the one from now on."""


class DynamicBrokerConfig:
    """See the module. ``current`` is what counts now."""

    def __init__(self, static: KafkaConfig) -> None:
        self.static = static
        self.current = static
        self.broker_configs: Mapping[str, str] = {}
        self.default_configs: Mapping[str, str] = {}
        """As they stand in ZooKeeper, but for what cannot be."""
        self._reconfigurables: list[Reconfigurable] = []

    def add_reconfigurable(self, reconfigurable: Reconfigurable) -> None:
        self._reconfigurables.append(reconfigurable)

    def update_broker_config(self, properties: Mapping[str, str]) -> None:
        """Let these be this broker's own settings."""
        self.broker_configs = _those_that_can_be(properties)
        self._update()

    def update_default_config(self, properties: Mapping[str, str]) -> None:
        """Let these be the settings of all brokers."""
        self.default_configs = _those_that_can_be(properties)
        self._update()

    def _update(self) -> None:
        values: dict[str, Any] = {
            FIELDS[name].name: DYNAMIC_CONFIGS[name].parse(text)
            for name, text in {**self.default_configs, **self.broker_configs}.items()
        }
        former, self.current = self.current, msgspec.structs.replace(self.static, **values)
        if self.current != former:
            for reconfigurable in self._reconfigurables:
                reconfigurable(former, self.current)


def validate(properties: Mapping[str, str]) -> None:
    """Raise ``ConfigValueError`` unless each of these can be changed while the broker runs, to this value."""
    fixed = [name for name in properties if name not in DYNAMIC_CONFIGS]
    if fixed:
        raise ConfigValueError(f"Cannot update these configs dynamically: {', '.join(fixed)}")
    for name, text in properties.items():
        DYNAMIC_CONFIGS[name].parse(text)


def _those_that_can_be(properties: Mapping[str, str]) -> dict[str, str]:
    """Without what somebody else has written and means nothing here; that is logged."""
    valid = {}
    for name, text in properties.items():
        try:
            validate({name: text})
        except ConfigValueError as error:
            _logger.error("a setting of the broker is ignored: %s", error)
        else:
            valid[name] = text
    return valid
