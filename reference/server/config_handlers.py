"""What a broker does when settings have changed, by type of entity: it reads them, and its logs or itself follow.

Source: kafka.server.ConfigHandler (TopicConfigHandler, BrokerConfigHandler,
ClientIdConfigHandler) of Kafka 3.9.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from typing import Protocol
from urllib.parse import unquote

from nemesis.reference.controller.kafka_controller import KafkaController
from nemesis.reference.controller.leader_elections import UNCLEAN_LEADER_ELECTION_ENABLE
from nemesis.reference.log.log_config import Value, overrides
from nemesis.reference.log.log_manager import LogManager
from nemesis.reference.server.client_quota_manager import QuotaManagers
from nemesis.reference.server.dynamic_broker_config import DynamicBrokerConfig
from nemesis.reference.zk import config_znodes
from nemesis.reference.zk.errors import ZnodeFormatError
from nemesis.reference.zk.kafka_zk_client import KafkaZkClient

_logger = logging.getLogger(__name__)


class ConfigHandler(Protocol):
    """One type of entity."""

    async def process_config_changes(self, name: str) -> None:
        """The settings of the entity may have changed. Raises ``SessionExpiredError``."""


class TopicConfigHandler:
    """Keeps the settings of the topics whose logs are here. One read after the other, so that the last one counts."""

    def __init__(
        self, log_manager: LogManager, zk_client: KafkaZkClient, controller: KafkaController
    ) -> None:
        self._log_manager = log_manager
        self._zk_client = zk_client
        self._controller = controller
        self._reading = asyncio.Lock()

    async def fetch_topic_configs(self, topics: Sequence[str]) -> dict[str, dict[str, Value]]:
        """Read these topics' settings, as is done before logs are loaded or created; waits for ZooKeeper."""
        async with self._reading:
            configs = await self._zk_client.session.retry_across_sessions(
                lambda: self._zk_client.configs.get_configs_of_existing_topics(topics)
            )
            return {topic: self._take_over(topic, configs[topic] or {}) for topic in topics}

    def _take_over(self, topic: str, properties: Mapping[str, str]) -> dict[str, Value]:
        values, problems = overrides(properties)
        for problem in problems:
            _logger.warning("a setting of topic %s is ignored: %s", topic, problem)
        self._log_manager.update_topic_config(topic, values)
        return values

    async def process_config_changes(self, name: str) -> None:
        values = (await self.fetch_topic_configs([name]))[name]
        if values.get(UNCLEAN_LEADER_ELECTION_ENABLE):
            self._controller.enable_topic_unclean_leader_election(name)


class BrokerConfigHandler:
    """Keeps what this broker and all brokers are given."""

    def __init__(self, dynamic_config: DynamicBrokerConfig, zk_client: KafkaZkClient) -> None:
        self._dynamic_config = dynamic_config
        self._zk_client = zk_client
        self._own_name = str(dynamic_config.static.broker_id)

    async def initialize(self) -> None:
        """Read the settings when the broker starts."""
        for name in (config_znodes.DEFAULT, self._own_name):
            await self.process_config_changes(name)

    async def process_config_changes(self, name: str) -> None:
        if name not in (config_znodes.DEFAULT, self._own_name):
            return
        try:
            properties = await self._zk_client.configs.get_entity_config(
                config_znodes.BROKERS, name
            )
        except ZnodeFormatError as error:
            _logger.error("settings of the broker are ignored: %s", error)
            return
        if name == config_znodes.DEFAULT:
            self._dynamic_config.update_default_config(properties)
        else:
            self._dynamic_config.update_broker_config(properties)


class ClientIdConfigHandler:
    """Keeps the quotas of clients. Names of znodes are encoded as in URLs, as Kafka's Sanitizer does."""

    def __init__(self, quotas: QuotaManagers, zk_client: KafkaZkClient) -> None:
        self._quotas = quotas
        self._zk_client = zk_client

    async def initialize(self) -> None:
        """Read the quotas when the broker starts."""
        for name in await self._zk_client.configs.get_entity_names(config_znodes.CLIENTS):
            await self.process_config_changes(name)

    async def process_config_changes(self, name: str) -> None:
        try:
            properties = await self._zk_client.configs.get_entity_config(
                config_znodes.CLIENTS, name
            )
            self._quotas.update(unquote(name), properties)
        except (ZnodeFormatError, ValueError) as error:
            _logger.error("quotas of client %s are ignored: %s", name, error)
