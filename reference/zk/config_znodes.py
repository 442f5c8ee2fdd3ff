"""Settings that can be changed while the cluster runs: ``/config/topics/T``, ``/config/brokers/N`` or ``<default>``.

Who changes them writes the znode of the entity (version 1), then a sequential one below ``/config/changes`` (version 2)
that names the entity: all brokers watch that one, and read what has changed. Source: kafka.zk.KafkaZkClient,
ConfigEntityZNode and ConfigEntityChangeNotificationZNode of Kafka 3.9.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from nemesis.reference.zk import zk_data, znode_json
from nemesis.reference.zk.errors import (
    BadVersionError,
    NodeExistsError,
    NoNodeError,
    ZnodeFormatError,
)
from nemesis.reference.zk.pipelining import pipelined
from nemesis.reference.zk.zookeeper_session import ZooKeeperSession

_logger = logging.getLogger(__name__)

TOPICS = "topics"
BROKERS = "brokers"
CLIENTS = "clients"
"""The types of entities that have settings here."""
DEFAULT = "<default>"
"""Stands for all brokers, or all clients."""
CHANGE_PREFIX = "config_change_"
LAG_TRIES: Final = 10
LAG_PAUSE_S: Final = 0.02


def entity_path(entity_type: str, name: str) -> str:
    """Where the settings of an entity are."""
    return f"/config/{entity_type}/{name}"


def encode(config: Mapping[str, str]) -> bytes:
    return znode_json.encode({"version": 1, "config": dict(config)})


def decode(path: str, data: bytes) -> dict[str, str]:
    """Return the settings; raises ``ZnodeFormatError`` when they are not strings."""
    config = znode_json.decode(path, data).get("config")
    if not isinstance(config, dict) or not all(isinstance(v, str) for v in config.values()):
        raise ZnodeFormatError(f"{path} has config {config!r}, not an object of strings")
    return config


def encode_change(entity_type: str, name: str) -> bytes:
    return znode_json.encode({"version": 2, "entity_path": f"{entity_type}/{name}"})


def decode_change(path: str, data: bytes) -> tuple[str, str]:
    """Return type and name of what has changed; raises ``ZnodeFormatError``."""
    changed = znode_json.decode(path, data).get("entity_path")
    entity_type, _, name = str(changed).partition("/")
    if not isinstance(changed, str) or not entity_type or not name:
        raise ZnodeFormatError(f"{path} has entity_path {changed!r}, not a type and a name")
    return entity_type, name


class ConfigZnodes:
    """See the module."""

    def __init__(self, session: ZooKeeperSession) -> None:
        self._session = session

    async def get_entity_config(self, entity_type: str, name: str) -> dict[str, str]:
        """The settings of an entity, none without a znode; raises ``ZnodeFormatError``."""
        path = entity_path(entity_type, name)
        try:
            data, _ = await self._session.get(path)
        except NoNodeError:
            return {}
        return decode(path, data)

    async def get_entity_names(self, entity_type: str) -> list[str]:
        """Those of this type that have settings."""
        try:
            return await self._session.get_children(f"/config/{entity_type}")
        except NoNodeError:
            return []

    async def get_topic_configs(self, topics: Sequence[str]) -> dict[str, dict[str, str] | None]:
        """The settings of each topic: empty without a znode, None (and a log line) when it cannot be read."""

        async def read(topic: str) -> tuple[str, dict[str, str] | None]:
            try:
                return topic, await self.get_entity_config(TOPICS, topic)
            except ZnodeFormatError as error:
                _logger.error("the configuration of topic %s cannot be read: %s", topic, error)
                return topic, None

        return dict(await pipelined(topics, read))

    async def get_configs_of_existing_topics(
        self, topics: Sequence[str]
    ) -> dict[str, dict[str, str] | None]:
        """As ``get_topic_configs``, from a member of the ensemble that knows the topics.

        A topic and its settings are created together, so a member that lags has neither. A topic that is still
        unknown after ``LAG_TRIES`` was deleted.
        """
        for _ in range(LAG_TRIES):
            known = await pipelined(
                topics, lambda topic: self._session.exists(zk_data.topic_path(topic))
            )
            if None not in known:
                break
            await asyncio.sleep(LAG_PAUSE_S)
        return await self.get_topic_configs(topics)

    async def alter_entity_config(
        self,
        entity_type: str,
        name: str,
        change: Callable[[dict[str, str]], Mapping[str, str]],
    ) -> None:
        """Write what ``change`` makes of the present settings, then the notification of it.

        The znode is compared and set, and ``change`` is asked again after a conflict: what somebody else changes at
        the same time is not lost, as it can be in Kafka. What ``change`` raises passes through, and nothing is
        written. Raises ``ZnodeFormatError`` when the present settings cannot be read.
        """
        while not await self._try_to_alter(entity_path(entity_type, name), change):
            _logger.info("the settings of %s/%s were written meanwhile", entity_type, name)
        path = f"{zk_data.CONFIG_CHANGES}/{CHANGE_PREFIX}"
        data = encode_change(entity_type, name)
        # After a lost reply everybody may be told twice.
        await self._session.retry_request_until_connected(
            lambda: self._session.writes.create(path, data, sequential=True)
        )

    async def _try_to_alter(
        self, path: str, change: Callable[[dict[str, str]], Mapping[str, str]]
    ) -> bool:
        """False when somebody else was faster."""
        try:
            data, stat = await self._session.get(path)
        except NoNodeError:
            try:
                await self._session.create(path, encode(change({})))
            except NodeExistsError:
                return False
            return True
        try:
            await self._session.set_data(path, encode(change(decode(path, data))), stat.version)
        except (BadVersionError, NoNodeError):
            return False
        return True

    async def get_all_change_notifications(self) -> list[str]:
        """Names of the znodes, in the order of their creation; arms the child change handler."""
        names = await self._session.get_children(zk_data.CONFIG_CHANGES)
        return sorted(name for name in names if change_number(name) is not None)

    async def get_change(self, name: str) -> tuple[str, str] | None:
        """Type and name of the entity that a notification names; None when it is gone or cannot be read."""
        path = f"{zk_data.CONFIG_CHANGES}/{name}"
        try:
            data, _ = await self._session.get(path)
            return decode_change(path, data)
        except NoNodeError:
            return None
        except ZnodeFormatError as error:
            _logger.error("a change of settings is ignored: %s", error)
            return None

    async def purge_change_notifications(self, names: Sequence[str], *, before_ms: int) -> None:
        """Delete those of these that were created before that time (ms since 1970)."""

        async def purge(name: str) -> None:
            path = f"{zk_data.CONFIG_CHANGES}/{name}"
            stat = await self._session.exists(path)
            if stat is None or stat.ctime_ms >= before_ms:
                return
            try:
                await self._session.retry_request_until_connected(
                    lambda: self._session.writes.delete(path)
                )
            except NoNodeError:
                return

        await pipelined(names, purge)


def change_number(name: str) -> int | None:
    """The number that ZooKeeper gave to a notification; None when the name is not one's."""
    number = name.removeprefix(CHANGE_PREFIX)
    return int(number) if name.startswith(CHANGE_PREFIX) and number.isdecimal() else None
