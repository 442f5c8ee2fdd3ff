"""Every broker's ear for changed settings: the notifications below ``/config/changes``, in the order of their numbers.

A notification only says whose settings have changed; the handler for that type of entity then reads them. Each is
processed once in a process life, those that were there at the start too. They are deleted when they are 15 minutes old,
by whoever looks at them then: a broker that cannot reach ZooKeeper for longer misses what it had not seen, as in Kafka.

Source: kafka.server.ZkConfigManager (once DynamicConfigManager) and kafka.common.ZkNodeChangeNotificationListener.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import Final

from nemesis.reference.ports import WallClock
from nemesis.reference.server.config_handlers import ConfigHandler
from nemesis.reference.zk import zk_data
from nemesis.reference.zk.config_znodes import change_number
from nemesis.reference.zk.errors import ClientClosedError, OperationFailedError, ZooKeeperError
from nemesis.reference.zk.kafka_zk_client import KafkaZkClient

_logger = logging.getLogger(__name__)

CHANGE_EXPIRATION_MS: Final = 15 * 60 * 1000


class ZkConfigManager:
    """See the module. Needs the event loop of the broker."""

    def __init__(
        self,
        zk_client: KafkaZkClient,
        *,
        handlers: Mapping[str, ConfigHandler],
        wall_clock: WallClock,
    ) -> None:
        """``handlers`` by type of entity."""
        self._zk_client = zk_client
        self._handlers = handlers
        self._wall_clock = wall_clock
        self._changed = asyncio.Event()
        self._last_executed_change = -1
        self._task: asyncio.Task[None] | None = None

    def startup(self) -> None:
        """Begin to listen, and with what is there already."""
        self._zk_client.session.register_znode_child_change_handler(
            zk_data.CONFIG_CHANGES, self._changed.set
        )
        self._changed.set()
        self._task = asyncio.get_running_loop().create_task(
            self._listen(), name="config-change-listener"
        )

    async def shutdown(self) -> None:
        self._zk_client.session.unregister_znode_child_change_handler(zk_data.CONFIG_CHANGES)
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _listen(self) -> None:
        while True:
            await self._changed.wait()
            self._changed.clear()
            try:
                await self._zk_client.session.retry_across_sessions(self._process_notifications)
            except ClientClosedError:
                return
            except ZooKeeperError as error:
                _logger.error("changes of settings are not processed: %s", error)

    async def _process_notifications(self) -> None:
        names = await self._zk_client.configs.get_all_change_notifications()
        for name in names:
            number = change_number(name)
            assert number is not None
            if number > self._last_executed_change:
                try:
                    await self._process(name)
                except OperationFailedError as error:
                    # It would be in the way of all that follow, for ever.
                    _logger.error("%s is ignored: %s", name, error)
                self._last_executed_change = number
        await self._zk_client.configs.purge_change_notifications(
            names, before_ms=self._wall_clock() - CHANGE_EXPIRATION_MS
        )

    async def _process(self, notification: str) -> None:
        changed = await self._zk_client.configs.get_change(notification)
        if changed is None:
            return
        entity_type, name = changed
        handler = self._handlers.get(entity_type)
        if handler is None:
            _logger.warning("%s: no settings of %s/%s here", notification, entity_type, name)
            return
        _logger.info("%s: the settings of %s/%s have changed", notification, entity_type, name)
        await handler.process_config_changes(name)
